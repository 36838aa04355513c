"""The pass over brokers: it replays the events of share sessions in every lane, and judges the captured lane."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.tables.table import Table
from udfs.columns.arrays import Records
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import ALWAYS, NEVER
from udfs.facts.arrow_tables import pack_tables
from udfs.replay.session_cache.dispatch import BUCKET_US
from udfs.replay.session_cache.settings import ShareLanes, with_unlimited_shares
from udfs.replay.session_cache.share_sessions.dispatch import replay_shares
from udfs.replay.session_cache.share_sessions.events import ShareKeys, parts_of_brokers, share_events_of
from udfs.replay.session_cache.share_sessions.rows import ShareBuckets, ShareResult, share_tables
from udfs.replay.session_cache.share_sessions.share_fidelity import SHARE_METRICS, SHARE_VERDICTS
from udfs.replay.session_cache.share_sessions.state import (
    CAPTURED_SHARES,
    EPOCH_UNKNOWN,
    LANE_MEMBER,
    NEVER_CLOSED,
    OPENED,
    SHARE_OUTCOME,
    SHARE_SESSION,
    SHOWN,
    SHOWN_MEMBER,
    CapturedShareSessions,
    ShareCache,
    ShareSim,
)
from udfs.replay.shared.window import Window


@dataclass
class BrokerShareReplay:
    """One broker's share sessions in all lanes, after the events that have come so far."""

    name: str
    sim: ShareSim
    captured: CapturedShareSessions
    in_window: bool
    keys: ShareKeys = field(default_factory=ShareKeys)
    buckets: list[ShareBuckets] = field(default_factory=list)
    life: int = NONE


def replay_share_sessions(
    batches: Iterable[pa.RecordBatch], lanes: ShareLanes, run_id: str
) -> Iterator[pa.RecordBatch]:
    """Packed rows of gold tables from rows of SHARE_EVENTS, sorted by broker and time."""
    yield from pack_tables(rows_of_share_brokers(batches, lanes, run_id))


def rows_of_share_brokers(
    batches: Iterable[pa.RecordBatch], lanes: ShareLanes, run_id: str
) -> Iterator[tuple[Table, pa.RecordBatch]]:
    """The rows of one broker after the other."""
    for name, parts in groupby(parts_of_brokers(batches), key=lambda part: part[0]):
        broker = new_share_broker(name, lanes)
        for _, rows in parts:
            take_part(broker, share_events_of(rows, broker.keys), lanes.window)
        if not broker.in_window:
            begin_share_window(broker)
        yield from share_tables(result_of_shares(broker), lanes, run_id)


def new_share_broker(name: str, lanes: ShareLanes) -> BrokerShareReplay:
    """A broker before its first event."""
    settings, members = with_unlimited_shares(lanes.settings), np.zeros(0, SHOWN_MEMBER)
    shown = np.zeros(1, SHOWN)
    shown["closed_us"], shown["at_most"] = NEVER_CLOSED, NEVER
    verdicts = np.zeros((0, len(SHARE_METRICS), SHARE_VERDICTS), np.int64)
    no_counts = np.zeros(0, CAPTURED_SHARES)
    captured = CapturedShareSessions(
        new_share_cache(lanes.settings[:1]), members, shown, np.zeros(0, np.int64), no_counts, verdicts
    )
    in_lanes = np.zeros((0, len(settings)), LANE_MEMBER)
    return BrokerShareReplay(
        name,
        ShareSim(new_share_cache(settings), in_lanes, np.zeros((0, len(settings)), SHARE_OUTCOME)),
        captured,
        in_window=lanes.window.begin == ALWAYS,
    )


def new_share_cache(settings: Records) -> ShareCache:
    """Empty caches of lanes. settings: SHARE_SETTINGS[lanes]."""
    lanes = len(settings)
    nobody, no_connection = np.zeros((0, lanes), SHARE_SESSION), np.zeros((0, lanes), OPENED)
    return ShareCache(settings, np.zeros(lanes, np.int64), np.zeros(lanes, np.int64), nobody, no_connection)


def take_part(broker: BrokerShareReplay, events: Records, window: Window) -> None:
    """Take some events of the broker, in order. Events after the window are left out. events: SHARE_EVENT[n]."""
    make_room(broker)
    within = events[: np.searchsorted(events["us"], window.end)]
    begin = 0 if broker.in_window else int(np.searchsorted(within["us"], window.begin))
    replay_lives(broker, within[:begin])
    if begin < len(within) and not broker.in_window:
        begin_share_window(broker)
    replay_lives(broker, within[begin:])


