"""What a replayed producer comes to, as rows of the gold tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from schemas.tables import algorithms
from schemas.tables.gold import FIDELITY
from schemas.tables.gold_splits import BATCH_SPLIT, BATCH_SPLIT_TIMELINE
from schemas.tables.table import Table
from schemas.tables.values import PRODUCER
from udfs.columns.arrays import Floats, Ints
from udfs.columns.arrow_columns import array_of, quotients, repeated
from udfs.columns.time_units import NEVER
from udfs.facts.arrow_tables import TYPES, nulls_besides, rows_of
from udfs.replay.batch_split.estimate import BY_CLIENT, DAMPED
from udfs.replay.batch_split.fidelity import SPLITS, SPLITS_REPLAYED, replayed_verdicts
from udfs.replay.batch_split.outcomes import MICRO, SPAN_COLUMNS, Sums
from udfs.replay.batch_split.possible_estimates.fidelity import AGREED, CODES, UNKNOWN, Reason
from udfs.replay.batch_split.size_errors import RECUT, STATED_ERRORS, Sized
from udfs.wire.record_batches import RECORD_BATCH_OVERHEAD

if TYPE_CHECKING:
    from udfs.replay.batch_split.replay import Client

REASONS = {code: reason for reason, code in CODES.items()}
UNCHECKED = frozenset(CODES[reason] for reason in UNKNOWN)


def client_rows(done: Client, run_id: str) -> Iterator[tuple[Table, pa.RecordBatch]]:
    """The rows of a client all of whose batches were replayed."""
    note_replayed(done)
    yield FIDELITY, fidelity_rows(done, run_id)
    if done.topics and done.sized:
        yield BATCH_SPLIT, outcome_rows(done, run_id)
        yield BATCH_SPLIT_TIMELINE, timeline_rows(done, run_id)


def note_replayed(done: Client) -> None:
    """Verdicts that need the whole client: splits of the captured lane, and sizes of re-cut batches."""
    if not done.sized:
        return
    captured = sum(done.verdicts[SPLITS, code] for code in (AGREED, CODES[Reason.SPLIT_NOT_REPLAYED]))
    replayed, at_once = (int(done.sums.splits[lane].sum()) for lane in (0, -1))
    for code, count in replayed_verdicts(captured, replayed, at_once, done.near_limit).items():
        done.verdicts[SPLITS_REPLAYED, code] += count
    for metric, parts in done.sized.items():
        error = errors(parts)[1]
        within = int((error <= STATED_ERRORS[metric]).sum())
        done.verdicts[metric, AGREED] += within
        done.verdicts[metric, CODES[Reason.BYTES_BEYOND_ERROR]] += len(error) - within


def errors(parts: list[Sized]) -> tuple[Ints, Floats]:
    """(topics, relative errors) of batches' sizes."""
    return np.concatenate([part.topic for part in parts]), np.concatenate([part.error for part in parts])


def fidelity_rows(done: Client, run_id: str) -> pa.RecordBatch:
    """Rows of `fidelity`: one a metric."""
    by_metric: dict[str, dict[int, int]] = {}
    for (metric, code), count in sorted(done.verdicts.items()):
        if count:
            by_metric.setdefault(metric, {})[code] = count
    n, t = len(by_metric), FIDELITY
    counted = list(by_metric.values())
    unknown = [sum(count for code, count in codes.items() if code in UNCHECKED) for codes in counted]
    reasons = [[(REASONS[code].value, count) for code, count in codes.items() if code != AGREED] for codes in counted]
    given: dict[str, pa.Array[Any] | npt.NDArray[np.generic]] = {
        t.run_id: repeated(run_id, n),
        t.algorithm: repeated(algorithms.BATCH_SPLIT, n),
        t.metric: pa.array(list(by_metric), pa.string()),
        t.client_id: repeated(done.client_id, n),
        t.client_address: repeated(done.client_address, n),
        t.reader: repeated(PRODUCER, n),
        t.checked: np.array([sum(codes.values()) for codes in counted], np.int64) - np.array(unknown, np.int64),
        t.agreed: np.array([codes.get(AGREED, 0) for codes in counted], np.int64),
        t.unknown: np.array(unknown, np.int64),
        t.reasons: pa.array(reasons, TYPES["map<string,bigint>"]),
    }
    return rows_of(t, {**given, **nulls_besides(t, given, n)})


def client_columns(done: Client, run_id: str, lane: Ints, topic: Ints) -> dict[str, pa.Array[Any]]:
    """The columns that both tables begin with."""
    t, n = BATCH_SPLIT, len(lane)
    return {
        t.run_id: repeated(run_id, n),
        t.scenario: pa.array(list(done.lanes.names), pa.string()).take(lane),
        t.client_id: repeated(done.client_id, n),
        t.client_address: repeated(done.client_address, n),
        t.topic: pa.array(list(done.topics), pa.string()).take(topic),
    }


