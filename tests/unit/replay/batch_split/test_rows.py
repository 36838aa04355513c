"""A producer's outcomes become rows of the gold tables, and what a lane counts of batches, splits and estimates."""

from __future__ import annotations

import numpy as np
import pytest

from schemas.tables.gold_splits import BATCH_SPLIT, BATCH_SPLIT_RANGES, BATCH_SPLIT_TIMELINE
from tests.unit.replay.batch_split.producers import (
    Produced,
    Producer,
    as_produced,
    captured,
    even_sizes,
    lanes_of,
    replayed,
    settings_of,
)
from udfs.columns.arrays import Records
from udfs.replay.batch_split import producer as sending
from udfs.replay.batch_split.fidelity import Metric, ProducerFidelity, Sizes
from udfs.replay.batch_split.lanes import replay_stretch
from udfs.replay.batch_split.possible_estimates.state import new_memory
from udfs.replay.batch_split.rows import outcome_rows, range_rows, timeline_rows
from udfs.replay.batch_split.state import MICRO, SPAN_BATCHES, new_sim, no_outcomes

B = BATCH_SPLIT
GZIP, ZSTD = Producer(1024, 1500).codec_number, Producer(1024, 1500, codec="zstd").codec_number
LANES = lanes_of(Producer(1024, 1500), Producer(4096, 1500, codec="zstd"), names=("captured", "larger"))


def with_outcomes(replications: int = 0) -> sending.Producer:
    """A producer that sent for four seconds to two topics."""
    made = sending.Producer("c", "10.0.0.1:5", LANES, ProducerFidelity(new_memory()))
    made.topics, made.sent_from, made.sent_until, made.replications = (
        {"t": 0, "u": 1},
        1_000_000,
        5_000_000,
        replications,
    )
    made.outcomes = no_outcomes(3 + 2 * replications, 2)
    made.estimates = np.ones((3, 2, 5), np.float32)
    made.answers.refused = made.answers_in_window.refused = np.full(2, 1 << 40)
    made.answers.taken = made.answers_in_window.taken = np.zeros(2, np.int64)
    sizes = Sizes(np.array([0, 1, 1]), np.array([110.0, 120.0, 90.0]), np.array([100, 100, 100]))
    made.fidelity.sizes = {Metric.RECUT_BY_PARTS: [sizes], Metric.RECUT_FITTED: [sizes._replace(captured=sizes.topic)]}
    return made


def put(outcomes: Records, lane: int, topic: int, **values: float) -> None:
    for name, value in values.items():
        outcomes[name][lane, topic] = value


def test_a_row_has_a_lanes_counts_and_what_follows_from_them() -> None:
    made = with_outcomes()
    put(
        made.outcomes, 0, 1, records=40, batches=8, over_limit=2, splits=2, split_batches=4, failed=1, bytes_sent=9000,
        bytes_resent=1500, size=6000, limit=8192, uncompressed=11024, largest=1600, recoveries=2, recovery_us=9000,
        recovery_longest=7500,
    )  # fmt: skip
    made.estimates[0, 1, GZIP] = 0.25
    (row,) = outcome_rows(made, "run").to_pylist()
    assert {str(name): row[name] for name in B.columns} == {
        "run_id": "run", "scenario": "captured", "client_id": "c", "client_address": "10.0.0.1:5", "topic": "u",
        "batch_size": 1024, "is_batch_size_told": False, "max_message_bytes": 1500, "is_limit_told": False,
        "stored_codec": None, "records": 40, "batches": 8, "over_limit": 2, "over_limit_share": 0.25, "splits": 2,
        "split_rate": 0.25, "batch_split_rate": 0.5, "split_batches": 4, "failed_batches": 1, "bytes_sent": 9000,
        "bytes_resent": 1500, "fill": 6000 / 8192, "compression_ratio": 0.5, "batch_bytes_max": 1600,
        "final_estimate": 0.25, "recoveries": 2, "recovery_ms_mean": 4.5, "recovery_ms_max": 7.5,
        "is_recovering": False, "measured_batches": 0, "size_error": pytest.approx(0.15),
    }  # fmt: skip


def test_a_lane_that_measured_batches_shows_the_error_of_these_and_one_that_recovers_says_so() -> None:
    made = with_outcomes()
    put(made.outcomes, 1, 0, batches=1, measured=4, model_error=MICRO, since_split=7)
    made.estimates[1, 0, ZSTD] = 0.5
    (row,) = outcome_rows(made, "run").to_pylist()
    assert (row[B.scenario], row[B.topic], row[B.batch_size], row[B.final_estimate]) == ("larger", "t", 4096, 0.5)
    assert (row[B.measured_batches], row[B.size_error], row[B.is_recovering]) == (4, 0.25, True)
    assert (row[B.recovery_ms_mean], row[B.recovery_ms_max], row[B.compression_ratio]) == (None, None, None)


