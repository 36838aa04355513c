"""Topics with the same max.message.bytes are judged together, and a producer by all topics that it writes to."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import SparkSession

from jobs.find.lane_outcomes import LIMIT, SUMS, outcomes_by_lane, with_limits
from jobs.find.scopes import FOR_ALL, Scope
from jobs.lake.delta_tables import rows_of_driver
from jobs.report_page.advice.batch_sizes import split_producers
from jobs.scenarios.scenario import CAPTURED_LANE
from schemas.tables.gold_splits import BATCH_SPLIT, BATCH_SPLIT_RANGES
from schemas.tables.outcomes import outcomes_of
from schemas.tables.values import OF_CLIENT, OF_CLUSTER, OF_LIMIT
from tests.spark.test_report_queries import Rows, tables

LANES = (CAPTURED_LANE, "producer.batch.size=8KiB")


def test_topics_of_one_limit_are_as_well_off_as_the_worst_of_them_and_have_their_sum(spark: SparkSession) -> None:
    known = outcomes_of("batch_split")
    limits = {"orders": 40_000.0, "audit": 40_000.0, "logs": 1_048_588.0}
    rates = {"orders": (0.25, 0.0), "audit": (0.5, 0.01), "logs": (0.0, 0.0)}
    rows = [
        (lane, outcome, OF_LIMIT, topic, value)
        for topic in limits
        for place, lane in enumerate(LANES)
        for outcome, value in (("split_rate", rates[topic][place]), ("sent", 10.0), (LIMIT.name, limits[topic]))
    ]
    rows.append((LANES[1], LIMIT.name, OF_LIMIT, "orders", 1.0))  # only the captured lane's limit groups topics
    rows += [(LANES[0], "split_rate", kind, name, 0.5) for kind, name in ((OF_CLUSTER, ""), (OF_CLIENT, "app"))]
    columns = list(zip(*((*row, *row[-1:] * 2) for row in rows), strict=True))
    summed = pa.table(dict(zip(SUMS.names, columns, strict=True)), schema=SUMS)
    folded = with_limits(rows_of_driver(spark, summed), [known["split_rate"], known["sent"]])
    figures = {
        key: {name: ranged.value for name, ranged in of.items()}
        for key, of in outcomes_by_lane(folded.collect()).items()
    }
    small, large = Scope(OF_LIMIT, "40000"), Scope(OF_LIMIT, "1048588")
    assert figures == {
        (small, LANES[0]): {"split_rate": 0.5, "sent": 20.0}, (small, LANES[1]): {"split_rate": 0.01, "sent": 20.0},
        (large, LANES[0]): {"split_rate": 0.0, "sent": 10.0}, (large, LANES[1]): {"split_rate": 0.0, "sent": 10.0},
        (FOR_ALL, LANES[0]): {"split_rate": 0.5}, (Scope(OF_CLIENT, "app"), LANES[0]): {"split_rate": 0.5},
    }  # fmt: skip


def test_a_producer_is_judged_by_the_worst_of_its_topics_whatever_their_limits(spark: SparkSession) -> None:
    t, r = BATCH_SPLIT, BATCH_SPLIT_RANGES
    rates = {"small": (0.5, 0.2), "large": (0.0, 0.0)}
    own: Rows = [
        {t.client_id: "app", t.topic: topic, t.scenario: lane, t.split_rate: rates[topic][place], t.batches: 10,
         t.failed_batches: 0, t.batch_size: 16384, t.max_message_bytes: 40_000 if topic == "small" else 1_048_588}
        for topic in rates for place, lane in enumerate(LANES)
    ]  # fmt: skip
    ranges: Rows = [
        {r.client_id: "app", r.topic: row[t.topic], r.scenario: row[t.scenario], r.metric: "split_rate",
         r.p10: row[t.split_rate], r.p50: row[t.split_rate], r.p90: 2 * row[t.split_rate]}
        for row in own
    ]  # fmt: skip
    by_lane = {row[t.scenario]: row for row in split_producers(tables(spark, (t, own), (r, ranges))).collect()}
    assert {lane: row["rate"] for lane, row in by_lane.items()} == {LANES[0]: 0.5, LANES[1]: 0.2}
    assert by_lane[LANES[1]]["split_rate_range"]["p90"] == 0.4
