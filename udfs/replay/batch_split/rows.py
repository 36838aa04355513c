"""A replayed producer's outcomes, as rows of the gold tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from schemas.tables import algorithms
from schemas.tables.gold import FIDELITY
from schemas.tables.gold_splits import BATCH_SPLIT, BATCH_SPLIT_RANGES, BATCH_SPLIT_TIMELINE
from schemas.tables.split_reasons import SPLITS
from schemas.tables.table import Table
from schemas.tables.values import PRODUCER
from udfs.columns.arrays import Floats, Ints, Records
from udfs.columns.arrow_columns import arrow_array, quotient_column, repeated_text_column
from udfs.columns.records import new_records
from udfs.columns.time_units import NEVER, US_PER_MS, US_PER_S
from udfs.facts.arrow_tables import make_rows
from udfs.replay.batch_split.fidelity import Metric
from udfs.replay.batch_split.producer import Producer
from udfs.replay.batch_split.settings import DAMPED, NOT_STATED
from udfs.replay.batch_split.state import MICRO, SPLIT_SPAN
from udfs.replay.shared.fidelity_rows import FidelityCounts, count_codes, fidelity_rows
from udfs.replay.shared.lanes import AS_CAPTURED, CAPTURED
from udfs.replay.shared.range_rows import range_columns
from udfs.replay.shared.replications import quantiles
from udfs.wire.record_batches import RECORD_BATCH_OVERHEAD

Columns = dict[str, "pa.Array[Any] | npt.NDArray[np.generic]"]


def producer_rows(producer: Producer, run_id: str) -> Iterator[tuple[Table, pa.RecordBatch]]:
    """The rows of a producer, once all its batches were replayed."""
    is_replayed = bool(producer.fidelity.sizes)
    if is_replayed:
        captured, at_once = producer.outcomes["splits"][[CAPTURED, producer.at_once]].sum(axis=1).tolist()
        producer.fidelity.count_replayed(captured, at_once)
    yield FIDELITY, fidelity_rows([*cases_by_metric(producer)], algorithms.BATCH_SPLIT, run_id)
    if is_replayed:
        yield BATCH_SPLIT, outcome_rows(producer, run_id)
        yield BATCH_SPLIT_RANGES, range_rows(producer, run_id)
        yield BATCH_SPLIT_TIMELINE, timeline_rows(producer, run_id)


def cases_by_metric(producer: Producer) -> Iterator[FidelityCounts]:
    """The fidelity counts of each metric, in the order of the metrics' names."""
    by_metric: dict[str, Ints] = {}
    for (metric, code), count in sorted(producer.fidelity.verdicts.items()):
        if count:
            by_metric.setdefault(str(metric), np.zeros(1 + len(SPLITS.words), np.int64))[code] = count
    for name, verdicts in by_metric.items():
        yield count_codes(name, verdicts, SPLITS)._replace(
            client_id=producer.client_id, client_address=producer.client_address, reader=PRODUCER
        )


def producer_columns(producer: Producer, run_id: str, lane: Ints, topic: Ints) -> Columns:
    """The first columns of all tables of a producer. lane, topic: int64[rows]."""
    t, n = BATCH_SPLIT, len(lane)
    return {
        t.run_id: repeated_text_column(run_id, n),
        t.scenario: pa.array(list(producer.lanes.names), pa.string()).take(lane),
        t.client_id: repeated_text_column(producer.client_id, n),
        t.client_address: repeated_text_column(producer.client_address, n),
        t.topic: pa.array(list(producer.topics), pa.string()).take(topic),
    }


