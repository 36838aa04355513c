"""What consumers read across racks, with and without fetch-from-follower (KIP-392): from silver rows to sentences."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from jobs.lake.packed_tables import unpack_table
from jobs.replays.algorithm import Lookups, Source
from jobs.replays.fetch_max_bytes.rack_reads import packed_rack_rows
from jobs.report_page.cards import reads_cards
from jobs.report_page.fetch_max_bytes.rack_reads import QUERIES, rack_reads
from jobs.report_page.question import Findings
from jobs.run import Run
from jobs.scenarios.scenario_file import resolve_scenario
from schemas.tables.gold_racks import RACK_READS
from schemas.tables.silver import EXCHANGES, FETCH_PARTITIONS
from schemas.tables.silver_topics import CLUSTER_METADATA
from schemas.tables.table import Table
from tests.gate_rows import TIME, frame
from tests.unit.report.findings import findings

KB = 1024
Row = dict[str, Any]
SELECTOR = "replica.selector.class=RackAwareReplicaSelector"
STATE = "--captured=address.10.0.1.0/24.client.rack=RACK or client.NAME.client.rack=RACK"


@dataclass(frozen=True)
class RowsAsSource(Source):
    """A source that gives these silver rows."""

    silver: dict[Table, DataFrame] = field(default_factory=dict)

    def rows(self, table: Table) -> DataFrame:
        return self.silver[table]


def at(seconds: int) -> datetime:
    return TIME + timedelta(seconds=seconds)


def read(broker: str, returned: int, **differs: Any) -> Row:
    """A consumer's read of a partition."""
    same = {"client_id": "app", "client_address": "10.0.0.1", "reader": "consumer", "topic": "t", "partition": 0}
    asked = {"api_version": 13, "current_leader_epoch": 4, "preferred_read_replica": -1, "request_time": at(60)}
    return {**same, **asked, "broker": broker, "returned_bytes": returned, **differs}


SENT = read("1", 0, preferred_read_replica=2)


def brokers(*racks: str | None) -> list[Row]:
    """What a Metadata response shows of brokers 1, 2, ..."""
    return [{"entry": "broker", "node_id": node, "rack": rack} for node, rack in enumerate(racks, 1)]


def partition(leader: int, isr: list[int], seconds: int = 0, epoch: int = 4, **differs: Any) -> Row:
    """What a Metadata response shows of a partition."""
    shown = {"entry": "partition", "topic": "t", "partition": 0, "leader_id": leader, "leader_epoch": epoch}
    return {**shown, "isr_nodes": isr, "response_time": at(seconds), **differs}


def source(
    spark: SparkSession, reads: list[Row], metadata: list[Row], rack: str | None = "b", stated: tuple[str, ...] = ()
) -> Source:
    """A source with these reads, by consumers that state this rack, or that of their row."""
    own = [{"rack": rack, **row} for row in numbered(reads)]
    states = [
        {**{name: row[name] for name in ("connection_id", "client_id", "client_address")}, "fetch_replica_id": -1,
         "fetch_rack_id": row.pop("rack")}
        for row in own
    ]  # fmt: skip
    silver = {
        FETCH_PARTITIONS: frame(spark, FETCH_PARTITIONS, own),
        EXCHANGES: frame(spark, EXCHANGES, states),
        CLUSTER_METADATA: frame(spark, CLUSTER_METADATA, numbered(metadata)),
    }
    run = Run(resolve_scenario(None, [], stated), (), "/lake", TIME)
    unseen = Lookups(parts=dict.fromkeys(silver))
    return RowsAsSource(spark, run, "a-capture", "a-run", {}, unseen, silver=silver)


def numbered(rows: list[Row]) -> list[Row]:
    """The rows, each with a connection of its own."""
    return [{"connection_id": number, **row} for number, row in enumerate(rows)]


def rows_of(of: Source) -> DataFrame:
    """The rows of rack_reads. There are none if the replay does not make them."""
    packed = packed_rack_rows(of)
    return frame(of.spark, RACK_READS, []) if packed is None else unpack_table(packed, RACK_READS)


