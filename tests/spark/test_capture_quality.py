"""The sums of what a capture set lacks."""

from __future__ import annotations

from pyspark.sql import SparkSession

from jobs.captures.capture_quality import quality_rows
from jobs.lake.delta_tables import table_without_rows
from schemas.tables.silver import CONNECTIONS
from schemas.tables.silver_quality import CAPTURE_QUALITY
from schemas.tables.steps import EXCHANGE_COUNTS
from tests.gate_rows import CAPTURE, frame
from udfs.facts.cluster_names import ClusterNames


def test_a_set_has_a_row_for_each_connection_and_one_for_all(spark: SparkSession) -> None:
    t, kafka = CAPTURE_QUALITY, {"protocol": "kafka", "payload_bytes": 90, "missing_bytes": 10}
    connections = frame(spark, CONNECTIONS, [kafka | {"connection_id": n} for n in (5, 6)])
    counts = frame(spark, EXCHANGE_COUNTS, [{"connection_id": n, "exchanges": 3} for n in (5, 6)])
    rows = {row[t.connection_id]: row for row in quality_rows(connections, counts, CAPTURE).collect()}
    assert {n: (row[t.scope], row[t.connections], row[t.exchanges]) for n, row in rows.items()} == {
        5: ("connection", 1, 3), 6: ("connection", 1, 3), None: ("capture set", 2, 6)
    }  # fmt: skip
    assert rows[None][t.missing_share] == 0.1


def test_brokers_without_a_node_id_are_told_with_the_reason(spark: SparkSession) -> None:
    """Nothing is said about a connection that is not Kafka's."""
    t, server = CAPTURE_QUALITY, {"server": "10.0.0.1:9999"}
    rows: list[dict[str, object]] = [
        {"connection_id": 5, "protocol": "kafka"} | server,
        {"connection_id": 6, "protocol": "kafka"} | server,
        {"connection_id": 7, "protocol": "tls"} | server,
        {"connection_id": 8, "protocol": "kafka", "server": "10.0.0.1:9092"},
    ]
    names = ClusterNames(unnamed={"10.0.0.1:9999": "Nothing tells."})
    quality = quality_rows(frame(spark, CONNECTIONS, rows), table_without_rows(spark, EXCHANGE_COUNTS), CAPTURE, names)
    told = {row[t.connection_id]: (row[t.unnamed_connections], row[t.unnamed_brokers]) for row in quality.collect()}
    why = ["10.0.0.1:9999: Nothing tells."]
    assert told == {5: (1, why), 6: (1, why), 7: (0, []), 8: (0, []), None: (2, why)}


def test_brokers_that_are_not_apache_kafkas_are_told_with_whose_they_are(spark: SparkSession) -> None:
    t, kafka = CAPTURE_QUALITY, {"protocol": "kafka"}
    rows: list[dict[str, object]] = [
        kafka | {"connection_id": 5, "broker": "1", "server": "10.0.0.1:9092"},
        kafka | {"connection_id": 6, "broker": "1", "server": "10.0.0.1:9093"},
        kafka | {"connection_id": 7, "broker": "2", "server": "10.0.0.2:9092"},
        kafka | {"connection_id": 8, "broker": "3", "server": "10.0.0.3:9092"},
    ]
    names = ClusterNames(
        vendor_of={"10.0.0.1:9092": "redpanda", "10.0.0.1:9093": "redpanda", "10.0.0.3:9092": "other"},
        unnamed={"10.0.0.3:9092": "Nothing tells."},
    )
    quality = quality_rows(frame(spark, CONNECTIONS, rows), table_without_rows(spark, EXCHANGE_COUNTS), CAPTURE, names)
    told = {row[t.connection_id]: (row[t.other_brokers], row[t.unnamed_connections]) for row in quality.collect()}
    assert told == {
        5: (["1: redpanda"], 0), 6: (["1: redpanda"], 0), 7: ([], 0), 8: (["3: other"], 1),
        None: (["1: redpanda", "3: other"], 1),
    }  # fmt: skip


def test_a_set_without_a_connection_has_the_row_for_all(spark: SparkSession) -> None:
    (row,) = quality_rows(
        table_without_rows(spark, CONNECTIONS), table_without_rows(spark, EXCHANGE_COUNTS), CAPTURE
    ).collect()
    sums = [value for column, value in row.asDict().items() if column not in ("capture_id", "scope")]
    assert row[CAPTURE_QUALITY.scope] == "capture set"
    assert not any(sums)