def outcome_rows(producer: Producer, run_id: str) -> pa.RecordBatch:
    """Rows of `batch_split`: one for each lane and topic in which a batch was sent."""
    lane, topic = np.nonzero(producer.outcomes["batches"][: producer.at_once])
    outcomes, t = producer.outcomes[lane, topic], BATCH_SPLIT
    return make_rows(
        t,
        {
            **producer_columns(producer, run_id, lane, topic),
            **settings_columns(producer, lane, topic),
            t.records: outcomes["records"],
            t.batches: outcomes["batches"],
            t.over_limit: outcomes["over_limit"],
            t.over_limit_share: quotient_column(outcomes["over_limit"], outcomes["batches"]),
            t.splits: outcomes["splits"],
            t.split_rate: quotient_column(outcomes["splits"], outcomes["batches"]),
            t.batch_split_rate: quotient_column(outcomes["splits"] * US_PER_S, time_sent_for(producer, len(outcomes))),
            t.split_batches: outcomes["split_batches"],
            t.failed_batches: outcomes["failed"],
            t.bytes_sent: outcomes["bytes_sent"],
            t.bytes_resent: outcomes["bytes_resent"],
            t.fill: quotient_column(outcomes["size"], outcomes["limit"]),
            t.compression_ratio: quotient_column(
                outcomes["size"] - RECORD_BATCH_OVERHEAD * outcomes["batches"], outcomes["uncompressed"]
            ),
            t.batch_bytes_max: outcomes["largest"],
            t.final_estimate: final_estimates(producer, lane, topic),
            t.recoveries: outcomes["recoveries"],
            t.recovery_ms_mean: quotient_column(outcomes["recovery_us"] // US_PER_MS, outcomes["recoveries"]),
            t.recovery_ms_max: arrow_array(outcomes["recovery_longest"] / US_PER_MS, outcomes["recoveries"] > 0),
            t.is_recovering: outcomes["since_split"] != NEVER,
            t.measured_batches: outcomes["measured"],
            t.size_error: size_errors(producer, lane, topic, outcomes),
        },
    )


def range_rows(producer: Producer, run_id: str) -> pa.RecordBatch:
    """Rows of `batch_split_ranges`: one for each figure, and each lane and topic of `batch_split`."""
    lane, topic = np.nonzero(producer.outcomes["batches"][: producer.at_once])
    figures, drawn = (
        figures_by_metric(producer.outcomes[lane, topic]),
        figures_by_metric(producer.replicated[:, lane, topic]),
    )
    t, rows, metrics = BATCH_SPLIT_RANGES, len(lane), len(drawn)
    values, replicated = np.concatenate([*figures.values()]), np.concatenate([*drawn.values()], axis=1)
    counts = np.full(rows * metrics, producer.replications)
    return make_rows(
        t,
        {
            **producer_columns(producer, run_id, np.tile(lane, metrics), np.tile(topic, metrics)),
            t.metric: pa.array(np.repeat(np.array([*drawn], object), rows), pa.string()),
            **range_columns(values, quantiles(replicated, counts), counts),
        },
    )


def figures_by_metric(outcomes: Records) -> dict[str, Floats]:
    """The figures of `batch_split_ranges` by metric: float64, in the shape of the outcomes. outcomes:
    SPLIT_OUTCOME[...].
    """
    t, batches = BATCH_SPLIT, np.maximum(outcomes["batches"], 1)
    counts = {str(name): outcomes[str(name)].astype(np.float64) for name in (t.splits, t.batches, t.bytes_resent)}
    return {str(t.split_rate): counts[str(t.splits)] / batches} | counts


def time_sent_for(producer: Producer, rows: int) -> Ints:
    """The time from the producer's first request to its last within the window, for each row: int64[rows], us."""
    return np.full(rows, producer.lanes.window.length_within(producer.sent_from, producer.sent_until))


def settings_columns(producer: Producer, lane: Ints, topic: Ints) -> Columns:
    """batch.size, max.message.bytes and stored codec of each row, and whether the capture shows the first two.

    lane, topic: int64[rows], the lane and topic of each row.
    """
    t, limits = BATCH_SPLIT, producer.max_message_bytes
    without_responses = producer.lanes.limits.by_topic(producer.topics, producer.created, {})
    return {
        t.batch_size: producer.batch_size[lane],
        t.is_batch_size_told: producer.lanes.settings["batch_size"][lane] == NOT_STATED,
        t.max_message_bytes: limits[lane, topic],
        t.is_limit_told: (limits != without_responses)[lane, topic],
        t.stored_codec: pa.array([producer.stored.get(name) for name in producer.topics], pa.string()).take(topic),
    }


def final_estimates(producer: Producer, lane: Ints, topic: Ints) -> Floats:
    """The last estimate for the lane's codec: float64[rows]. lane, topic: int64[rows]."""
    settings = producer.lanes.settings[lane]
    last = np.array([producer.last_codec.get(number, 0) for number in range(len(producer.topics))], np.int64)
    codec = np.where(settings["codec"] == AS_CAPTURED, last[topic], settings["codec"])
    estimated_topic = np.where(settings["profile"] == DAMPED, 0, topic)
    return producer.estimates[lane, estimated_topic, codec].astype(np.float64)


def size_errors(producer: Producer, lane: Ints, topic: Ints, outcomes: Records) -> pa.Array[Any]:
    """The mean error of modelled sizes, over the batches that the lane measured or, if it measured none, over those
    that splits made: float64[rows].

    lane, topic: int64[rows], the lane and topic of each row. outcomes: SPLIT_OUTCOME[rows].
    """
    by_model = np.stack([mean_errors(producer, metric) for metric in (Metric.RECUT_BY_PARTS, Metric.RECUT_FITTED)])
    captured = by_model[producer.lanes.settings["is_fitted"][lane], topic]
    measured = outcomes["model_error"] / MICRO / np.maximum(outcomes["measured"], 1)
    errors = np.where(outcomes["measured"] > 0, measured, captured)
    return arrow_array(errors, ~np.isnan(errors))


def mean_errors(producer: Producer, metric: Metric) -> Floats:
    """The mean error of modelled sizes by topic, NaN if there are none: float64[topics]."""
    sizes, topics = producer.fidelity.sizes[metric], len(producer.topics)
    topic, error = (np.concatenate(parts) for parts in zip(*((part.topic, part.error) for part in sizes), strict=True))
    counts, sums = np.bincount(topic, minlength=topics), np.bincount(topic, error, topics)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def timeline_rows(producer: Producer, run_id: str) -> pa.RecordBatch:
    """Rows of `batch_split_timeline`: one for each lane, topic and span; the last span may be a short one."""
    spans, t = np.concatenate([*producer.spans, last_spans(producer)]), BATCH_SPLIT_TIMELINE
    batches = np.maximum(spans["batches"], 1)
    return make_rows(
        t,
        {
            **producer_columns(producer, run_id, spans["lane"], spans["topic"]),
            t.first_batch: spans["first_batch"],
            t.batches: spans["batches"],
            t.splits: spans["splits"],
            t.estimated_ratio: spans["estimated"] / MICRO / batches,
            t.observed_ratio: spans["observed"] / MICRO / batches,
            t.time: spans["time"],
        },
    )


def last_spans(producer: Producer) -> Records:
    """The spans that were not full at the end, lane by lane: SPLIT_SPAN[spans]."""
    lane, topic = np.nonzero(producer.outcomes["span_batches"][: producer.at_once])
    outcomes = producer.outcomes[lane, topic]
    return new_records(
        SPLIT_SPAN,
        len(lane),
        lane=lane,
        topic=topic,
        first_batch=outcomes["span_first"],
        batches=outcomes["span_batches"],
        splits=outcomes["span_splits"],
        estimated=(outcomes["span_estimated"] * MICRO).astype(np.int64),
        observed=(outcomes["span_observed"] * MICRO).astype(np.int64),
        time=min(producer.sent_until, producer.lanes.window.end),
    )
