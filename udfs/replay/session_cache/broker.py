"""One broker in the replay of fetch sessions: the state that is carried from one part of its fetches to the next."""

from __future__ import annotations

import zlib
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from udfs.columns.arrays import Ints, Records
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import ALWAYS
from udfs.replay.session_cache.clients import new_clients
from udfs.replay.session_cache.contents.state import Contents, new_contents
from udfs.replay.session_cache.fidelity import METRICS, VERDICTS
from udfs.replay.session_cache.memory import new_cache, note_fullest, with_clients, with_headroom
from udfs.replay.session_cache.more_consumers import DealtPartitions, first_shares
from udfs.replay.session_cache.order import OVERLAP_US, turn_of
from udfs.replay.session_cache.settings import SessionLanes, with_unlimited
from udfs.replay.session_cache.slots import new_spans, with_spans
from udfs.replay.session_cache.state import (
    BUCKET,
    CACHE_OUTCOME,
    EVICTION,
    SESSION_FETCH,
    UNSEEN,
    BrokerSim,
    Buckets,
    CapturedSessions,
    Clients,
)
from udfs.replay.shared.window import Window
from udfs.wire.fetch_sizes import FIRST_WITH_TOPIC_IDS

EVICTIONS_AT_ONCE = 4096
"""How many evictions are noted one by one before they are summed up."""


@dataclass
class BrokerReplay:
    """One broker's sessions in all lanes, after the fetches that have come so far."""

    name: str
    sim: BrokerSim
    captured: CapturedSessions
    window: Window
    in_window: bool  # the window has begun: events count
    dealt: DealtPartitions
    sizes: Ints  # of `unfinished`, from DealtPartitions.sizes
    clients: Clients = field(default_factory=new_clients)
    contents: Contents = field(default_factory=new_contents)
    turns: Records = field(default_factory=lambda: turn_of(NONE))
    unfinished: Records = field(
        default_factory=lambda: np.zeros(0, SESSION_FETCH)
    )  # fetches that have not been answered yet
    names: list[int] = field(default_factory=list)  # the broker's clients, each by its number in Keys.clients
    name_of: Ints = field(default_factory=lambda: np.full(0, NONE))  # the index in `names` of each number, or NONE
    evictions: Counter[tuple[int, int, int]] = field(default_factory=Counter)  # by lane, evictor and victim
    fetches: int = 0  # how many have come
    life: int = 0  # how often all connections to the broker have ended; each time it may have been restarted
    begin_us: int = NONE  # when the first request of this life came
    knows_turn: bool = False  # the first shard of this life has been looked for

    @property
    def shards(self) -> int:
        """How many shards the captured broker's cache has."""
        return int(self.captured.cache.settings["shards"][0])


def new_broker(name: str, lanes: SessionLanes, seed: str) -> BrokerReplay:
    """A broker before its first fetch. seed: with the broker's name, it seeds the random session ids."""
    start = zlib.crc32(f"{seed}:{name}".encode())
    sim, captured = new_sim(with_unlimited(lanes.settings), start), new_captured(lanes.settings[:1], start)
    dealt = DealtPartitions(np.unique(lanes.settings["consumers"]))
    return BrokerReplay(
        name,
        sim,
        captured,
        lanes.window,
        in_window=lanes.window.begin == ALWAYS,
        dealt=dealt,
        sizes=np.zeros((0, int(dealt.counts.sum())), np.int64),
    )


def new_sim(settings: Records, seed: int) -> BrokerSim:
    """All lanes of a broker before its first fetch. settings: CACHE_SETTINGS[lanes]. seed: of the random ids."""
    cache, clients = new_cache(settings, seed), int(np.unique(settings["consumers"]).sum())
    lanes, shards = cache.live.shape
    buckets = Buckets(
        captured=np.zeros(0, BUCKET),
        outcomes=np.zeros((0, lanes), CACHE_OUTCOME),
        occupied=np.zeros((0, lanes, shards), np.int64),
        used=np.zeros(1, np.int64),
    )
    return BrokerSim(
        cache=cache,
        first_share=first_shares(settings),
        awaited=np.full(0, NONE),
        names=np.zeros(0, np.int64),
        buckets=buckets,
        evictions=np.zeros(EVICTIONS_AT_ONCE + clients * lanes, EVICTION),
        evicted=np.zeros(1, np.int64),
    )


