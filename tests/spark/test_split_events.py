"""What KIP-126's replay is given of produced batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from jobs.replays.batch_split.events import check_topics, created_topics, sent_batches
from schemas.tables.silver import CONNECTIONS, EXCHANGES, RECORD_BATCHES
from schemas.tables.silver_topics import TOPIC_CHANGES
from schemas.tables.steps import SENT
from schemas.tables.table import Table
from udfs.errors import CaptureError
from udfs.facts.arrow_tables import arrow_schema
from udfs.replay.batch_split.settings import TopicLimits

NOW_MS = 1_700_000_000_000
LONGEST = 2**63 - 1


def row_of(table: Table, **columns: Any) -> dict[str, Any]:
    """A row with what is given, the rest null or empty."""
    empty = {"string": "", "boolean": False, "timestamp": NOW_MS * 1000}
    return {str(c): None if c.nullable else empty.get(c.type, 0) for c in table.columns} | columns


def batch(connection: int, base_timestamp: int, **columns: Any) -> dict[str, Any]:
    """A produced batch, requested at NOW_MS."""
    usual = {"source": "produce", "magic": 2, "size_bytes": 100, "client_id": "c", "client_address": "10.0.0.1"}
    times = {"request_time": NOW_MS * 1000, "base_timestamp": base_timestamp}
    return row_of(RECORD_BATCHES, **{"connection_id": connection, **usual, **times, **columns})


def client(connection: int, name: str | None, version: str | None) -> dict[str, Any]:
    return row_of(
        CONNECTIONS, connection_id=connection, client_software_name=name, client_software_version=version
    )  # fmt: skip


def request(connection: int, api: str, version: int) -> dict[str, Any]:
    return row_of(EXCHANGES, connection_id=connection, api_name=api, api_version=version)


def creation(exchange: int, topic: str, max_message_bytes: int | None, **columns: Any) -> dict[str, Any]:
    """A topic's creation, which the broker did not refuse unless told."""
    given = {"kind": "create_topic", "topic": topic, "max_message_bytes": max_message_bytes}
    usual = {"exchange_no": exchange, "error_code": 0, "validate_only": False}
    return row_of(TOPIC_CHANGES, **usual, **given) | columns


def given(spark: SparkSession, rows: list[dict[str, Any]], table: Table) -> DataFrame:
    """The rows as a silver table that is read."""
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema=arrow_schema(table)))


def test_a_sequence_is_a_number_only_with_a_producer_id(spark: SparkSession) -> None:
    """aiokafka writes 0 into every batch without: they are not one batch that is sent again and again."""
    batches = given(spark, [batch(1, NOW_MS, producer_id=p, base_sequence=0) for p in (7, -1)], RECORD_BATCHES)
    clients = given(spark, [client(1, None, None)], CONNECTIONS)
    created = created_topics(given(spark, [], TOPIC_CHANGES))
    rows = sent_batches(batches, clients, given(spark, [], EXCHANGES), created, False, 4).toArrow().to_pylist()
    assert {row[SENT.producer_id]: row[SENT.base_sequence] for row in rows} == {7: 0, -1: -1}


def test_a_batch_is_told_with_its_append_and_its_client(spark: SparkSession) -> None:
    """A timestamp that cannot be the client's clock, or is no time at all, is not taken for one."""
    clients = [
        client(1, "apache-kafka-java", "4.3.1"), client(2, "apache-kafka-java", "4.1.0"),
        client(3, "librdkafka", "2.1"), client(4, None, None), client(5, "apache-kafka-java", "trunk"),
        client(6, "apache-kafka-java", "2147483647.2147483647"),
    ]  # fmt: skip
    made = [NOW_MS - 20, NOW_MS - 10**9, NOW_MS + 5, LONGEST, -LONGEST, NOW_MS]
    batches = [batch(number, at, topic=topic) for number, (at, topic) in enumerate(zip(made, "tuwwww", strict=True), 1)]
    batches += [batch(1, NOW_MS, source="fetch"), batch(1, NOW_MS, magic=1)]
    changes = [
        creation(1, "t", 4000), creation(2, "t", 5000), creation(3, "t", 6000, error_code=36),
        creation(4, "t", 7000, validate_only=True), creation(5, "u", None), creation(6, "v", 8000),
    ]  # fmt: skip
    of_topics = created_topics(given(spark, changes, TOPIC_CHANGES))
    silent = given(spark, [], EXCHANGES)
    frames = given(spark, batches, RECORD_BATCHES), given(spark, clients, CONNECTIONS), silent, of_topics
    found = {row[SENT.connection_id]: row for row in sent_batches(*frames, False, 4).toArrow().to_pylist()}
    t, us = SENT, NOW_MS * 1000
    since = {number: row[t.append_from] - us for number, row in found.items()}
    assert since == {1: -20_000, 2: 0, 3: 0, 4: 0, 5: 0, 6: 0}
    assert [found[number][t.max_message_bytes] for number in (1, 2, 3)] == [5000, None, None]
    assert all(found[1][told] == [] for told in (t.record_sizes, t.create_times, t.recompressed_bytes))
    told = {number: (row[t.is_java], row[t.halves]) for number, row in found.items()}
    newest = (True, True)
    assert told == {1: newest, 2: (True, False), 3: (False, False), 4: newest, 5: newest, 6: newest}
    by_host = sent_batches(*frames, True, 4).toArrow().to_pylist()
    assert {(row[t.client_id], row[t.client_address]) for row in by_host} == {("", "10.0.0.1")}


def test_a_topic_that_nobody_produces_to_has_no_limit_of_its_own(spark: SparkSession) -> None:
    rows = pa.Table.from_pylist([batch(1, NOW_MS, topic="t")], schema=arrow_schema(RECORD_BATCHES))
    batches, one = spark.createDataFrame(rows), np.zeros(1, np.int64)
    check_topics(batches, TopicLimits(({"t": 1},), one, one, 1))
    with pytest.raises(CaptureError, match="is given of orders, tt, to which the capture shows no batch"):
        check_topics(batches, TopicLimits(({"t": 1, "tt": 1, "orders": 1},), one, one, 1))


def test_a_client_that_produces_as_since_2_4_and_does_not_name_itself_is_not_kafkas(spark: SparkSession) -> None:
    """kafka-go is one. Of a connection that began before the capture it is not known how it asked for versions."""
    asked = [(1, 0, 8), (2, 2, 7), (3, 3, 8), (4, None, 8)]
    requests = [request(n, "PRODUCE", version) for n, _, version in asked]
    requests += [request(n, "API_VERSIONS", version) for n, version, _ in asked if version is not None]
    frames = (
        given(spark, [batch(n, NOW_MS) for n, _, _ in asked], RECORD_BATCHES),
        given(spark, [client(n, None, None) for n, _, _ in asked], CONNECTIONS),
        given(spark, requests, EXCHANGES),
        created_topics(given(spark, [], TOPIC_CHANGES)),
    )
    found = {
        row[SENT.connection_id]: row[SENT.is_java] for row in sent_batches(*frames, False, 4).toArrow().to_pylist()
    }
    assert found == {1: False, 2: True, 3: True, 4: True}
