"""Both messages of exchanges, decoded, and what any response says of itself: its error and how long it throttles."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from schemas.wire.declared import (
    CONSUMER_GROUP_HEARTBEAT,
    FIND_COORDINATOR,
    JOIN_GROUP,
    LIST_OFFSETS,
    SHARE_FETCH,
    SYNC_GROUP,
    Declared,
)
from udfs.columns.arrays import Ints
from udfs.facts.exchanges import Exchanges
from udfs.facts.message_bodies import note_faults, request_bodies, response_bodies
from udfs.wire.messages import Decoded, decode

WITHOUT_ROWS = (LIST_OFFSETS, FIND_COORDINATOR, JOIN_GROUP, SYNC_GROUP, CONSUMER_GROUP_HEARTBEAT, SHARE_FETCH)
MEMBER = ("group_id", "member_id")
ERROR_CODE, THROTTLE = "error_code", "throttle_time_ms"


class Messages(NamedTuple):
    """Decoded requests and responses of some exchanges; asked, answered: int64, the exchange of each frame."""

    asked: Ints
    request: Decoded
    answered: Ints
    response: Decoded


MessagesOf = Callable[[Exchanges, Declared, Ints], Messages]


def note_answers(exchanges: Exchanges) -> None:
    """Decode what no table is made of, for its faults, errors and throttle times."""
    for declared in WITHOUT_ROWS:
        which = exchanges.of_api(declared.request.api_key)
        if len(which):
            note_members(exchanges, decode_both(exchanges, declared, which))


def note_members(exchanges: Exchanges, messages: Messages) -> None:
    """Keep the group and member that requests say they come from."""
    top = messages.request.levels[""]
    for hashes, name in zip(exchanges.member, MEMBER, strict=True):
        if f"{name}.start" in top.names:
            starts, lengths = top.span(name)
            told = np.flatnonzero(lengths > 0)
            hashes[messages.asked[told]] = exchanges.names.learn(exchanges.frames.arena, starts[told], lengths[told])


def decode_both(exchanges: Exchanges, declared: Declared, which: Ints) -> Messages:
    """Decode the exchanges `which` of one API; faults, errors and throttle times are noted with them."""
    asked, bodies = request_bodies(exchanges, which)
    request = decode(declared.request, exchanges.frames.arena, *bodies)
    note_faults(exchanges, asked, request.fault)
    answered, bodies = response_bodies(exchanges, which)
    response = decode(declared.response, exchanges.frames.arena, *bodies)
    fine = note_faults(exchanges, answered, response.fault)
    messages = Messages(asked, request, answered, response)
    exchanges.error[answered[fine]] = response_errors(messages)[fine]
    top = response.levels[""]
    if THROTTLE in top.names:
        exchanges.throttle[answered[fine]] = top.column(THROTTLE)[fine]
    return messages


def response_errors(messages: Messages) -> Ints:
    """By response its top-level error, else the first of another level, else 0; int64[responses]."""
    levels = messages.response.levels
    has_error = ERROR_CODE in levels[""].names
    errors = levels[""].column(ERROR_CODE).copy() if has_error else np.zeros(len(messages.answered), np.int64)
    for path, level in levels.items():
        if path and ERROR_CODE in level.names:
            wrong = np.flatnonzero(level.column(ERROR_CODE))
            frame = frames_of(messages.response, path)[wrong]
            first, at = np.unique(frame, return_index=True)
            errors[first] = np.where(errors[first] == 0, level.column(ERROR_CODE)[wrong[at]], errors[first])
    return errors


def frames_of(decoded: Decoded, path: str) -> Ints:
    """The frame of each row of a level, however many arrays deep."""
    frames = decoded.levels[path].parent
    while path:
        path = path.rpartition(".")[0]
        if path and path in decoded.levels:  # a dotted name can be a struct's, which is no level
            frames = decoded.levels[path].parent[frames]
    return frames
