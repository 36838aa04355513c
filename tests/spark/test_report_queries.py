"""The report's queries on the tables: which figures stand side by side, and over what a mean is taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from jobs.lake.delta_tables import rows_of_driver
from jobs.replays.algorithm import OwnRows
from jobs.replays.batch_split.answers import lanes as split_lanes
from jobs.replays.batch_split.answers import recompressed_lines, recompressed_topics, refused_unlike_replay
from jobs.replays.fetch_max_bytes.answers import answer_lines, closed_lanes
from jobs.replays.session_cache.share_answers import share_lanes
from jobs.report_page.advice import client_rows
from jobs.report_page.advice.client_rows import rows_of_first_clients, with_fidelity
from jobs.report_page.partition_limits import captured_cluster
from jobs.report_page.row_caps import IN_ALL, first_rows
from schemas.tables.gold import FETCH_CONSUMERS, FETCH_FAIRNESS, FETCH_MEMORY, FIDELITY
from schemas.tables.gold_limits import PARTITIONS_PER_BROKER
from schemas.tables.gold_shares import SHARE_LIMITS, SHARE_MEMBERS, SHARE_SESSIONS
from schemas.tables.gold_splits import BATCH_SPLIT
from schemas.tables.table import Table
from tests.unit.report.findings import AT
from udfs.facts.arrow_tables import arrow_schema

Rows = Sequence[Mapping[str, Any]]
LANE: dict[str, Any] = {"scenario": "captured", "reader": "consumer", "mode": "closed"}


def tables(spark: SparkSession, *rows: tuple[Table, Rows]) -> OwnRows:
    """A run's gold tables with these rows. Tables that are not named have none."""
    held = {of.name: some for of, some in rows}

    def own_rows(table: Table) -> DataFrame:
        listed = [{**LANE, **row} for row in held.get(table.name, [])]
        return rows_of_driver(spark, pa.Table.from_pylist(listed, schema=arrow_schema(table)))

    return own_rows


def frame(spark: SparkSession, *rows: Mapping[str, Any]) -> DataFrame:
    return rows_of_driver(spark, pa.Table.from_pylist(list(rows)))


def only(rows: DataFrame) -> Row:
    (row,) = rows.collect()
    return row


def test_batches_are_filled_on_average_of_batches_and_not_of_producers(spark: SparkSession) -> None:
    t = BATCH_SPLIT
    producers: Rows = [
        {t.client_id: "billing", t.batches: 9, t.fill: 0.255},
        {t.client_id: "audit", t.batches: 3, t.fill: 0.021},
        {t.client_id: "of-no-size", t.batches: 99, t.fill: None},
    ]
    assert only(split_lanes(tables(spark, (t, producers))))["fill"] == pytest.approx((9 * 0.255 + 3 * 0.021) / 12)


def test_the_bound_beside_what_a_consumer_holds_is_its_own(spark: SparkSession) -> None:
    c, f, m = FETCH_CONSUMERS, FETCH_FAIRNESS, FETCH_MEMORY
    waits: Rows = [{f.client_id: "a", f.longest_wait_ms: 1.0}, {f.client_id: "b", f.longest_wait_ms: 9.0}]
    held: Rows = [
        {m.client_id: "a", m.bytes_max: 170, m.memory_bound_bytes: 1200},
        {m.client_id: "b", m.bytes_max: 30, m.memory_bound_bytes: 2400},
    ]
    row = only(closed_lanes(tables(spark, (c, [{c.client_id: "a"}]), (f, waits), (m, held))))
    assert (row["held"], row["own_bound"], row["bound"]) == (170, 1200, 2400)
    assert row["longest"][f.client_id] == "b"


def test_backlogs_that_consumers_left_are_counted_beside_the_catch_up(spark: SparkSession) -> None:
    c, f, m = FETCH_CONSUMERS, FETCH_FAIRNESS, FETCH_MEMORY
    consumers: Rows = [
        {c.client_id: "a", c.catch_up_ms: 30.0, c.given_up: 3, c.left_out: 0, c.requests: 1, c.cut_tail_bytes: 0},
        {c.client_id: "b", c.catch_up_ms: 20.0, c.given_up: 1, c.left_out: 0, c.requests: 1, c.cut_tail_bytes: 0},
    ]
    waits: Rows = [
        {f.client_id: "a", f.topic: "t", f.partition: 0, f.longest_wait_ms: 0.0, f.empty_though_available: 0}
    ]
    held: Rows = [{m.client_id: "a", m.bytes_max: 170, m.memory_bound_bytes: 1200}]
    row = only(closed_lanes(tables(spark, (c, consumers), (f, waits), (m, held))))
    assert (row["took"], row["never"]) == (30.0, False)
    told = [*answer_lines({"closed": [row], "open": [], "producers": []}, ["captured"])]
    assert "  ! catch-up leaves out 4 backlogs that a consumer left before they were read" in told


def test_refused_batches_that_the_replay_takes_are_counted_of_splits_alone(spark: SparkSession) -> None:
    t = FIDELITY
    of_splits: dict[str, Any] = {t.algorithm: "batch_split", t.metric: "splits"}
    rows: Rows = [
        of_splits | {t.client_id: "billing", t.reasons: [("split_not_replayed", 2), ("split_not_captured", 5)]},
        of_splits | {t.client_id: "audit", t.reasons: [("split_not_replayed", 1), ("recompressed", 4)]},
        of_splits | {t.metric: "splits_replayed", t.reasons: [("split_not_replayed", 9)]},
    ]
    assert only(refused_unlike_replay(tables(spark, (t, rows))))["refused"] == 7
    assert only(refused_unlike_replay(tables(spark, (t, rows[2:]))))["refused"] == 0