def outcome_rows(done: Client, run_id: str) -> pa.RecordBatch:
    """Rows of `batch_split`: one a lane and topic."""
    topics, lanes = len(done.topics), len(done.lanes.names)
    lane, topic = np.repeat(np.arange(lanes), topics), np.tile(np.arange(topics), lanes)
    kept = done.sums.batches[lane, topic] > 0
    lane, topic = lane[kept], topic[kept]
    sums = type(done.sums)(*(column[lane, topic] for column in done.sums))
    t = BATCH_SPLIT
    return rows_of(
        t,
        client_columns(done, run_id, lane, topic)
        | {
            **settings_columns(done, lane, topic),
            t.records: sums.records,
            t.batches: sums.batches,
            t.over_limit: sums.over_limit,
            t.over_limit_share: quotients(sums.over_limit, sums.batches),
            t.splits: sums.splits,
            t.split_rate: quotients(sums.splits, sums.batches),
            t.split_batches: sums.split_batches,
            t.failed_batches: sums.failed,
            t.bytes_sent: sums.bytes_sent,
            t.bytes_resent: sums.bytes_resent,
            t.fill: quotients(sums.size, sums.limit),
            t.compression_ratio: quotients(sums.size - RECORD_BATCH_OVERHEAD * sums.batches, sums.uncompressed),
            t.batch_bytes_max: sums.largest,
            t.final_estimate: final_estimates(done, lane, topic),
            t.recoveries: sums.recoveries,
            t.recovery_ms_mean: quotients(sums.recovery_us // 1000, sums.recoveries),
            t.recovery_ms_max: array_of(sums.recovery_longest / 1000, sums.recoveries > 0),
            t.is_recovering: sums.since_split != NEVER,
            t.measured_batches: sums.measured,
            t.size_error: size_errors(done, lane, topic, sums),
        },
    )


def settings_columns(done: Client, lane: Ints, topic: Ints) -> dict[str, pa.Array[Any] | npt.NDArray[np.generic]]:
    """batch.size and max.message.bytes of the rows, and what the capture tells of them."""
    t, limits = BATCH_SPLIT, done.max_message_bytes
    unanswered = done.lanes.limits.of(done.topics, done.created, {})
    return {
        t.batch_size: done.batch_size[lane],
        t.is_batch_size_told: done.lanes.producers.batch_size[lane] == BY_CLIENT,
        t.max_message_bytes: limits[lane, topic],
        t.is_limit_told: (limits != unanswered)[lane, topic],
    }


def final_estimates(done: Client, lane: Ints, topic: Ints) -> Floats:
    """The estimate of the codec that the lane sends with."""
    settings = done.lanes.producers
    last = np.array([done.last_codec.get(number, 0) for number in range(len(done.topics))], np.int64)
    codec = np.where(settings.codec[lane] < 0, last[topic], settings.codec[lane])
    of = np.where(settings.profile[lane] == DAMPED, 0, topic)
    return done.estimates[lane, of, codec].astype(np.float64)


def size_errors(done: Client, lane: Ints, topic: Ints, sums: Sums) -> pa.Array[Any]:
    """The mean error of modelled sizes: as a lane's own measured batches tell it, else those that splits made."""
    means = np.full((len(RECUT), len(done.topics)), np.nan)
    for mode, metric in enumerate(RECUT):
        of, error = errors(done.sized[metric])
        counts = np.bincount(of, minlength=len(done.topics))
        totals = np.bincount(of, error, len(done.topics))
        means[mode, counts > 0] = totals[counts > 0] / counts[counts > 0]
    captured = means[done.lanes.producers.is_fitted[lane], topic]
    found = np.where(sums.measured > 0, sums.model_error / MICRO / np.maximum(sums.measured, 1), captured)
    return array_of(found, ~np.isnan(found))


def timeline_rows(done: Client, run_id: str) -> pa.RecordBatch:
    """Rows of `batch_split_timeline`: one a lane, topic and span, the last one as long as it is."""
    spans = np.concatenate([np.zeros((0, SPAN_COLUMNS), np.int64), *(spans for _, spans in done.spans)])
    lane = np.repeat([lane for lane, _ in done.spans], [len(spans) for _, spans in done.spans]).astype(np.int64)
    topic, first, batches, splits, estimate, ratio, time = spans.T
    t = BATCH_SPLIT_TIMELINE
    return rows_of(
        t,
        client_columns(done, run_id, lane, topic)
        | {
            t.first_batch: first,
            t.batches: batches,
            t.splits: splits,
            t.estimated_ratio: estimate / MICRO / np.maximum(batches, 1),
            t.observed_ratio: ratio / MICRO / np.maximum(batches, 1),
            t.time: time,
        },
    )
