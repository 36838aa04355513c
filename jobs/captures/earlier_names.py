"""Names that an earlier capture set shows, as evidence for the set that continues it."""

from __future__ import annotations

from functools import partial

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.captures.capture_quality import KAFKA_PROTOCOL
from jobs.lake.delta_tables import run_side_by_side, stored_rows
from schemas.tables.silver import CONNECTIONS, FETCH_PARTITIONS, RECORD_BATCHES
from schemas.tables.silver_topics import CLUSTER_METADATA
from udfs.facts.captured_names import BROKER, CAPTURED_NAMES, CLUSTER, SHOWN_ID, VENDOR

_C, _M = CONNECTIONS, CLUSTER_METADATA
NAMED = (FETCH_PARTITIONS.topic, FETCH_PARTITIONS.topic_id, FETCH_PARTITIONS.request_time)
NAMES_TOPICS = (FETCH_PARTITIONS, RECORD_BATCHES, CLUSTER_METADATA)
"""Tables that have columns for both names and ids of topics."""


def earlier_names(spark: SparkSession, lake: str, capture_id: str) -> pa.Table:
    """What a set's tables say about the nodes and clusters of its servers, and about the ids of topics: rows of
    CAPTURED_NAMES.

    A server that the set gives a node id counts as one that advertises its own endpoint.
    """
    connections = stored_rows(spark, lake, _C, capture_id).where(F.col(_C.protocol) == KAFKA_PROTOCOL)
    parts = [names_of_servers(connections), names_of_vendors(stored_rows(spark, lake, _M, capture_id), connections)]
    parts += [names_of_topics(stored_rows(spark, lake, table, capture_id), connections) for table in NAMES_TOPICS]
    tables = run_side_by_side(spark, [partial(_names_here, part) for part in parts])
    return pa.concat_tables(tables)


def _names_here(rows: DataFrame) -> pa.Table:
    return rows.toArrow().cast(CAPTURED_NAMES)


def _named_rows(rows: DataFrame, what: str, **columns: Column) -> DataFrame:
    """Rows of CAPTURED_NAMES. columns: its columns by name; those that are left out are null."""
    kinds = {pa.string(): "string", pa.int64(): "bigint"}
    columns["what"] = F.lit(what)
    return rows.select(*(columns.get(f.name, F.lit(None)).cast(kinds[f.type]).alias(f.name) for f in CAPTURED_NAMES))


def names_of_servers(connections: DataFrame) -> DataFrame:
    """The node ids and the clusters of servers."""
    of_servers = connections.select(_C.server, _C.broker, _C.cluster_id).distinct()
    server = F.col(_C.server)
    nodes = of_servers.where(F.col(_C.broker).rlike(r"^\d{1,9}$"))
    host = F.regexp_replace(F.regexp_replace(server, r":\d+$", ""), r"^\[|\]$", "")
    port = F.regexp_extract(server, r":(\d+)$", 1)
    clusters = of_servers.where(F.col(_C.cluster_id).isNotNull())
    brokers = _named_rows(nodes, BROKER, server=server, name=host, value=port, first=F.col(_C.broker))
    return brokers.union(_named_rows(clusters, CLUSTER, server=server, name=F.col(_C.cluster_id), value=F.lit("")))


def names_of_vendors(metadata: DataFrame, connections: DataFrame) -> DataFrame:
    """The servers whose brokers are not Apache Kafka's."""
    of_vendors = metadata.where(F.col(_M.vendor).isNotNull()).select(_M.connection_id, _M.vendor).distinct()
    rows = of_vendors.join(connections.select(_C.connection_id, _C.server), str(_C.connection_id)).distinct()
    server = F.col(_C.server)
    return _named_rows(rows, VENDOR, server=server, name=server, value=F.col(_M.vendor))


def names_of_topics(rows: DataFrame, connections: DataFrame) -> DataFrame:
    """The ids of topics in the rows of one of NAMES_TOPICS, and when each was first and last used.

    A row whose topic has no name has the id in both columns.
    """
    topic, topic_id, request = NAMED  # the columns have these names in all of NAMES_TOPICS
    named = rows.where(F.col(topic_id).isNotNull() & F.col(topic).isNotNull() & (F.col(topic) != F.col(topic_id)))
    time = F.unix_micros(F.col(request))
    of_connections = named.groupBy(_C.connection_id, topic, topic_id).agg(
        F.min(time).alias("first"), F.max(time).alias("last")
    )
    served = of_connections.join(connections.select(_C.connection_id, _C.server), str(_C.connection_id))
    spans = served.groupBy(_C.server, topic, topic_id).agg(F.min("first").alias("first"), F.max("last").alias("last"))
    return _named_rows(
        spans,
        SHOWN_ID,
        server=F.col(_C.server),
        name=F.col(topic),
        value=F.col(topic_id),
        first=F.col("first"),
        last=F.col("last"),
    )
