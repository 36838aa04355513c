"""How long brokers handle requests, whose memory they hold meanwhile.

A request log shows it. Without one, a request's response and the fetches of its batches are only upper bounds: both
come later, when replicas have the records, members of a group have joined, or a network thread has time. So the time is
estimated from requests that wait for nothing but the broker, and that the same broker answered at about that time. The
estimate is never above the bound. VALIDATION.md says how good it is.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from schemas.tables.event_kinds import HandledBy
from schemas.wire.apis import API_KEYS
from schemas.wire.produce import PRODUCE_REQUEST
from udfs.columns.arrays import Bools, Ints, Records
from udfs.columns.time_units import NEVER
from udfs.replay.consumer_memory.traces import is_delayed, read_at

NEAREST = 7
"""The median over so many requests, those nearest in time, is the estimate."""
ANSWERED_AT_ONCE = tuple(
    API_KEYS[name]
    for name in (
        "API_VERSIONS", "METADATA", "LIST_OFFSETS", "FIND_COORDINATOR", "OFFSET_FOR_LEADER_EPOCH", "HEARTBEAT",
        "OFFSET_FETCH", "DESCRIBE_CLUSTER", "DESCRIBE_CONFIGS", "SASL_HANDSHAKE",
    )
)  # fmt: skip
"""APIs whose requests wait for no other broker or client. Produce requests wait for replicas with acks=all only."""


def handled_requests(exchanges: Records) -> Records:
    """The requests of brokers with the times at which they were handled, as shown or estimated: EXCHANGE[n].

    exchanges: EXCHANGE[n], each broker's in the order of their requests.
    """
    handled, requested_at, response_us = exchanges.copy(), exchanges["requested_at"], exchanges["response_us"]
    came_at = read_at(exchanges)
    # A request log tells how long a request was handled since the broker had read it.
    is_logged = exchanges["handled_by"] == HandledBy.REQUEST_LOG
    handled["handled_at"] += np.where(is_logged, came_at - requested_at, 0)
    answered_at = requested_at + response_us
    at_most_us = np.minimum(exchanges["handled_at"], answered_at) - came_at
    estimate_us = times_at_once(exchanges, came_at, answered_at - came_at)
    is_estimated = is_delayed(exchanges) & ~is_logged & (estimate_us < at_most_us)
    handled["handled_at"][is_estimated] = (came_at + estimate_us)[is_estimated]
    handled["handled_by"][is_estimated] = HandledBy.PACE
    return handled


def times_at_once(exchanges: Records, came_at: Ints, took_us: Ints) -> Ints:
    """How long requests took that each request's broker answered at once at about the same time: int64[n], us, NEVER if
    the capture has none.

    exchanges: EXCHANGE[n]. came_at: int64[n], us, when the broker read each. took_us: int64[n], from then to the
    response.
    """
    found, at_once = np.full(len(exchanges), NEVER), is_answered_at_once(exchanges)
    for unit in np.unique(exchanges["unit"][at_once]).tolist():
        own = np.flatnonzero(exchanges["unit"] == unit)
        shown = own[at_once[own]]
        shown = shown[np.argsort(came_at[shown], kind="stable")]
        medians = np.median(sliding_window_view(took_us[shown], min(NEAREST, len(shown))), axis=1)
        place = np.searchsorted(came_at[shown], came_at[own]) - NEAREST // 2
        found[own] = medians[np.clip(place, 0, len(medians) - 1)]
    return found


def is_answered_at_once(exchanges: Records) -> Bools:
    """Whether the response of each request came once the broker had handled it: bool[n]. exchanges: EXCHANGE[n]."""
    is_produce = (exchanges["api_key"] == PRODUCE_REQUEST.api_key) & (exchanges["handled_by"] == HandledBy.RESPONSE)
    return (is_produce | np.isin(exchanges["api_key"], ANSWERED_AT_ONCE)) & (exchanges["response_us"] > 0)
