"""One broker in the replay of fetch sessions: all that is carried from one part of its fetches to the next."""

from __future__ import annotations

import zlib
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from udfs.columns.arrays import Ints, Records
from udfs.replay.session_cache.cache_room import new_cache, with_room
from udfs.replay.session_cache.session_cache import INITIAL_EPOCH, MOST_SHARDS, CacheSettings
from udfs.replay.session_cache.session_clients import Clients, new_clients
from udfs.replay.session_cache.session_entries import CONTENTS, Memory, new_memory
from udfs.replay.session_cache.session_fetches import FETCH
from udfs.replay.session_cache.session_fidelity import Judged
from udfs.replay.session_cache.session_lanes import (
    LANE_CLIENT,
    Lanes,
    SessionLanes,
    captured_only,
    new_lanes,
    with_unlimited,
)
from udfs.replay.session_cache.session_order import MOMENT, OVERLAP_US, UNKNOWN_PHASE
from udfs.replay.session_cache.session_spans import Spans, new_spans, roomy_spans
from udfs.replay.session_cache.session_verdicts import CODE_COUNT, METRICS

BUCKET_US = 10_000_000


@dataclass
class Bucket:
    """Ten seconds of a broker: what each lane did in them and held at their end, and what was captured."""

    number: int
    outcomes: Records  # OUTCOME[lanes]
    occupied: Ints  # int64[lanes, shards]
    live: Ints
    followers: Ints
    cached: Ints
    captured: Records  # CAPTURED[1]


@dataclass
class BrokerReplay:
    """One broker's sessions in all lanes, as far as its fetches have come.

    life: how often all connections had ended. has_begun: it is known whose turn it was first in this life, which began
    with the request at begin_us.
    """

    broker: str
    settings: CacheSettings
    lanes: Lanes
    judged: Judged
    fullest: Ints  # int64[lanes]: most sessions in a shard at a time
    names: dict[str, int] = field(default_factory=dict)
    clients: Clients = field(default_factory=new_clients)
    memory: Memory = field(default_factory=new_memory)
    fetches: Records = field(default_factory=lambda: np.zeros(0, FETCH))
    moments: Records = field(default_factory=lambda: np.zeros(0, MOMENT))
    phase: Ints = field(default_factory=lambda: np.array([UNKNOWN_PHASE, 1]))
    spans: Spans = field(default_factory=new_spans)
    evictions: Counter[tuple[int, int, int]] = field(default_factory=Counter)
    buckets: list[Bucket] = field(default_factory=list)
    number: int = 0
    life: int = 0
    begin_us: int = -1
    has_begun: bool = False

    @property
    def captured(self) -> CacheSettings:
        """The captured lane's settings."""
        return captured_only(self.settings)


def new_broker(broker: str, lanes: SessionLanes, seed: str) -> BrokerReplay:
    """A broker before its first fetch. seed: of the session ids, with the broker's name."""
    settings = with_unlimited(lanes.settings)
    start = zlib.crc32(f"{seed}:{broker}".encode())
    verdicts = np.zeros((2, len(METRICS), CODE_COUNT), np.int64)
    judged = Judged(
        new_cache(captured_only(settings), start), verdicts, np.full(1, -1, np.int64), np.zeros(1, np.int64),
        np.full(MOST_SHARDS, -OVERLAP_US),
    )  # fmt: skip
    return BrokerReplay(broker, settings, new_lanes(settings, start), judged, np.zeros(len(settings.slots), np.int64))


def joined(one: Records, other: Records) -> Records:
    """One behind the other; as bytes, for numpy would copy records field by field."""
    if not len(one):
        return other
    return np.concatenate([np.ascontiguousarray(of).view(np.uint8) for of in (one, other)]).view(other.dtype)


def make_room(now: BrokerReplay, more: int) -> None:
    """Room for all clients that are known, and for so many more full fetches."""
    room, lanes = len(now.clients.state) + 1, now.lanes  # one more, for sessions that no client shows
    if room > len(now.memory.clients):
        now.memory = now.memory._replace(clients=lengthened(now.memory.clients, room, CONTENTS))
        longer = np.zeros((len(lanes.clients), room), LANE_CLIENT)
        longer[:, : lanes.clients.shape[1]] = lanes.clients
        now.lanes = lanes._replace(clients=longer, names=lengthened(lanes.names, room, np.dtype(np.int64)))
    held = int((now.fetches["epoch"] == INITIAL_EPOCH).sum())  # which may come behind these
    now.spans = roomy_spans(now.spans, more + held)
    if 2 * len(now.names) > len(now.judged.verdicts):
        now.judged = now.judged._replace(
            verdicts=np.concatenate(
                [now.judged.verdicts, np.zeros((2 * len(now.names), *now.judged.verdicts.shape[1:]), np.int64)]
            )
        )
    provide(now)


def provide(now: BrokerReplay) -> None:
    """Memory for the caches, and for the evictions to come."""
    clients = len(now.clients.state) + 1
    now.lanes = now.lanes._replace(cache=with_room(now.lanes.cache, now.settings, clients))
    now.judged.unseen[0] = clients - 1
    now.judged = now.judged._replace(cache=with_room(now.judged.cache, now.captured, clients))
    count_evictions(now)


def lengthened(values: Any, length: int, kind: np.dtype[Any]) -> Any:
    """The values with zeros behind them."""
    longer = np.zeros(max(length, len(values)), kind)
    longer[: len(values)] = values
    return longer


def count_evictions(now: BrokerReplay) -> None:
    """Sum up who evicted whom."""
    if now.lanes.evicted[0] == 0:
        return
    told = now.lanes.evictions[: now.lanes.evicted[0]]
    distinct, counts = np.unique(told, axis=0, return_counts=True)
    for (lane, evictor, victim), count in zip(distinct.tolist(), counts.tolist(), strict=True):
        now.evictions[lane, evictor, victim] += count
    now.lanes.evicted[0] = 0
