"""A broker's lanes in the replay of fetch sessions: what they set, what they hold, and what they come to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints, Record, Records
from udfs.kernels.kernel import kernel
from udfs.replay.session_cache.cache_room import new_cache
from udfs.replay.session_cache.session_cache import GREATEST_ID, MOST_SHARDS, Cache, CacheSettings
from udfs.replay.session_cache.session_fetches import NO_TIME, WITHOUT_SESSION

FULL, INCREMENTAL, SESSIONLESS = range(3)
EVICTIONS_AT_ONCE = 4096
"""So many are noted one by one before they are summed up."""
SUMS = ("fetches", "full_fetches", "created", "refused", "refused_despite_room", "evicted", "evicted_despite_room",
        "not_found", "partitions_reread", "request_bytes", "response_bytes")  # fmt: skip
"""What a lane comes to, columns of the table SESSION_CACHE."""

LANE_CLIENT = np.dtype(
    [
        ("asked", np.int64),  # the fetch that waits for its response
        ("id", np.int64),  # session id of the next request
        ("epoch", np.int64),
        ("answer", np.int64),  # FULL, INCREMENTAL or SESSIONLESS
    ],
    align=True,
)
OUTCOME = np.dtype([(name, np.int64) for name in SUMS], align=True)
"""Sums of a lane over a bucket of time."""


@dataclass(frozen=True)
class SessionLanes:
    """The lanes of a replay: names, and settings; lane 0 is the captured one."""

    names: tuple[str, ...]
    settings: CacheSettings


class Lanes(NamedTuple):
    """All lanes of one broker.

    clients: LANE_CLIENT[lanes, clients]. outcomes: OUTCOME[lanes]. occupied: int64[lanes, MOST_SHARDS], most sessions
    of each shard in the bucket. evictions: int64[room, 3] of (lane, evictor, victim), numbers of names; evicted:
    int64[1], how many there are. names: int64[clients], the number of each client's name.
    """

    cache: Cache
    clients: Records
    outcomes: Records
    occupied: Ints
    evictions: Ints
    evicted: Ints
    names: Ints


def with_unlimited(settings: CacheSettings) -> CacheSettings:
    """The lanes, and behind them one a number of shards that never has to refuse or evict."""
    shards = np.unique(settings.shards)
    more = np.full(len(shards), GREATEST_ID), shards, np.full(len(shards), 0), np.zeros(len(shards), np.int64)
    return CacheSettings(*(np.concatenate(pair) for pair in zip(settings, more, strict=True)))


def captured_only(settings: CacheSettings) -> CacheSettings:
    """Lane 0 alone."""
    return CacheSettings(*(column[:1] for column in settings))


def new_lanes(settings: CacheSettings, seed: int) -> Lanes:
    """All lanes of a broker before its first fetch."""
    lanes = len(settings.slots)
    room = EVICTIONS_AT_ONCE + lanes
    return Lanes(
        new_cache(settings, seed), np.zeros((lanes, 16), LANE_CLIENT), np.zeros(lanes, OUTCOME),
        np.zeros((lanes, MOST_SHARDS), np.int64), np.zeros((room, 3), np.int64), np.zeros(1, np.int64),
        np.zeros(16, np.int64),
    )  # fmt: skip


@kernel
def bytes_of(captured: int, captured_body: int, body: int) -> int:
    """Bytes of a message that differs from the captured one in its body alone; a captured size below 0 is unknown."""
    return body if captured < 0 else captured + body - captured_body


@kernel
def note_request(lanes: Lanes, lane: int, fetch: Record, is_full: bool) -> None:
    """Count a request."""
    outcome = lanes.outcomes[lane]
    outcome.fetches += 1
    body = fetch.request_full if is_full else fetch.request_incremental
    captured_body = fetch.request_full if fetch.epoch <= 0 else fetch.request_incremental
    outcome.request_bytes += bytes_of(fetch.request_bytes, captured_body, body)
    if is_full:
        outcome.full_fetches += 1
        outcome.partitions_reread += fetch.size - fetch.listed if fetch.act != WITHOUT_SESSION else 0


@kernel
def note_response(lanes: Lanes, lane: int, fetch: Record, body: int) -> None:
    """Count a response with a body of so many bytes, unless the capture has none."""
    if fetch.response_us == NO_TIME:
        return
    captured_body = fetch.response_full if fetch.epoch <= 0 else fetch.response_captured
    captured_body = fetch.response_empty if fetch.is_throttled == 1 else captured_body
    lanes.outcomes[lane].response_bytes += bytes_of(fetch.response_bytes, captured_body, body)
