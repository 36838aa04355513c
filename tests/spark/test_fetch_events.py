"""What KIP-74's replay is told of clients and batches."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from jobs.replays.fetch_max_bytes.events import batch_events, read_events, with_profiles
from schemas.tables.silver import EXCHANGES, FETCH_PARTITIONS, RECORD_BATCHES
from schemas.tables.steps import LOG_EVENTS
from tests.gate_rows import frame
from udfs.replay.fetch_max_bytes.settings import JAVA_3, JAVA_4, LIBRDKAFKA

LONGEST = 2**63 - 1


@pytest.mark.parametrize(
    ("name", "version", "profile"),
    [
        ("apache-kafka-java", "3.9.1", JAVA_3), ("apache-kafka-java", "4.0.0", JAVA_4),
        ("apache-kafka-java", "unknown", JAVA_4), ("apache-kafka-java", "99999999999.0", JAVA_4),
        ("confluent-kafka-python", "2.1-rdkafka-2.1", LIBRDKAFKA), ("librdkafka", "2.1", LIBRDKAFKA),
        (None, None, None),
    ],
)  # fmt: skip
def test_whose_rules_a_client_follows_its_software_tells(
    spark: SparkSession, name: str | None, version: str | None, profile: int | None
) -> None:
    """A client that is packed into another jar says `unknown` for its version (AppInfoParser)."""
    exchange = {"connection_id": 5, "client_software_name": name, "client_software_version": version}
    fetches, exchanges = frame(spark, FETCH_PARTITIONS, [{"connection_id": 5}]), frame(spark, EXCHANGES, [exchange])
    (row,) = with_profiles(fetches, exchanges).collect()
    assert row[LOG_EVENTS.profile] == profile


def test_a_batch_whose_last_offset_or_size_cannot_be_is_not_in_the_log(spark: SparkSession) -> None:
    batch = {"source": "fetch", "size_bytes": 70, "magic": 2, "record_count": 1, "base_offset": 10}
    rows = [batch | {"last_offset_delta": 4}, batch | {"base_offset": LONGEST, "last_offset_delta": 1}]
    rows.append(batch | {"last_offset_delta": 0, "size_bytes": 2**31 + 11})
    found = batch_events(frame(spark, RECORD_BATCHES, rows)).collect()
    assert [row[LOG_EVENTS.last_offset] for row in found] == [14]


def test_a_committed_reader_that_is_told_nothing_reads_to_the_last_stable_offset_of_the_response_before(
    spark: SparkSession,
) -> None:
    """An incremental response is silent of a partition while both its offsets stand still (FetchSession)."""
    read = {"read_position": 0, "fetch_offset": 10, "isolation_level": 1, "high_watermark": 90}
    rows = [read | {"last_stable_offset": 40, "response_position": None}, read | {"last_stable_offset": None}]
    found = read_events(with_profiles(frame(spark, FETCH_PARTITIONS, rows), frame(spark, EXCHANGES, []))).collect()
    t = LOG_EVENTS
    assert [(row[t.bound_low], row[t.bound_high], row[t.told_bound]) for row in found] == [(40, 40, 40), (90, 90, 90)]
