"""Decodes the messages of exchanges, and notes the exchange's error, throttle time and group member."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from schemas.wire.declared import (
    CONSUMER_GROUP_HEARTBEAT,
    FIND_COORDINATOR,
    JOIN_GROUP,
    LIST_OFFSETS,
    SHARE_GROUP_DESCRIBE,
    SHARE_GROUP_HEARTBEAT,
    SYNC_GROUP,
    Declared,
)
from udfs.columns.arrays import Ints
from udfs.facts.exchanges import Exchanges
from udfs.facts.message_bodies import note_faults, request_bodies, response_bodies
from udfs.wire.messages import DecodedFrames, decode_bodies

WITHOUT_ROWS = (
    LIST_OFFSETS, FIND_COORDINATOR, JOIN_GROUP, SYNC_GROUP, CONSUMER_GROUP_HEARTBEAT, SHARE_GROUP_HEARTBEAT,
    SHARE_GROUP_DESCRIBE,
)  # fmt: skip
"""APIs for which no table has rows."""
MEMBER = ("group_id", "member_id")
ERROR_CODE, THROTTLE = "error_code", "throttle_time_ms"


class Messages(NamedTuple):
    """Decoded requests and responses; request_exchanges, response_exchanges: int64[n], the exchange of each."""

    request_exchanges: Ints
    request: DecodedFrames
    response_exchanges: Ints
    response: DecodedFrames


MessagesOf = Callable[[Exchanges, Declared, Ints], Messages]


def note_messages_without_rows(exchanges: Exchanges) -> None:
    """Decode the messages of WITHOUT_ROWS, to note their faults, errors, throttle times and group members."""
    for declared in WITHOUT_ROWS:
        which = exchanges.of_api(declared.request.api_key)
        if len(which):
            note_members(exchanges, decode_both(exchanges, declared, which))


def note_members(exchanges: Exchanges, messages: Messages) -> None:
    """Note the group ids and member ids in requests with their exchanges."""
    top = messages.request.levels[""]
    for hashes, name in zip(exchanges.member, MEMBER, strict=True):
        if f"{name}.start" in top.names:
            starts, lengths = top.span(name)
            named = np.flatnonzero(lengths > 0)
            ids = exchanges.names.learn(exchanges.frames.arena, starts[named], lengths[named])
            hashes[messages.request_exchanges[named]] = ids


def decode_both(exchanges: Exchanges, declared: Declared, which: Ints) -> Messages:
    """Decode some exchanges, all of one API, and note their faults, errors and throttle times.

    which: int64[n], indices of exchanges.
    """
    request_exchanges, bodies = request_bodies(exchanges, which)
    request = decode_bodies(declared.request, exchanges.frames.arena, *bodies)
    note_faults(exchanges, request_exchanges, request.fault)
    response_exchanges, bodies = response_bodies(exchanges, which)
    response = decode_bodies(declared.response, exchanges.frames.arena, *bodies)
    fine = note_faults(exchanges, response_exchanges, response.fault)
    messages = Messages(request_exchanges, request, response_exchanges, response)
    exchanges.error[response_exchanges[fine]] = response_errors(messages)[fine]
    top = response.levels[""]
    if THROTTLE in top.names:
        exchanges.throttle[response_exchanges[fine]] = top.column(THROTTLE)[fine]
    return messages


def response_errors(messages: Messages) -> Ints:
    """The error of each response, int64[responses]: the one at its top level, else the first one inside, else 0."""
    levels = messages.response.levels
    has_error = ERROR_CODE in levels[""].names
    errors = levels[""].column(ERROR_CODE).copy() if has_error else np.zeros(len(messages.response_exchanges), np.int64)
    for path, level in levels.items():
        if path and ERROR_CODE in level.names:
            wrong = np.flatnonzero(level.column(ERROR_CODE))
            frame = frames_of_rows(messages.response, path)[wrong]
            first, at = np.unique(frame, return_index=True)
            errors[first] = np.where(errors[first] == 0, level.column(ERROR_CODE)[wrong[at]], errors[first])
    return errors


def frames_of_rows(decoded: DecodedFrames, path: str) -> Ints:
    """The frame of each row of a level: int64[rows]."""
    frames = decoded.levels[path].parent
    while path:
        path = path.rpartition(".")[0]
        if path in decoded.levels:  # a part of the path may be a struct, which is not a level
            frames = decoded.levels[path].parent[frames]
    return frames
