"""What consumers read from followers (KIP-392), and what leaders alone would serve: from rows to sentences."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from jobs.report_page.cards import reads_cards
from jobs.report_page.fetch_max_bytes.follower_reads import SENT_AWAY, follower_reads, served_bytes
from jobs.report_page.question import Findings
from jobs.report_page.verdict import reads_lines
from schemas.tables.silver import FETCH_PARTITIONS
from tests.gate_rows import frame
from tests.unit.report.findings import findings

KB = 1024


def read(broker: str, returned: int | None, preferred: int | None = -1, **differs: Any) -> dict[str, Any]:
    """A consumer's read of a partition. preferred: the replica to which the broker sends it."""
    same = {"client_id": "app", "client_address": "10.0.0.1", "reader": "consumer", "topic": "t", "partition": 0}
    return {**same, "broker": broker, "returned_bytes": returned, "preferred_read_replica": preferred, **differs}


def of(spark: SparkSession, *reads: dict[str, Any]) -> Findings:
    """The findings of a capture of these reads, each with a connection of its own."""
    rows = [{"connection_id": number, **one} for number, one in enumerate(reads)]
    fetched = frame(spark, FETCH_PARTITIONS, rows)
    return findings({served_bytes: served_bytes(lambda _: fetched).collect()})


SENT = read("1", 0, preferred=2)


def test_what_followers_served_leaders_would_serve(spark: SparkSession) -> None:
    other: dict[str, Any] = {"client_id": "other", "partition": 1}
    found = of(spark, SENT, read("2", 3 * KB), read("2", KB), read("1", 5 * KB, **other), read("2", 7 * KB, **other))
    assert [*follower_reads(found)] == [
        "consumers read 4.0 KiB from followers; from leaders alone, broker 1 serves 9.0 KiB instead of 5.0 KiB"
    ]
    (card,) = reads_cards(found)
    assert card.lines[1:] == [
        "broker 1: 5.0 KiB served, 9.0 KiB from leaders alone",
        "broker 2: 11.0 KiB served, 7.0 KiB from leaders alone",
    ]


def test_a_consumer_that_was_not_sent_to_a_broker_reads_from_its_leader(spark: SparkSession) -> None:
    reads = [read("2", KB, client_address="10.0.0.2"), read("2", KB, partition=5), read("2", KB, reader="follower")]
    assert [*follower_reads(of(spark, *reads))] == []
    assert [*reads_lines(of(spark, *reads))] == []
    assert [*reads_cards(of(spark, *reads))] == []


def test_reads_that_the_capture_lacks_are_said(spark: SparkSession) -> None:
    found = of(spark, SENT, read("1", KB))
    assert [row["broker"] for row in found.of(served_bytes) if row["leader"]] == [SENT_AWAY]
    assert [*follower_reads(found)] == [
        "1 consumer is sent to a follower of which the capture has no reads: capture that broker, too, or state its "
        "node id"
    ]


def test_a_follower_that_had_nothing_to_serve_is_none_that_the_capture_lacks(spark: SparkSession) -> None:
    assert [*follower_reads(of(spark, SENT, read("2", 0)))] == []