def test_ranges_come_from_the_replications_of_the_same_lane_and_topic() -> None:
    made, r = with_outcomes(replications=10), BATCH_SPLIT_RANGES
    for lane in (0, 1):
        put(made.outcomes, lane, 0, batches=10, splits=lane, bytes_resent=100)
        for replication in range(10):
            put(
                made.outcomes,
                made.lanes_of(replication)[lane],
                0,
                batches=10,
                splits=lane * replication,
                bytes_resent=5,
            )
    rows = {(row[r.scenario], row[r.metric]): row for row in range_rows(made, "run").to_pylist()}
    assert {metric for _, metric in rows} == {"split_rate", "splits", "batches", "bytes_resent"}
    figures = (r.value, r.p10, r.p50, r.p90, r.is_exact, r.replications)
    assert [rows["larger", "splits"][of] for of in figures] == [1, 0, 4, 8, False, 10]
    assert [rows["larger", "split_rate"][of] for of in figures] == pytest.approx([0.1, 0, 0.4, 0.8, False, 10])
    assert [rows["captured", "bytes_resent"][of] for of in figures] == [100, 5, 5, 5, True, 10]


def test_the_last_span_of_a_timeline_ends_with_the_last_request() -> None:
    made, t = with_outcomes(), BATCH_SPLIT_TIMELINE
    put(made.outcomes, 1, 1, span_first=64, span_batches=4, span_splits=1, span_estimated=2.0, span_observed=1.0)
    (row,) = timeline_rows(made, "run").to_pylist()
    counts = [row[name] for name in (t.scenario, t.topic, t.first_batch, t.batches, t.splits)]
    assert counts == ["larger", "u", 64, 4, 1]
    assert (row[t.estimated_ratio], row[t.observed_ratio]) == (0.5, 0.25)
    assert int(row[t.time].timestamp() * MICRO) == 5_000_000


def test_a_span_has_the_sums_of_the_estimates_and_ratios_of_its_batches() -> None:
    """A record a ms, in a batch of its own. From 1.0 on, each close lowers the estimate by 0.005."""
    records = Produced([*range(2 * SPAN_BATCHES + 5)], [100] * (2 * SPAN_BATCHES + 5))
    outcomes = no_outcomes(1, 1)
    sim = new_sim(
        captured(records, even_sizes(records, [0.5] * len(records.ms))), settings_of(Producer(200, 1 << 20)),
        as_produced(1 << 20), np.ones((1, 1, 5), np.float32), outcomes,
    )  # fmt: skip
    (spans,) = replay_stretch(sim, range(1))
    assert spans[["lane", "topic", "first_batch", "batches", "splits", "time"]].tolist() == [
        (0, 0, 0, 32, 0, 31_000), (0, 0, 32, 32, 0, 63_000),
    ]  # fmt: skip
    record = 1 + 1 + 1 + 104 + 2  # attributes, two deltas, the content, and the record's length
    assert spans["observed"] / MICRO == pytest.approx([32 * 50 / record] * 2, rel=1e-6)
    steps = [sum(range(first, first + 32)) for first in (0, 32)]
    assert spans["estimated"] / MICRO == pytest.approx([32 - 0.005 * of for of in steps], rel=1e-6)
    assert outcomes[["span_first", "span_batches"]][0, 0].tolist() == (64, 5)


def test_everything_is_counted_of_a_batch_that_is_refused_and_split_into_ten() -> None:
    """Its 75 records come at once and compress to nine tenths. Each batch has a header of 61 bytes, and the offsets of
    the last 11 records take another byte. The response comes after 7 ms.
    """
    records = Produced([0] * 75, [100] * 75, initial=[0.1], round_trip=7)
    found = replayed(Producer(1024, 2048, linger=5), records, even_sizes(records, [0.9] * 75))
    counted = {
        "batches": 1, "records": 75, "over_limit": 1, "splits": 1, "split_batches": 10, "failed": 0, "retries": 0,
        "size": 61 + 75 * 90, "largest": 61 + 75 * 90, "limit": 1024, "bytes_resent": 10 * 61 + 75 * 90,
        "bytes_sent": 11 * 61 + 2 * 75 * 90, "measured": 0, "model_error": 0, "recoveries": 0, "span_batches": 11,
        "span_splits": 1, "uncompressed": 64 * 109 + 11 * 110, "since_split": 7_000,
    }  # fmt: skip
    assert {name: found.of(name) for name in counted} == counted