def located(of: Source) -> list[Row]:
    """The rows of rack_reads as dicts, sorted by client id and broker."""
    rows = rows_of(of).collect()
    return sorted((row.asDict() for row in rows), key=lambda row: (row["client_id"], str(row["broker"])))


def found(of: Source) -> Findings:
    """The findings of a run on this source."""
    rows = rows_of(of).persist()
    return findings({query: query(lambda _: rows).collect() for query in QUERIES})


def told(of: Source) -> list[str]:
    return [*rack_reads(found(of))]


RACKED = [*brokers("a", "b"), partition(1, [1, 2])]


def test_what_leaders_serve_another_rack_a_replica_there_would_serve(spark: SparkSession) -> None:
    of = found(source(spark, [read("1", 3 * KB), read("1", KB)], RACKED))
    assert [*rack_reads(of)] == [
        f"consumers read 4.0 KiB across racks, of 4.0 KiB; none with {SELECTOR}",
        "with it, broker 2 serves 4.0 KiB instead of 0",
    ]
    (card,) = reads_cards(of)
    assert card.lines[2:] == [
        f"broker 1: 4.0 KiB served, 4.0 KiB from leaders alone, 0 with {SELECTOR}",
        f"broker 2: 0 served, 0 from leaders alone, 4.0 KiB with {SELECTOR}",
        f"app, topic t: 4.0 KiB read across racks, 4.0 KiB from leaders alone, none with {SELECTOR}",
    ]


def test_consumers_in_several_racks_may_share_their_client_id_and_address(spark: SparkSession) -> None:
    reads = [read("1", 3 * KB, rack="a"), read("2", KB, rack="b")]
    assert told(source(spark, reads, RACKED)) == [
        f"consumers read none across racks, of 4.0 KiB, 1.0 KiB from leaders alone; none with {SELECTOR}",
        "consumers read 1.0 KiB from followers; from leaders alone, broker 1 serves 4.0 KiB instead of 3.0 KiB",
    ]


def test_what_followers_served_leaders_would_serve(spark: SparkSession) -> None:
    of_other = read("1", 5 * KB, client_id="other", partition=1)
    metadata = [*RACKED, partition(1, [1], partition=1)]
    assert told(source(spark, [SENT, read("2", 3 * KB), of_other], metadata)) == [
        f"consumers read 5.0 KiB across racks, of 8.0 KiB, 8.0 KiB from leaders alone; 5.0 KiB with {SELECTOR}",
        "consumers read 3.0 KiB from followers; from leaders alone, broker 1 serves 8.0 KiB instead of 5.0 KiB",
    ]


def test_the_leader_is_that_of_the_epoch_else_who_sent_the_consumer_else_who_served(spark: SparkSession) -> None:
    def leader(*reads: Row, metadata: list[Row]) -> str:
        served = [row for row in located(source(spark, list(reads), metadata)) if row["broker"]]
        return str(served[-1]["leader"])

    assert leader(read("2", KB), metadata=RACKED) == "1"
    assert leader(SENT, read("2", KB, current_leader_epoch=5), metadata=RACKED) == "1"
    assert leader(read("2", KB, current_leader_epoch=5), metadata=RACKED) == "2"
    assert leader(read("2", KB, client_address="10.0.0.2"), SENT, metadata=brokers("a", "b")) == "2"
    assert leader(read("10.0.0.9:9092", KB), metadata=RACKED) == "10.0.0.9:9092"


def test_replicas_in_sync_are_those_that_metadata_showed_last(spark: SparkSession) -> None:
    metadata = [*brokers("a", "b", "b"), partition(1, [1, 2], 0), partition(1, [2, 1], 10), partition(1, [1, 3], 100)]
    reads = [read("1", KB, request_time=at(seconds)) for seconds in (-5, 50, 150)]
    rows = located(source(spark, reads, metadata))
    assert sorted((row["preferred"], row["bytes"]) for row in rows) == [("2", 2 * KB), ("3", KB)]


