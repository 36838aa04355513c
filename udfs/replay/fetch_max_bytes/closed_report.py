"""The results of a reader replayed in closed loop, as rows of the gold tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from schemas.tables import algorithms
from schemas.tables.fidelity_reasons import CLOSED_FETCHES
from schemas.tables.gold import FETCH_CONSUMERS, FETCH_FAIRNESS, FETCH_MEMORY, FETCH_TIMELINE, FIDELITY
from schemas.tables.table import Table
from udfs.columns.arrow_columns import repeated
from udfs.columns.time_units import NEVER
from udfs.facts.arrow_tables import TYPES, rows_of
from udfs.replay.fetch_max_bytes.closed_unit import NO_BACKLOG
from udfs.replay.fetch_max_bytes.fetch_report import (
    CLOSED_LOOP,
    Totals,
    consumer_rows,
    fairness_rows,
    memory_bounds,
    of_reader,
)
from udfs.replay.fetch_max_bytes.timeline import TICKS, Timeline
from udfs.replay.shared.fidelity_rows import Compared, fidelity_rows
from udfs.replay.shared.key_numbers import partition_of

if TYPE_CHECKING:
    from udfs.replay.fetch_max_bytes.closed_reader import ClosedTotals
    from udfs.replay.fetch_max_bytes.fetch_lanes import FetchLanes
    from udfs.replay.fetch_max_bytes.fetch_replay import Replayed


def closed_rows(
    done: Replayed, closed: ClosedTotals, lanes: FetchLanes, run_id: str
) -> Iterator[tuple[Table, pa.RecordBatch]]:
    """The rows of a reader all of whose connections were replayed."""
    totals = Totals(
        CLOSED_LOOP,
        closed.sums,
        closed.sent,
        closed.backlog,
        catch_up_ms(closed.catch_up, closed.given_up == 1),
        closed.finished,
        closed.given_up,
        closed.left_out,
    )
    yield FIDELITY, fidelity_rows(closed_fidelity(done, closed), algorithms.FETCH_MAX_BYTES, run_id)
    yield FETCH_FAIRNESS, fairness_rows(done, totals, lanes, run_id)
    yield FETCH_CONSUMERS, consumer_rows(done, totals, lanes, run_id)
    yield FETCH_TIMELINE, timeline_rows(done, closed, lanes, run_id)
    yield FETCH_MEMORY, memory_rows(done, closed, lanes, run_id)


def catch_up_ms(took: npt.NDArray[np.int64], given_up: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """Catch-up times in ms, float64[partitions, lanes]: 0 without a backlog, nan for never.

    took: in us. given_up: bool[partitions]. What the reader gave up has none in any lane, so that lanes are compared by
    the same partitions.
    """
    has_none = (took == NEVER) | given_up[:, np.newaxis]
    return np.where(has_none, np.nan, np.where(took == NO_BACKLOG, 0, took) / 1000)


def closed_fidelity(done: Replayed, closed: ClosedTotals) -> list[Compared]:
    """What was compared of each broker and metric."""
    groups: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for (broker, metric, drift), count in sorted(closed.verdicts.items()):
        groups[broker, metric][drift] = count
    return [
        of_reader(done.reader, broker, str(metric), verdicts, CLOSED_FETCHES)
        for (broker, metric), verdicts in groups.items()
    ]


def timeline_rows(done: Replayed, closed: ClosedTotals, lanes: FetchLanes, run_id: str) -> pa.RecordBatch:
    """Rows of `fetch_timeline`: one a lane, partition and bucket in which something was to be read."""
    line = closed.timeline
    lane, partition, bucket = np.nonzero((line.served > 0) | (line.lag > 0) | (line.wait > 0))
    parts = [partition_of(key) for key in done.index]
    begins, n = bucket_starts(line), len(lane)

    def texts_of(names: list[str], rows: npt.NDArray[np.int64]) -> pa.Array[Any]:
        return pa.array(np.array(names, object)[rows], pa.string())

    t = FETCH_TIMELINE
    return rows_of(
        t,
        {
            t.run_id: repeated(run_id, n),
            t.scenario: texts_of(list(lanes.names), lane),
            t.client_id: repeated(done.reader.client_id, n),
            t.client_address: repeated(done.reader.client_address, n),
            t.reader: repeated(done.reader.kind, n),
            t.broker: texts_of([part[0] for part in parts], partition),
            t.topic: texts_of([part[1] for part in parts], partition),
            t.partition: np.array([int(part[2]) for part in parts], np.int32)[partition],
            t.bucket: bucket,
            t.bucket_start: begins[bucket],
            t.bucket_ms: np.full(n, int(line.width[0]) / 1000),
            t.bytes: line.served[lane, partition, bucket],
            t.lag_bytes: line.lag[lane, partition, bucket],
            t.wait_ms: line.wait[lane, partition, bucket] / 1000,
        },
    )


def bucket_starts(line: Timeline) -> npt.NDArray[np.int64]:
    """When each bucket begins (us): int64[buckets]."""
    gone = np.arange(line.served.shape[2]) * line.width[0]
    stay = np.searchsorted(line.before, gone, side="right") - 1
    return line.stays[stay] + gone - line.before[stay]  # as `moment_of` each


def most_held(line: Timeline) -> list[npt.NDArray[np.int64]]:
    """By lane the most bytes that are held at once in each bucket, until nothing is any more."""
    of_buckets = line.held.reshape(len(line.held), line.served.shape[2], -1).max(axis=2)
    return [np.trim_zeros(of_lane, "b") for of_lane in of_buckets]


def memory_rows(done: Replayed, closed: ClosedTotals, lanes: FetchLanes, run_id: str) -> pa.RecordBatch:
    """Rows of `fetch_memory`: one a lane."""
    line, bounds, n = closed.timeline, memory_bounds(done, lanes.of(done.reader.kind)), len(lanes.names)
    held = [ticks[ticks > 0] for ticks in line.held]
    levels = {
        share: np.array(
            [np.quantile(ticks, share, method="inverted_cdf") if len(ticks) else 0 for ticks in held], np.int64
        )
        for share in (0.5, 0.95, 0.99, 1.0)
    }
    above = [float((ticks > bound).mean()) if len(ticks) else 0.0 for ticks, bound in zip(held, bounds, strict=True)]
    t = FETCH_MEMORY
    return rows_of(
        t,
        {
            t.run_id: repeated(run_id, n),
            t.scenario: pa.array(list(lanes.names), pa.string()),
            t.client_id: repeated(done.reader.client_id, n),
            t.client_address: repeated(done.reader.client_address, n),
            t.reader: repeated(done.reader.kind, n),
            t.tick_ms: np.full(n, int(line.width[0]) * line.served.shape[2] / TICKS / 1000),
            t.held_bytes: pa.array(most_held(line), TYPES["array<bigint>"]),
            t.bytes_p50: levels[0.5],
            t.bytes_p95: levels[0.95],
            t.bytes_p99: levels[0.99],
            t.bytes_max: levels[1.0],
            t.memory_bound_bytes: bounds,
            t.share_above_bound: np.array(above),
        },
    )
