"""What a broker's replayed fetch sessions come to, as rows of the gold tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from schemas.tables import algorithms
from schemas.tables.gold import FIDELITY
from schemas.tables.gold_sessions import SESSION_CACHE, SESSION_EVICTIONS, SESSION_SLOTS
from schemas.tables.session_reasons import SESSIONS
from schemas.tables.table import Table
from schemas.tables.values import CONSUMER, FOLLOWER
from udfs.columns.arrays import Ints
from udfs.columns.arrow_columns import quotients, repeated
from udfs.columns.time_units import US_PER_MS, US_PER_S
from udfs.facts.arrow_tables import TYPES, rows_of
from udfs.replay.session_cache.session_broker import BUCKET_US, BrokerReplay, Bucket
from udfs.replay.session_cache.session_captured import CAPTURED_SUMS
from udfs.replay.session_cache.session_lanes import SUMS, SessionLanes
from udfs.replay.session_cache.session_spans import slots_range
from udfs.replay.session_cache.session_verdicts import AGREED, CODES, Metric
from udfs.replay.shared.fidelity_rows import NO_REASON, Compared, compared, fidelity_rows
from udfs.replay.shared.key_numbers import client_of

READERS = (CONSUMER, FOLLOWER)
REASONS: Mapping[int, str] = {AGREED: NO_REASON} | {code: reason for reason, code in CODES.items()}


def broker_rows(
    now: BrokerReplay, lanes: SessionLanes, run_id: str, *, is_done: bool
) -> Iterator[tuple[Table, pa.RecordBatch]]:
    """The rows of the buckets that are complete, and at the broker's end all others."""
    whole = now.buckets if is_done else now.buckets[:-1]
    if whole:
        yield SESSION_CACHE, cache_rows(now.broker, whole, lanes, run_id)
        now.buckets = now.buckets[len(whole) :]
    if is_done:
        yield SESSION_EVICTIONS, eviction_rows(now, lanes, run_id)
        yield SESSION_SLOTS, slot_rows(now, lanes, run_id)
        yield FIDELITY, fidelity_rows(session_fidelity(now), algorithms.SESSION_CACHE, run_id)


def cache_rows(broker: str, buckets: Sequence[Bucket], lanes: SessionLanes, run_id: str) -> pa.RecordBatch:
    """Rows of `session_cache`: one a lane and bucket."""
    n, t = len(lanes.names), SESSION_CACHE
    sums = {name: np.concatenate([bucket.outcomes[name][:n] for bucket in buckets]) for name in SUMS}
    shards = lanes.settings.shards.tolist()
    occupied = [row[:count] for bucket in buckets for row, count in zip(bucket.occupied.tolist(), shards, strict=False)]

    def captured(name: str) -> Ints:
        return np.repeat([int(bucket.captured[name][0]) for bucket in buckets], n)

    begins = np.repeat([bucket.number * BUCKET_US for bucket in buckets], n)
    return rows_of(
        t,
        {
            t.run_id: repeated(run_id, n * len(buckets)),
            t.scenario: pa.array(list(lanes.names) * len(buckets), pa.string()),
            t.broker: repeated(broker, n * len(buckets)),
            t.bucket_start: begins,
            t.live_sessions: np.concatenate([bucket.live[:n] for bucket in buckets]),
            t.follower_sessions: np.concatenate([bucket.followers[:n] for bucket in buckets]),
            t.cached_partitions: np.concatenate([bucket.cached[:n] for bucket in buckets]),
            t.shard_sessions: pa.array(occupied, TYPES["array<int>"]),
            t.full_fetch_share: quotients(sums["full_fetches"], sums["fetches"]),
            t.refused_share: quotients(sums["refused"], sums["created"] + sums["refused"]),
            t.evictions_per_s: sums["evicted"] / (BUCKET_US / US_PER_S),
            t.unknown_fetches: captured("unknown"),
            **sums,
            **{f"captured_{name}": captured(name) for name in CAPTURED_SUMS},
        },
    )


def named(now: BrokerReplay) -> list[tuple[str, str, str]]:
    """(client id, address, reader) by number."""
    return [(*client_of(name), reader) for name in now.names for reader in READERS]


def eviction_rows(now: BrokerReplay, lanes: SessionLanes, run_id: str) -> pa.RecordBatch:
    """Rows of `session_evictions`."""
    names, t = named(now), SESSION_EVICTIONS
    counts: Counter[tuple[str, str, str, str, str]] = Counter()
    for (lane, evictor, victim), count in now.evictions.items():
        if lane < len(lanes.names):
            one, other = names[evictor], names[victim]
            counts[lanes.names[lane], one[0], one[2], other[0], other[2]] += count
    columns = list(zip(*sorted(counts), strict=True)) or [()] * 5
    keys = (t.scenario, t.evictor, t.evictor_reader, t.victim, t.victim_reader)
    return rows_of(
        t,
        {
            t.run_id: repeated(run_id, len(counts)),
            t.broker: repeated(now.broker, len(counts)),
            **{key: pa.array(column, pa.string()) for key, column in zip(keys, columns, strict=True)},
            t.evictions: np.array([counts[key] for key in sorted(counts)], np.int64),
        },
    )


def slot_rows(now: BrokerReplay, lanes: SessionLanes, run_id: str) -> pa.RecordBatch:
    """Rows of `session_slots`: one a lane."""
    n, t, settings = len(lanes.names), SESSION_SLOTS, lanes.settings
    peaks = now.fullest
    unlimited = dict(zip(now.settings.shards[n:].tolist(), peaks[n:].tolist(), strict=True))
    unseen_until_us = int(now.judged.start[0] + settings.eviction_ms[0] * US_PER_MS)
    least, most = slots_range(now.spans, int(settings.shards[0]), unseen_until_us)
    return rows_of(
        t,
        {
            t.run_id: repeated(run_id, n),
            t.scenario: pa.array(lanes.names, pa.string()),
            t.broker: repeated(now.broker, n),
            t.slots: settings.slots * settings.shards,
            t.shards: settings.shards,
            t.most_sessions: peaks[:n],
            t.zero_harm_slots: np.array([unlimited[shards] * shards for shards in settings.shards.tolist()], np.int64),
            t.slots_at_least: np.full(n, least),
            t.slots_at_most: pa.array([most] * n, pa.int64()),
        },
    )


def session_fidelity(now: BrokerReplay) -> list[Compared]:
    """What was compared of each client and metric."""
    names, metrics = named(now), list(Metric)
    counts = now.judged.verdicts[: len(names)]
    found = []
    for name, metric in np.argwhere(counts.sum(axis=2) > 0).tolist():
        of_metric = counts[name, metric]
        verdicts = {REASONS[code]: int(of_metric[code]) for code in np.flatnonzero(of_metric).tolist()}
        client_id, client_address, reader = names[name]
        of_client = compared(metrics[metric], verdicts, SESSIONS)
        found.append(
            of_client._replace(broker=now.broker, client_id=client_id, client_address=client_address, reader=reader)
        )
    return found
