"""A reader's outcome in closed loop, as rows of the gold tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.tables.fetch_reasons import CLOSED_FETCHES
from schemas.tables.gold import FETCH_CONSUMERS, FETCH_FAIRNESS, FETCH_MEMORY, FETCH_RANGES, FETCH_TIMELINE, FIDELITY
from schemas.tables.table import Table
from udfs.columns.arrays import Bools, Floats, Ints, stretch_edges
from udfs.columns.arrow_columns import arrow_array
from udfs.columns.records import pick_records
from udfs.columns.time_units import NEVER, US_PER_MS
from udfs.facts.arrow_tables import make_rows
from udfs.replay.fetch_max_bytes.closed_loop.drawn_pace import Drawn, Figures
from udfs.replay.fetch_max_bytes.closed_loop.intent import Intent
from udfs.replay.fetch_max_bytes.closed_loop.replay import ReplayedReader
from udfs.replay.fetch_max_bytes.closed_loop.state import NO_BACKLOG, Timeline
from udfs.replay.fetch_max_bytes.closed_loop.timeline import TICKS
from udfs.replay.fetch_max_bytes.rows import (
    CLOSED_LOOP,
    Labels,
    LaneBounds,
    ReaderOutcome,
    fairness_rows,
    fetch_consumer_rows,
    verdict_rows,
)
from udfs.replay.shared.range_rows import range_columns
from udfs.replay.shared.replications import quantiles

THROTTLE_TIME = "throttle_time_ms"


def closed_rows(
    labels: Labels, intent: Intent, replayed: ReplayedReader, bounds: LaneBounds
) -> Iterator[tuple[Table, pa.RecordBatch]]:
    """The rows of a reader that was replayed."""
    outcome = outcome_of_reader(intent, replayed, bounds)
    verdicts = ((*key, count) for key, count in sorted(replayed.verdicts.items()))
    yield FIDELITY, verdict_rows(labels, verdicts, CLOSED_FETCHES)
    yield FETCH_FAIRNESS, fairness_rows(labels, outcome)
    yield FETCH_CONSUMERS, fetch_consumer_rows(labels, outcome)
    yield FETCH_TIMELINE, timeline_rows(labels, replayed.outcome.timeline)
    yield FETCH_MEMORY, memory_rows(labels, replayed.outcome.timeline, bounds.memory_bound)


def outcome_of_reader(intent: Intent, replayed: ReplayedReader, bounds: LaneBounds) -> ReaderOutcome:
    """The outcome in the form that the open and the closed loop have in common."""
    outcome = replayed.outcome
    return ReaderOutcome(
        mode=CLOSED_LOOP,
        sums=outcome.sums,
        requests=outcome.lanes["requests"],
        memory_bound=bounds.memory_bound,
        backlog=replayed.backlog,
        catch_up_ms=catch_up_ms(outcome.catch_up_us, outcome.given_up_backlogs == 1),
        given_up=outcome.given_up_backlogs,
        finished=outcome.lanes["is_finished"] == 1,
        left_out=int(intent.nodes.nodes["left_out"].sum()),
        throttle_ms=outcome.lanes["throttle_ms"],
        fetchers=bounds.fetchers,
    )


def catch_up_ms(took: Ints, given_up: Bools) -> Floats:
    """Catch-up times in ms, float64[partitions, lanes]: 0 without a backlog, nan for a backlog that is never read.

    took: int64[partitions, lanes], us. given_up: bool[partitions]; a backlog that the reader gave up has nan in every
    lane, so that lanes are compared by the same partitions.
    """
    has_none = (took == NEVER) | given_up[:, np.newaxis]
    return np.where(has_none, np.nan, np.where(took == NO_BACKLOG, 0, took) / US_PER_MS)


def timeline_rows(labels: Labels, line: Timeline) -> pa.RecordBatch:
    """Rows of `fetch_timeline`: one for each lane, partition and bucket in which there was something to read."""
    buckets = line.buckets.reshape(-1)
    rows = np.flatnonzero((buckets["bytes"] > 0) | (buckets["lag"] > 0) | (buckets["wait"] > 0))
    lane, partition, bucket = np.unravel_index(rows, line.buckets.shape)
    buckets_of_rows, n, t = pick_records(buckets, rows), len(rows), FETCH_TIMELINE
    brokers, topics, numbers = zip(*labels.partitions, strict=True)

    def texts_of(names: Sequence[str], places: Ints) -> pa.Array[Any]:
        return pa.array(np.array(names, object)[places], pa.string())

    return make_rows(
        t,
        {
            **labels.columns(t, n),
            t.scenario: texts_of(labels.lanes, lane),
            t.broker: texts_of(brokers, partition),
            t.topic: texts_of(topics, partition),
            t.partition: np.array(list(map(int, numbers)), np.int32)[partition],
            t.bucket: bucket,
            t.bucket_start: bucket_starts(line)[bucket],
            t.bucket_ms: np.full(n, int(line.lanes["width"][0]) / US_PER_MS),
            t.bytes: buckets_of_rows["bytes"],
            t.lag_bytes: buckets_of_rows["lag"],
            t.wait_ms: buckets_of_rows["wait"] / US_PER_MS,
        },
    )


def bucket_starts(line: Timeline) -> Ints:
    """When each bucket begins (us), as in `moment_of`: int64[buckets]."""
    gone = np.arange(line.buckets.shape[2]) * line.lanes["width"][0]
    stay = np.searchsorted(line.stays["before"], gone, side="right") - 1
    return line.stays["begin"][stay] + gone - line.stays["before"][stay]


def held_by_bucket(line: Timeline) -> pa.Array[Any]:
    """A list for each lane: the most bytes held at once in each bucket, up to the last bucket with held bytes."""
    buckets = line.buckets.shape[2]
    held = line.held.reshape(len(line.held), buckets, -1).max(axis=2)
    lengths = np.where(held > 0, np.arange(1, buckets + 1), 0).max(axis=1)
    ends: Any = arrow_array(stretch_edges(lengths).astype(np.int32))  # an Int32Array
    return pa.ListArray.from_arrays(ends, arrow_array(held[np.arange(buckets) < lengths[:, np.newaxis]]))


def memory_rows(labels: Labels, line: Timeline, memory_bound: Ints) -> pa.RecordBatch:
    """Rows of `fetch_memory`: one for each lane. memory_bound: int64[lanes]."""
    n, t = len(labels.lanes), FETCH_MEMORY
    held = [np.sort(ticks[ticks > 0]) for ticks in line.held]
    above = [
        float((ticks > bound).mean()) if len(ticks) else 0.0 for ticks, bound in zip(held, memory_bound, strict=True)
    ]
    return make_rows(
        t,
        {
            **labels.columns(t, n),
            t.scenario: pa.array(list(labels.lanes), pa.string()),
            t.tick_ms: np.full(n, int(line.lanes["width"][0]) * line.buckets.shape[2] / TICKS / US_PER_MS),
            t.held_bytes: held_by_bucket(line),
            t.bytes_p50: quantiles_of_ticks(held, 0.5),
            t.bytes_p95: quantiles_of_ticks(held, 0.95),
            t.bytes_p99: quantiles_of_ticks(held, 0.99),
            t.bytes_max: quantiles_of_ticks(held, 1.0),
            t.memory_bound_bytes: memory_bound,
            t.share_above_bound: np.array(above),
        },
    )


def range_rows(labels: Labels, drawn: Drawn, has_quota: bool) -> pa.RecordBatch:
    """Rows of `fetch_ranges`: one for each lane and figure. has_quota: some lane has one, so throttling is shown."""
    lanes, t = len(labels.lanes), FETCH_RANGES
    figures = [name for name in Figures._fields if has_quota or name != THROTTLE_TIME]
    as_captured, replications = ([getattr(of, name) for name in figures] for of in drawn[:2])
    n, counts = lanes * len(figures), np.tile(drawn.counts, len(figures))
    by_share = quantiles(np.concatenate(replications, axis=1), counts)
    return make_rows(
        t,
        {
            **labels.columns(t, n),
            t.scenario: pa.array(list(labels.lanes) * len(figures), pa.string()),
            t.metric: pa.array(np.repeat(np.array(figures, object), lanes), pa.string()),
            **range_columns(np.concatenate(as_captured), by_share, counts),
        },
    )


def quantiles_of_ticks(held: Sequence[Ints], share: float) -> Ints:
    """The value that `share` of each lane's ticks do not exceed, 0 if there are none: int64[lanes].

    held: for each lane int64[ticks], bytes, rising.
    """
    return np.array([of[max(ceil(share * len(of) - 1), 0)] if len(of) else 0 for of in held], np.int64)
