"""The outcomes of brokers' fetch sessions, as rows of the gold tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.tables import algorithms
from schemas.tables.gold import FIDELITY
from schemas.tables.gold_sessions import SESSION_CACHE, SESSION_EVICTIONS, SESSION_SLOTS
from schemas.tables.session_reasons import SESSIONS
from schemas.tables.table import Table
from schemas.tables.values import CONSUMER, FOLLOWER
from udfs.columns.arrays import Ints, Records, stretch_edges
from udfs.columns.arrow_columns import dictionary_column, quotient_column, repeated_text_column
from udfs.columns.time_units import US_PER_MS, US_PER_S
from udfs.facts.arrow_tables import make_rows
from udfs.replay.session_cache.broker import BrokerReplay, some_buckets
from udfs.replay.session_cache.dispatch import BUCKET_US
from udfs.replay.session_cache.events import Keys
from udfs.replay.session_cache.fidelity import METRICS
from udfs.replay.session_cache.settings import SessionLanes, ways_to_be_idle, ways_to_need_slots
from udfs.replay.session_cache.slots import slots_range
from udfs.replay.session_cache.state import CACHE_SUMS, CAPTURED_SUMS, HOLDINGS, Buckets
from udfs.replay.shared.fidelity_rows import FidelityCounts, count_codes, fidelity_rows
from udfs.replay.shared.key_numbers import client_of
from udfs.replay.shared.window import Window

READERS = (CONSUMER, FOLLOWER)

Reader = tuple[str, str, str]
"""(client id, address, consumer or follower)."""


@dataclass(frozen=True)
class BrokerResult:
    """The outcome of a broker's replay.

    fullest: int64[lanes], the most sessions that a shard had at once. not_found: int64[lanes], fetches whose session
    was gone. evictions: how many there were, by lane, evictor and victim.
    """

    broker: str
    readers: Sequence[Reader]  # by the number of a name
    buckets: Buckets
    fullest: Ints
    not_found: Ints
    slots: tuple[int, int | None]  # the fewest and the most that the captured broker can have had
    evictions: Mapping[tuple[int, int, int], int]
    verdicts: Ints  # int64[names, metrics, verdicts]


def result_of(broker: BrokerReplay, keys: Keys, settings: Records) -> BrokerResult:
    """The outcome of a broker, once all its events were replayed. settings: CACHE_SETTINGS[lanes]."""
    names = list(keys.clients)
    captured, buckets = broker.captured, broker.sim.buckets
    unseen_until_us = int(captured.unseen["handled_us"][0] + settings["eviction_ms"][0] * US_PER_MS)
    return BrokerResult(
        broker=broker.name,
        readers=[(*client_of(names[client]), reader) for client in broker.names for reader in READERS],
        buckets=some_buckets(buckets, 0, int(buckets.used[0])),
        fullest=broker.sim.cache.totals["fullest"],
        not_found=broker.sim.cache.totals["not_found"],
        slots=slots_range(captured.spans, broker.shards, unseen_until_us),
        evictions=broker.evictions,
        verdicts=captured.verdicts,
    )


def all_rows(
    results: Sequence[BrokerResult], lanes: SessionLanes, run_id: str
) -> Iterator[tuple[Table, pa.RecordBatch]]:
    """The rows of brokers, once all their events were replayed."""
    yield SESSION_CACHE, cache_rows([(result.broker, result.buckets) for result in results], lanes, run_id)
    yield SESSION_EVICTIONS, eviction_rows(results, lanes, run_id)
    yield SESSION_SLOTS, slot_rows(results, lanes, run_id)
    comparisons = [each for result in results for each in session_fidelity(result)]
    yield FIDELITY, fidelity_rows(comparisons, algorithms.SESSION_CACHE, run_id)


def cache_rows(parts: Sequence[tuple[str, Buckets]], lanes: SessionLanes, run_id: str) -> pa.RecordBatch:
    """Rows of `session_cache`: one for each broker, bucket and lane. parts: brokers with some of their buckets."""
    n, t = len(lanes.names), SESSION_CACHE
    captured = np.concatenate([buckets.captured for _, buckets in parts])
    outcomes = np.concatenate([buckets.outcomes[:, :n] for _, buckets in parts]).ravel()
    sums = {name: outcomes[name] for name in (*CACHE_SUMS, *HOLDINGS)}
    brokers = np.repeat(np.arange(len(parts)), [n * len(buckets.captured) for _, buckets in parts])
    occupied = [buckets.occupied[:, :n] for _, buckets in parts]
    return make_rows(
        t,
        {
            t.run_id: repeated_text_column(run_id, len(outcomes)),
            t.scenario: dictionary_column(pa.array(lanes.names, pa.string()), np.tile(np.arange(n), len(captured))),
            t.broker: dictionary_column(pa.array([broker for broker, _ in parts], pa.string()), brokers),
            t.bucket_start: np.repeat(captured["number"] * BUCKET_US, n),
            t.shard_sessions: shard_lists(np.concatenate(occupied), lanes.settings["shards"]),
            t.full_fetch_share: quotient_column(sums["full_fetches"], sums["fetches"]),
            t.refused_share: quotient_column(sums["refused"], sums["created"] + sums["refused"]),
            t.evictions_per_s: sums["evicted"]
            / (np.repeat(bucket_lengths(captured["number"], lanes.window), n) / US_PER_S)
            * np.tile(lanes.settings["speed"], len(captured)),
            t.unknown_fetches: np.repeat(captured["unknown_fetches"], n),
            **sums,
            **{f"captured_{name}": np.repeat(captured[name], n) for name in CAPTURED_SUMS},
        },
    )


def bucket_lengths(numbers: Ints, window: Window) -> Ints:
    """How much of each bucket of time is in the window: int64[buckets], us. numbers: int64[buckets], as in BUCKET."""
    begins = numbers * BUCKET_US
    return np.minimum(begins + BUCKET_US, window.end) - np.maximum(begins, window.begin)


def shard_lists(occupied: Ints, shards: Ints) -> pa.Array[Any]:
    """A list for each bucket and lane, with a value for each shard of the lane. occupied: int64[buckets, lanes,
    shards].
    """
    is_shard = np.arange(occupied.shape[2]) < shards[:, None]
    values = occupied[np.broadcast_to(is_shard, occupied.shape)]
    offsets = stretch_edges(np.tile(shards, len(occupied)))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(values, pa.int32()))


def eviction_rows(results: Sequence[BrokerResult], lanes: SessionLanes, run_id: str) -> pa.RecordBatch:
    """Rows of `session_evictions`. Clients with the same client.id count as one, whatever their addresses."""
    t, counts = SESSION_EVICTIONS, Counter[tuple[str, ...]]()
    for result in results:
        for (lane, evictor, victim), count in result.evictions.items():
            if lane < len(lanes.names):
                evictor_id, _, evictor_reader = result.readers[evictor]
                victim_id, _, victim_reader = result.readers[victim]
                key = result.broker, lanes.names[lane], evictor_id, evictor_reader, victim_id, victim_reader
                counts[key] += count
    columns = list(zip(*sorted(counts), strict=True)) or [()] * 6
    keys = (t.broker, t.scenario, t.evictor, t.evictor_reader, t.victim, t.victim_reader)
    return make_rows(
        t,
        {
            t.run_id: repeated_text_column(run_id, len(counts)),
            **{key: pa.array(column, pa.string()) for key, column in zip(keys, columns, strict=True)},
            t.evictions: np.array([counts[key] for key in sorted(counts)], np.int64),
        },
    )


def slot_rows(results: Sequence[BrokerResult], lanes: SessionLanes, run_id: str) -> pa.RecordBatch:
    """Rows of `session_slots`: one for each broker and lane."""
    n, t, shards = len(lanes.names), SESSION_SLOTS, lanes.settings["shards"]
    rows, fullest = n * len(results), np.array([result.fullest for result in results])
    unlimited, without_idle = unlimited_lanes(lanes.settings)
    zero_harm, not_found = fullest[:, unlimited] * shards, np.array([result.not_found for result in results])
    # A client that comes back to a session that was removed as idle still needed it. Fewer slots are then not enough.
    nobody_came_back = not_found[:, without_idle] <= not_found[:, unlimited]
    at_least, at_most = zip(*(result.slots for result in results), strict=True)
    return make_rows(
        t,
        {
            t.run_id: repeated_text_column(run_id, rows),
            t.scenario: dictionary_column(pa.array(lanes.names, pa.string()), np.tile(np.arange(n), len(results))),
            t.broker: pa.array(np.repeat([result.broker for result in results], n), pa.string()),
            t.slots: np.concatenate([lanes.of_broker(result.broker).settings["slots"] * shards for result in results]),
            t.shards: np.tile(shards, len(results)),
            t.most_sessions: fullest[:, :n].ravel(),
            t.zero_harm_slots: zero_harm.ravel(),
            t.enough_slots: np.where(nobody_came_back, fullest[:, without_idle] * shards, zero_harm).ravel(),
            t.slots_at_least: np.repeat(at_least, n),
            t.slots_at_most: pa.array([most for most in at_most for _ in range(n)], pa.int64()),
        },
    )


def unlimited_lanes(settings: Records) -> tuple[Ints, Ints]:
    """For each lane its two lanes without a limit: (the one with the same shards and consumers; the one that removes
    idle sessions). int64[lanes] both, indices in the result of `with_unlimited`. settings: CACHE_SETTINGS[lanes].
    """
    ways, way_of_lane = ways_to_need_slots(settings)
    return len(settings) + way_of_lane, len(settings) + len(ways) + ways_to_be_idle(settings)[1]


def session_fidelity(result: BrokerResult) -> Iterator[FidelityCounts]:
    """The fidelity counts of each client and metric."""
    verdicts = result.verdicts[: len(result.readers)]
    for name, metric in np.argwhere(verdicts.any(axis=2)).tolist():
        client_id, client_address, reader = result.readers[name]
        yield count_codes(METRICS[metric], verdicts[name, metric], SESSIONS)._replace(
            broker=result.broker, client_id=client_id, client_address=client_address, reader=reader
        )
