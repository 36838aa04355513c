"""What a capture set lacks, by connection and in total: to be read before any other number."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from schemas.tables.silver import CONNECTIONS
from schemas.tables.silver_quality import CAPTURE_QUALITY
from schemas.tables.values import CONTINUED, DOES_NOT_FIT, NOT_THERE
from udfs.facts.cluster_names import ClusterNames

KAFKA_PROTOCOL = "kafka"
"""The protocol of Kafka connections."""
WHOLE_SET = "capture set"
NO_NAMES = ClusterNames()
MOST_BROKERS = 20
LISTS = (CAPTURE_QUALITY.unnamed_brokers, CAPTURE_QUALITY.other_brokers)
"""Columns that list brokers, each with a note about it."""


def quality_rows(
    connections: DataFrame, exchange_counts: DataFrame, capture_id: str, names: ClusterNames = NO_NAMES
) -> DataFrame:
    """Rows of the table `capture_quality` from a capture set's connections and EXCHANGE_COUNTS.

    names: which brokers have no node id, and which are not Apache Kafka's.
    """
    t = CAPTURE_QUALITY
    # A rollup of no rows has no rows. This row, of no connection, gives a total even where nothing was captured.
    nothing = connections.sparkSession.range(1).select(F.lit(None).cast(t.connection_id.type).alias(t.connection_id))
    rows = connection_counts(with_notes(connections, names)).unionByName(exchange_counts, allowMissingColumns=True)
    rows = rows.unionByName(nothing, allowMissingColumns=True)
    identity, share = {t.capture_id, t.scope, t.connection_id, t.protocol, t.broker, t.client}, t.missing_share
    counted = [c for c in t.columns if c not in identity and c not in (share, *LISTS)]
    totals = [F.coalesce(F.sum(c), F.lit(0)).alias(c) for c in counted]
    of_one = [only_if_one_connection(c) for c in (t.protocol, t.broker, t.client)]
    is_total = F.grouping(t.connection_id) == 1
    summed = rows.rollup(t.connection_id).agg(
        F.lit(capture_id).alias(t.capture_id),
        F.when(is_total, WHOLE_SET).otherwise("connection").alias(t.scope),
        *of_one,
        *totals,
        *(F.slice(F.sort_array(F.collect_set(notes)), 1, MOST_BROKERS).alias(notes) for notes in LISTS),
    )
    streamed = F.col(t.payload_bytes) - F.col(t.repeated_bytes) + F.col(t.missing_bytes)
    missing = F.when(streamed > 0, F.col(t.missing_bytes) / streamed).otherwise(0.0)
    is_of_something = (F.col(t.scope) == WHOLE_SET) | F.col(t.connection_id).isNotNull()
    return summed.where(is_of_something).withColumn(share, missing).select(*t.columns)


def only_if_one_connection(column: str) -> Column:
    """The value of a connection, from its only row with one; null in the row of the whole capture set."""
    return F.when(F.grouping(CAPTURE_QUALITY.connection_id) == 0, F.max(column)).alias(column)


def with_notes(connections: DataFrame, names: ClusterNames) -> DataFrame:
    """Connections with the columns LISTS: a broker's server and why it has no node id; the broker and its vendor.

    Null if there is nothing to say about the broker.
    """
    c, t = CONNECTIONS, CAPTURE_QUALITY
    by_server = [
        (server, f"{server}: {why}" if (why := names.unnamed.get(server)) else None, names.vendor_of.get(server))
        for server in sorted({*names.unnamed, *names.vendor_of})
    ]
    schema = f"{c.server} string, {t.unnamed_brokers} string, {t.other_brokers} string"
    notes = connections.sparkSession.createDataFrame(by_server, schema)
    joined = connections.join(F.broadcast(notes), str(c.server), "left")
    is_kafka = F.col(c.protocol) == KAFKA_PROTOCOL
    whose = F.concat(c.broker, F.lit(": "), t.other_brokers)
    return joined.withColumns(
        {t.unnamed_brokers: F.when(is_kafka, F.col(t.unnamed_brokers)), t.other_brokers: F.when(is_kafka, whose)}
    )


def connection_counts(connections: DataFrame) -> DataFrame:
    """One row for each connection: between whom it is, and what became of its bytes. connections: as `with_notes`
    returns them.
    """
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
        (is_kafka & (F.col(c.continuation) == CONTINUED)).cast("int").alias(t.continued_connections),
        (is_kafka & F.col(c.continuation).isin(NOT_THERE, DOES_NOT_FIT)).cast("int").alias(t.uncontinued_connections),
        F.col(t.unnamed_brokers).isNotNull().cast("int").alias(t.unnamed_connections),
        *LISTS,
    )  # fmt: skip