def test_one_of_several_replicas_in_the_rack_is_a_range(spark: SparkSession) -> None:
    metadata = [*brokers("a", "b", "b"), partition(1, [1, 2, 3])]
    of = found(source(spark, [read("1", 4 * KB)], metadata))
    (card,) = reads_cards(of)
    assert card.lines[1] == "with it, broker 3 serves 0 to 4.0 KiB instead of 0"
    assert f"broker 2: 0 served, 0 from leaders alone, 0 to 4.0 KiB with {SELECTOR}" in card.lines


@pytest.mark.parametrize("rack", [None, ""])
def test_where_no_consumer_states_its_rack_the_screen_asks_for_it(spark: SparkSession, rack: str | None) -> None:
    asked = f"of 4.0 KiB that 1 consumer read it is not known what crosses racks: state where they are, {STATE}"
    assert told(source(spark, [read("1", 4 * KB)], RACKED, rack)) == [asked]
    stated = source(spark, [read("1", 4 * KB)], RACKED, rack, ("address.10.0.0.0/24.client.rack=b",))
    assert told(stated)[0] == f"consumers read 4.0 KiB across racks, of 4.0 KiB; none with {SELECTOR}"


def test_racks_that_do_not_fit_and_partitions_that_no_response_shows_are_said(spark: SparkSession) -> None:
    reads = [read("1", KB), read("1", 2 * KB, client_id="other", partition=7)]
    wrong = told(source(spark, reads, RACKED, stated=("client.app.client.rack=B",)))
    assert wrong == [
        "of 1.0 KiB that 1 consumer read it is not known what crosses racks: no broker is in their rack; state it as "
        f"brokers spell theirs, {STATE}",
        "of 2.0 KiB that 1 consumer read it is not known what crosses racks: no Metadata response shows the "
        "partitions' replicas; capture while consumers start, or for 5 min (metadata.max.age.ms)",
    ]
    assert told(source(spark, [read("1", KB)], [*brokers(None, "b"), partition(1, [1, 2])])) == []
    half = [*brokers("a", None), partition(1, [1, 2])]
    assert told(source(spark, [read("1", KB)], half, stated=("consumer.client.rack=a",))) == [
        f"consumers read none across racks, of 1.0 KiB; none with {SELECTOR}"
    ]


def test_a_cluster_without_racks_is_told_nothing_of_them(spark: SparkSession) -> None:
    without = source(spark, [read("1", KB)], [*brokers(None, ""), partition(1, [1, 2])], None)
    assert packed_rack_rows(without) is None, "all reads are not looked through for nothing"
    of = found(without)
    assert [*rack_reads(of)] == []
    assert [*reads_cards(of)] == []


def test_reads_that_the_capture_lacks_are_said(spark: SparkSession) -> None:
    of = source(spark, [SENT, read("1", KB)], brokers(None, None), None)
    assert [(row["leader"], row["preferred"], row["bytes"]) for row in located(of) if not row["broker"]] == [
        ("1", "2", 0)
    ]
    assert told(of) == [
        "1 consumer is sent to a follower of which the capture has no reads: capture that broker, too, or state its "
        "node id"
    ]


def test_a_follower_that_had_nothing_to_serve_is_none_that_the_capture_lacks(spark: SparkSession) -> None:
    assert told(source(spark, [SENT, read("2", 0)], brokers(None, None), None)) == []


def test_followers_and_reads_outside_the_window_are_left_out(spark: SparkSession) -> None:
    reads = [read("1", KB, request_time=at(seconds)) for seconds in (29, 30)]
    of = source(spark, [read("1", KB, reader="follower"), *reads], RACKED)
    scenario = resolve_scenario(None, window={"from": "2026-01-31T12:00:30Z"})
    assert [row["bytes"] for row in located(replace(of, run=replace(of.run, scenario=scenario)))] == [KB]
