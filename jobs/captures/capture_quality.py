"""What a capture set lacks, by connection and in all: what to know before any other number."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from schemas.tables.silver import CAPTURE_QUALITY, CONNECTIONS

KAFKA_PROTOCOL = "kafka"
"""The protocol of connections that are Kafka's."""
WHOLE_SET = "capture set"
ALL_NAMED: Mapping[str, str] = MappingProxyType({})
MOST_BROKERS = 20


def quality_rows(
    connections: DataFrame, exchange_counts: DataFrame, capture_id: str, unnamed: Mapping[str, str] = ALL_NAMED
) -> DataFrame:
    """Rows of the table `capture_quality` from a capture set's connections and EXCHANGE_COUNTS.

    unnamed: by server without a node id why it has none, and what to do.
    """
    t = CAPTURE_QUALITY
    # Of no rows at all a rollup makes none: with one of no connection there is a sum where nothing was captured.
    nothing = connections.sparkSession.range(1).select(F.lit(None).cast(t.connection_id.type).alias(t.connection_id))
    rows = connection_counts(with_reasons(connections, unnamed)).unionByName(exchange_counts, allowMissingColumns=True)
    rows = rows.unionByName(nothing, allowMissingColumns=True)
    identity, share = {t.capture_id, t.scope, t.connection_id, t.protocol, t.broker, t.client}, t.missing_share
    counted = [c for c in t.columns if c not in identity and c not in (share, t.unnamed_brokers)]
    totals = [F.coalesce(F.sum(c), F.lit(0)).alias(c) for c in counted]
    names = [only_if_one_connection(c) for c in (t.protocol, t.broker, t.client)]
    is_total = F.grouping(t.connection_id) == 1
    summed = rows.rollup(t.connection_id).agg(
        F.lit(capture_id).alias(t.capture_id),
        F.when(is_total, WHOLE_SET).otherwise("connection").alias(t.scope),
        *names,
        *totals,
        F.slice(F.sort_array(F.collect_set(t.unnamed_brokers)), 1, MOST_BROKERS).alias(t.unnamed_brokers),
    )
    streamed = F.col(t.payload_bytes) - F.col(t.repeated_bytes) + F.col(t.missing_bytes)
    missing = F.when(streamed > 0, F.col(t.missing_bytes) / streamed).otherwise(0.0)
    is_of_something = (F.col(t.scope) == WHOLE_SET) | F.col(t.connection_id).isNotNull()
    return summed.where(is_of_something).withColumn(share, missing).select(*t.columns)


def only_if_one_connection(column: str) -> Column:
    """The value of a connection's single row that has one; null in the row of the whole capture set."""
    return F.when(F.grouping(CAPTURE_QUALITY.connection_id) == 0, F.max(column)).alias(column)


def with_reasons(connections: DataFrame, unnamed: Mapping[str, str]) -> DataFrame:
    """Connections with the column `unnamed_brokers`: a broker's server and why it has no node id; else null."""
    c, t = CONNECTIONS, CAPTURE_QUALITY
    by_server = [(server, f"{server}: {why}") for server, why in sorted(unnamed.items())]
    reasons = connections.sparkSession.createDataFrame(by_server, f"{c.server} string, {t.unnamed_brokers} string")
    joined = connections.join(F.broadcast(reasons), str(c.server), "left")
    is_kafka = F.col(c.protocol) == KAFKA_PROTOCOL
    return joined.withColumn(t.unnamed_brokers, F.when(is_kafka, F.col(t.unnamed_brokers)))


def connection_counts(connections: DataFrame) -> DataFrame:
    """A row a connection: whose it is, and what became of its bytes. connections: those of `with_reasons`."""
    c, t = CONNECTIONS, CAPTURE_QUALITY
    is_kafka = F.col(c.protocol) == KAFKA_PROTOCOL
    return connections.select(
        c.connection_id, c.protocol, c.broker, c.client,
        F.lit(1).alias(t.connections),
        (~is_kafka).cast("int").alias(t.foreign_connections),
        F.col(c.began_before_capture).cast("int").alias(t.connections_begun_before),
        c.payload_bytes, c.repeated_bytes, c.missing_bytes,
        F.when(is_kafka, 0).otherwise(F.col(c.payload_bytes)).alias(t.foreign_bytes),
        F.when(is_kafka, F.col(c.unframed_bytes) + F.col(c.late_bytes)).otherwise(0).alias(t.quarantined_bytes),
        F.col(t.unnamed_brokers).isNotNull().cast("int").alias(t.unnamed_connections),
        t.unnamed_brokers,
    )  # fmt: skip
