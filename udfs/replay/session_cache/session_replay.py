"""The pass over brokers: each captured fetch as an intent, played in every lane, and the captured lane judged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from schemas.tables.steps import SESSION_EVENTS
from schemas.tables.table import Table
from udfs.columns.arrays import Ints, Records
from udfs.columns.arrow_columns import gathered_batches
from udfs.facts.arrow_tables import packed_together
from udfs.replay.session_cache.cache_room import empty
from udfs.replay.session_cache.session_broker import (
    BUCKET_US,
    BrokerReplay,
    Bucket,
    count_evictions,
    joined,
    make_room,
    new_broker,
    provide,
)
from udfs.replay.session_cache.session_cache import INITIAL_EPOCH
from udfs.replay.session_cache.session_captured import CAPTURED, count_captured
from udfs.replay.session_cache.session_clients import larger_clients, tell_clients
from udfs.replay.session_cache.session_contents import measure_all
from udfs.replay.session_cache.session_entries import Partitions, larger_memory
from udfs.replay.session_cache.session_events import events_of
from udfs.replay.session_cache.session_fidelity import judge
from udfs.replay.session_cache.session_lanes import OUTCOME, SessionLanes
from udfs.replay.session_cache.session_loop import play
from udfs.replay.session_cache.session_order import (
    MOMENT,
    UNKNOWN_PHASE,
    begins_again,
    first_shard,
    in_order,
    moments_of,
    of_whole_requests,
    order_responses,
)
from udfs.replay.session_cache.session_report import broker_rows
from udfs.replay.session_cache.session_spans import close_all, follow_spans
from udfs.replay.shared.rows_by_key import by_key, whole_fetches
from udfs.wire.fetch_sizes import fetch_sizes

PHASE_WITHIN_US = (10_000_000, 60_000_000)
"""The ids of the first 10 s tell whose turn it is, else those of the first 60."""
ROWS_AT_A_TIME = 100_000
"""So many that the work by batch does not count."""


def replay_sessions(
    batches: Iterable[pa.RecordBatch], lanes: SessionLanes, run_id: str, seed: str
) -> Iterator[pa.RecordBatch]:
    """Packed rows of gold tables from rows of SESSION_EVENTS, sorted by broker, request time, fetch and position."""
    yield from packed_together(rows_of_brokers(batches, lanes, run_id, seed))


def rows_of_brokers(
    batches: Iterable[pa.RecordBatch], lanes: SessionLanes, run_id: str, seed: str
) -> Iterator[tuple[Table, pa.RecordBatch]]:
    """The rows of one broker after the other, each as soon as it is final."""
    t = SESSION_EVENTS
    for (broker,), of_broker in by_key(whole_fetches(gathered_batches(batches, ROWS_AT_A_TIME)), (t.broker,)):
        now = new_broker(broker, lanes, seed)
        for (life,), parts in by_key(of_broker, (t.life,)):
            begin_life(now, life)
            for part in parts:
                take(now, *events_of(part, now.names, now.number))
                yield from broker_rows(now, lanes, run_id, is_done=False)
        go_on(now, None)
        yield from broker_rows(now, lanes, run_id, is_done=True)


def begin_life(now: BrokerReplay, life: int) -> None:
    """Go over to fetches in other connections, where all had ended: what of the others is open stays so."""
    if life != now.life:
        go_on(now, None)
        now.life, now.begin_us, now.has_begun = life, -1, False


def take(now: BrokerReplay, fetches: Records, rows: Partitions) -> None:
    """Take some fetches of the broker with all their partitions, and play all whose time has come."""
    now.number += len(fetches)
    if now.begin_us < 0:
        now.begin_us = int(fetches["request_us"][0])
    if now.judged.start[0] < 0:
        now.judged.start[0] = now.begin_us
    last_us, is_cut = int(fetches["request_us"][-1]), fetches["is_cut"] == 1
    if is_cut.any():
        cut, fetches = fetches.compress(is_cut), fetches.compress(~is_cut)
        cut["asked_us"] = cut["request_us"]
        await_moments(now, cut)
    find_out(now, fetches, rows)
    await_moments(now, fetches)
    go_on(now, last_us)


def find_out(now: BrokerReplay, fetches: Records, rows: Partitions) -> None:
    """Say of each fetch whose it is, why it was sent, and what is in it."""
    done = 0
    while (done := tell_clients(fetches, done, now.clients)) < len(fetches):
        now.clients = larger_clients(now.clients)
    make_room(now, int((fetches["epoch"] == INITIAL_EPOCH).sum()))
    now.lanes.names[fetches["owner"]] = fetches["name"]
    done = 0
    while (done := measure_all(fetches, done, rows, now.memory, fetch_sizes())) < len(fetches):
        now.memory = larger_memory(now.memory)


def await_moments(now: BrokerReplay, fetches: Records) -> None:
    """Put the moments of these fetches among those that are to come."""
    moments = moments_of(fetches)
    moments["fetch"] += len(now.fetches)
    now.fetches = joined(now.fetches, fetches)
    now.moments = in_order(joined(now.moments, moments), now.fetches)


def go_on(now: BrokerReplay, before_us: int | None) -> None:
    """Play the moments before this time, or all of them."""
    end = len(now.moments) if before_us is None else int(np.searchsorted(now.moments["us"], before_us))
    shards = int(now.captured.shards[0])
    if not now.has_begun and not begins(now, before_us, shards):
        return
    order_responses(now.moments, now.fetches, end, now.phase, shards, np.zeros(1, MOMENT))
    moments = of_whole_requests(now.moments[:end], now.fetches)
    follow_spans(moments, 0, len(moments), now.fetches, now.spans, shards)
    run_judge(now, moments)
    run_lanes(now, moments, np.unique(now.moments["us"][:end] // BUCKET_US))
    count_evictions(now)
    forget_played(now, end)


def begins(now: BrokerReplay, before_us: int | None, shards: int) -> bool:
    """Find whose turn it is, at first and where all connections had ended; False where later fetches may tell."""
    expected, phase, is_restarted = int(now.phase[0]), UNKNOWN_PHASE, False
    for within_us in PHASE_WITHIN_US:
        until_us = now.begin_us + within_us
        if before_us is not None and before_us < until_us:
            return False
        first = now.moments[: np.searchsorted(now.moments["us"], until_us)]
        phase = first_shard(first, now.fetches, shards)
        is_restarted = expected != UNKNOWN_PHASE and begins_again(first, now.fetches, expected, shards)
        if phase != UNKNOWN_PHASE:
            break
    now.has_begun = True
    if is_restarted:
        restart(now)
    elif expected == UNKNOWN_PHASE:
        now.phase[0] = phase
        now.lanes.cache.placed[:] = max(phase, 0)
    return True


def restart(now: BrokerReplay) -> None:
    """The broker was started anew: it has no session, and its counter begins again."""
    now.phase[:] = 0, 1
    for cache in (now.lanes.cache, now.judged.cache):
        empty(cache)
    close_all(now.spans, now.begin_us)


def run_judge(now: BrokerReplay, moments: Records) -> None:
    """Judge these moments."""
    done = 0
    while (done := judge(moments, done, len(moments), now.fetches, now.judged, now.captured)) < len(moments):
        provide(now)


def run_lanes(now: BrokerReplay, moments: Records, numbers: Ints) -> None:
    """Play these moments, a bucket of time after the other. numbers: of the buckets, int64[n]."""
    first = 0
    for number, last in zip(numbers.tolist(), np.searchsorted(moments["us"], (numbers + 1) * BUCKET_US), strict=True):
        if not now.buckets or now.buckets[-1].number != number:
            begin_bucket(now, number)
        done = first
        while (done := play(moments, done, last, now.fetches, now.lanes, now.settings)) < last:
            provide(now)
        note_lanes(now)
        count_captured(moments, first, last, now.fetches, now.buckets[-1].captured)
        first = last


def begin_bucket(now: BrokerReplay, number: int) -> None:
    """Begin a bucket of time."""
    lanes = now.lanes
    lanes.outcomes[:] = np.zeros(1, OUTCOME)
    lanes.occupied[:] = lanes.cache.live
    live, cache, captured = lanes.cache.live[:, 0], lanes.cache, np.zeros(1, CAPTURED)
    now.buckets.append(
        Bucket(number, lanes.outcomes, lanes.occupied, live, cache.followers, cache.partitions, captured)
    )


def note_lanes(now: BrokerReplay) -> None:
    """Keep what the lanes came to so far in the bucket at hand."""
    lanes, bucket = now.lanes, now.buckets[-1]
    bucket.outcomes, bucket.occupied = lanes.outcomes.copy(), lanes.occupied.copy()
    bucket.live, bucket.cached = lanes.cache.live.sum(axis=1), lanes.cache.partitions.copy()
    bucket.followers = lanes.cache.followers.copy()
    now.fullest = np.maximum(now.fullest, bucket.occupied.max(axis=1))


def forget_played(now: BrokerReplay, end: int) -> None:
    """Keep the moments that are to come, and their fetches."""
    now.moments = now.moments[end:].copy()
    kept, at = np.unique(now.moments["fetch"], return_inverse=True)
    now.fetches, now.moments["fetch"] = now.fetches.take(kept), at