def new_captured(settings: Records, seed: int) -> CapturedSessions:
    """The captured broker before its first fetch. settings: CACHE_SETTINGS[1]. seed: of the random ids."""
    unseen = np.zeros(1, SESSION_FETCH)
    unseen["owner"], unseen["privileged"], unseen["version"] = UNSEEN, 1, FIRST_WITH_TOPIC_IDS
    return CapturedSessions(
        cache=new_cache(settings, seed),
        verdicts=np.zeros((0, len(METRICS), VERDICTS), np.int64),
        closed_us=np.full(settings["shards"][0], -OVERLAP_US),
        unseen=unseen,
        spans=new_spans(),
    )


def make_room_to_replay(broker: BrokerReplay, buckets: int, grants: int) -> None:
    """Make room for all known clients, for `buckets` more buckets of time and for `grants` more full fetches."""
    clients, sim, captured = int(broker.clients.known[0]), broker.sim, broker.captured
    in_lanes = clients * int(sim.cache.settings["consumers"].max())
    broker.sim = sim._replace(
        cache=with_clients(sim.cache, in_lanes),
        awaited=lengthen_array(sim.awaited, in_lanes, NONE),
        names=lengthen_array(sim.names, in_lanes, 0),
        buckets=with_buckets(sim.buckets, buckets),
    )
    verdicts = lengthen_array(captured.verdicts, 2 * len(broker.names), 0)
    broker.captured = captured._replace(
        cache=with_clients(captured.cache, clients), verdicts=verdicts, spans=with_spans(captured.spans, grants)
    )


def make_headroom(broker: BrokerReplay, clients: int) -> None:
    """Make room for more sessions and evictions. clients: how many clients may send one captured fetch in a lane."""
    count_evictions(broker)
    broker.sim = broker.sim._replace(cache=with_headroom(broker.sim.cache, clients))
    broker.captured = broker.captured._replace(cache=with_headroom(broker.captured.cache, 1))


def lengthen_array(values: Ints, length: int, filler: int) -> Ints:
    """The values, int64[n, ...], if they are long enough; otherwise padded with `filler`, int64[2 * length, ...]."""
    if len(values) >= length:
        return values
    missing = 2 * length - len(values)
    return np.concatenate([values, np.full((missing, *values.shape[1:]), filler)])


def with_buckets(buckets: Buckets, more: int) -> Buckets:
    """The buckets, with room for `more` further ones."""
    used = int(buckets.used[0])
    if used + more <= len(buckets.captured):
        return buckets

    def longer(column: Any) -> Any:
        return np.concatenate([column[:used], np.zeros((used + 2 * more, *column.shape[1:]), column.dtype)])

    return Buckets(longer(buckets.captured), longer(buckets.outcomes), longer(buckets.occupied), buckets.used)


def some_buckets(buckets: Buckets, first: int, end: int) -> Buckets:
    """The buckets from `first` to before `end`."""
    some, count = slice(first, end), np.full(1, end - first)
    return Buckets(buckets.captured[some], buckets.outcomes[some], buckets.occupied[some], count)


def complete_buckets(broker: BrokerReplay) -> Buckets:
    """Take out all buckets of time except the last one, which is not over."""
    buckets, used = broker.sim.buckets, int(broker.sim.buckets.used[0])
    broker.sim = broker.sim._replace(buckets=some_buckets(buckets, used - 1, used))
    return some_buckets(buckets, 0, used - 1)


def begin_window(broker: BrokerReplay) -> None:
    """Forget the counts from before the window. Sessions stay."""
    buckets, used = broker.sim.buckets, int(broker.sim.buckets.used[0])
    broker.sim = broker.sim._replace(buckets=some_buckets(buckets, used, used))
    broker.sim.cache.totals["not_found"] = 0
    note_fullest(broker.sim.cache)
    broker.evictions.clear()
    broker.captured.verdicts[...] = 0
    broker.in_window = True


def count_evictions(broker: BrokerReplay) -> None:
    """Add the evictions that the lanes have noted to `broker.evictions`, and empty the lanes' list."""
    noted = broker.sim.evictions[: broker.sim.evicted[0]]
    if not len(noted):
        return
    rows = np.stack([noted["lane"], noted["evictor"], noted["victim"]], axis=1)
    distinct, counts = np.unique(rows, axis=0, return_counts=True)
    for (lane, evictor, victim), count in zip(distinct.tolist(), counts.tolist(), strict=True):
        broker.evictions[lane, evictor, victim] += count
    broker.sim.evicted[0] = 0