def replay_lives(broker: BrokerShareReplay, events: Records) -> None:
    """Replay these events. A broker that begins another life has no session."""
    cuts = [0, *(np.flatnonzero(np.diff(events["life"])) + 1).tolist(), len(events)]
    for first, end in pairwise(cuts):
        if end == first:
            continue
        life = int(events["life"][first])
        if broker.life not in (NONE, life):
            empty_shares(broker)
        broker.life = life
        numbers, bucket = np.unique(events["us"][first:end] // BUCKET_US, return_inverse=True)
        lanes = len(broker.sim.cache.settings)
        broker.sim = broker.sim._replace(outcomes=np.zeros((len(numbers), lanes), SHARE_OUTCOME))
        broker.captured = broker.captured._replace(counts=np.zeros(len(numbers), CAPTURED_SHARES))
        replay_shares(events[first:end].copy(), bucket.astype(np.int64), broker.captured, broker.sim)
        if broker.in_window:
            broker.buckets.append(ShareBuckets(numbers, broker.captured.counts, broker.sim.outcomes))


def make_room(broker: BrokerShareReplay) -> None:
    """Make room for all known members and connections."""
    members, connections = len(broker.keys.members), len(broker.keys.connections)
    sim, captured = broker.sim, broker.captured
    broker.sim = sim._replace(
        cache=with_room(sim.cache, members, connections),
        members=longer(sim.members, members, (("waits_since_us", NONE),)),
    )
    shown = (
        ("expected", EPOCH_UNKNOWN),
        ("is_certain", 1),
        ("ended_us", NEVER),
        ("client", NONE),
        ("connection", NONE),
    )
    broker.captured = captured._replace(
        cache=with_room(captured.cache, members, connections),
        members=longer(captured.members, members, shown),
        unseen=longer(captured.unseen, connections, ()),
        verdicts=longer(captured.verdicts, members, ()),
    )


def with_room(cache: ShareCache, members: int, connections: int) -> ShareCache:
    """The caches, with room for `members` members and `connections` connections."""
    return cache._replace(
        sessions=longer(cache.sessions, members, ()), opened=longer(cache.opened, connections, (("member", NONE),))
    )


def longer(values: Any, rows: int, fillers: Iterable[tuple[str, int]]) -> Any:
    """An array with at least `rows` rows. New rows are zeros, except for the fields in `fillers`."""
    if len(values) >= rows:
        return values
    more = np.zeros((2 * rows - len(values), *values.shape[1:]), values.dtype)
    for name, filler in fillers:
        more[name] = filler
    return np.concatenate([values, more])


def empty_shares(broker: BrokerShareReplay) -> None:
    """Remove all sessions, as when a broker starts."""
    for cache in (broker.sim.cache, broker.captured.cache):
        cache.live[...] = 0
        cache.sessions["epoch"] = cache.sessions["is_closing"] = 0
        cache.opened["member"] = NONE
    broker.captured.shown["closing"] = broker.captured.shown["unseen"] = 0
    broker.captured.unseen[...] = 0


def begin_share_window(broker: BrokerShareReplay) -> None:
    """Forget the counts from before the window. Sessions stay."""
    broker.sim.cache.fullest[...] = broker.sim.cache.live
    for name in ("requests", "created", "refused", "waited_us"):
        broker.sim.members[name] = 0
    broker.captured.verdicts[...] = 0
    broker.in_window = True


def result_of_shares(broker: BrokerShareReplay) -> ShareResult:
    """The outcome of a broker, once all its events were replayed."""
    return ShareResult(
        name=broker.name,
        members=list(broker.keys.members),
        clients=list(broker.keys.clients),
        buckets=broker.buckets,
        fullest=broker.sim.cache.fullest,
        lane_members=broker.sim.members,
        shown_members=broker.captured.members,
        shown=allowed_sessions(broker.captured.shown),
        verdicts=broker.captured.verdicts,
    )


def allowed_sessions(shown: Records) -> tuple[int, int | None]:
    """(the fewest sessions that the captured broker can have allowed; the most, None if it refused none)."""
    at_least, at_most = int(shown["at_least"][0]), int(shown["at_most"][0])
    return at_least, None if at_most == NEVER else at_most