def test_topics_that_brokers_compress_anew_are_told_of_the_captured_lane_by_codec(spark: SparkSession) -> None:
    t = BATCH_SPLIT
    topics = [("b", "gzip"), ("a", "gzip"), ("c", "none"), ("d", None)]
    rows: Rows = [
        {t.scenario: lane, t.client_id: client, t.topic: topic, t.stored_codec: codec}
        for lane in ("captured", "producer.batch.size=1MiB")
        for client in ("x", "y")
        for topic, codec in topics
    ]
    found = recompressed_topics(tables(spark, (t, rows))).collect()
    assert [*recompressed_lines(found)] == [
        "  brokers compress into gzip whatever is produced to a and 1 more, and check its size again",
        "    that size is estimated: how many of its batches are too large is not certain",
        "  brokers take the compression off whatever is produced to c, and check its size again",
    ]


def test_brokers_that_have_as_many_replicas_are_counted(spark: SparkSession) -> None:
    p = PARTITIONS_PER_BROKER
    counts = {1: 4, 2: 4, 3: 3}
    rows: Rows = [{p.at: AT, p.broker: broker, p.partitions: count} for broker, count in counts.items()]
    row = only(captured_cluster(tables(spark, (p, rows))))
    assert (row["brokers"], row["replicas"], row["alike"]) == (3, 11, 2)


def test_the_first_rows_have_the_number_of_all_rows_beside_them(spark: SparkSession) -> None:
    rows = frame(spark, {"topic": "b", "bytes": 5}, {"topic": "a", "bytes": 5}, {"topic": "c", "bytes": 9})
    first = first_rows(rows, 2, F.desc("bytes"), "topic").collect()
    assert [(row["topic"], row[IN_ALL]) for row in first] == [("c", 3), ("a", 3)]
    assert first_rows(rows.where("bytes > 9"), 2, "topic").collect() == []


def test_spark_has_nothing_to_warn_of_where_first_rows_are_counted(spark: SparkSession) -> None:
    """It logs a warning for each window without groups."""
    plan = str(first_rows(frame(spark, {"topic": "a"}), 2, "topic")._jdf.queryExecution().optimizedPlan())
    assert "windowspecdefinition(" in plan
    assert "windowspecdefinition(specifiedwindowframe" not in plan


def test_the_clients_that_come_first_in_the_captured_lane_keep_all_their_lanes(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_rows, "MOST_CLIENTS", 2)
    waits = {("a", "captured"): 1, ("b", "captured"): 3, ("c", "captured"): 2, ("a", "other"): 9, ("b", "other"): 0}
    rows = frame(
        spark, *({"client_id": of, "scenario": lane, "wait": wait} for (of, lane), wait in waits.items()),
        {"client_id": "only-other", "scenario": "other", "wait": 10},
    )  # fmt: skip
    first = rows_of_first_clients(rows, F.desc("wait"))
    assert first.columns == rows.columns
    assert {(row["client_id"], row["scenario"]) for row in first.collect()} == {
        ("b", "captured"), ("b", "other"), ("c", "captured")
    }  # fmt: skip


@pytest.mark.parametrize(("in_loop", "expected"), [(0, (0, 0, 37)), (4, (96, 94, 37))])
def test_advice_on_fetch_limits_counts_nothing_as_checked_if_nothing_of_its_closed_loop_was(
    spark: SparkSession, in_loop: int, expected: tuple[int, int, int]
) -> None:
    """Of the one client, 92 fetches could be checked in open loop."""
    f = FIDELITY
    of: Mapping[str, Any] = {f.algorithm: "fetch_max_bytes", f.client_id: "a", f.broker: "1"}
    rows: Rows = [
        {**of, f.metric: "fetches_with_records", f.checked: 92, f.agreed: 90, f.unknown: 5},
        {**of, f.metric: "closed_loop_bytes", f.checked: in_loop, f.agreed: in_loop, f.unknown: 32},
    ]
    clients = frame(spark, {"client_id": "a"})
    own_rows = tables(spark, (f, rows))
    row = only(with_fidelity(clients, own_rows, "fetch_max_bytes", "consumer", rests_on="closed_loop_"))
    assert (row[f.checked], row[f.agreed], row[f.unknown]) == expected
    assert only(with_fidelity(clients, own_rows, "fetch_max_bytes", "consumer"))[f.checked] == 92 + in_loop


def test_refusals_of_share_sessions_in_the_capture_are_told_beside_those_of_the_replay(spark: SparkSession) -> None:
    c = SHARE_SESSIONS
    buckets: Rows = [
        {c.created: 1, c.refused: 0, c.not_found: 0, c.dropped: 0, c.captured_created: 1, c.captured_refused: times}
        for times in (2, 5)
    ]
    others: list[tuple[Table, Rows]] = [(table, [{}]) for table in (SHARE_LIMITS, SHARE_MEMBERS)]
    row = only(share_lanes(tables(spark, (c, buckets), *others)))
    assert (row[c.refused], row[c.captured_refused], row[c.captured_created]) == (0, 7, 2)
