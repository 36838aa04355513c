"""What the replay of partition limits reads, from the silver tables: brokers, partitions seen, changes asked for."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from schemas.tables.silver import CLUSTER_METADATA, EXCHANGES, TOPIC_CHANGES
from schemas.tables.steps import TOPIC_EVENTS
from udfs.replay.limits.topic_history import BROKER, CHANGE, SIGHTING


def topic_events(metadata: DataFrame, changes: DataFrame, exchanges: DataFrame) -> DataFrame:
    """Rows of TOPIC_EVENTS, in no order; no more than the cluster has partitions and was asked for changes."""
    t = TOPIC_EVENTS
    parts = (brokers(metadata), sightings(metadata), asked_changes(changes, exchanges))
    known = parts[0].unionByName(parts[1], allowMissingColumns=True).unionByName(parts[2], allowMissingColumns=True)
    return known.select(*(F.col(column).cast(column.type) for column in t.columns))


def brokers(metadata: DataFrame) -> DataFrame:
    """Each broker that Metadata listed, with the rack it had last."""
    m, t = CLUSTER_METADATA, TOPIC_EVENTS
    listed = metadata.where((F.col(m.entry) == "broker") & F.col(m.node_id).isNotNull())
    last_rack = F.max_by(m.rack, m.response_time).alias(t.rack)
    return listed.groupBy(m.node_id).agg(last_rack).withColumn(t.entry, F.lit(BROKER))


def sightings(metadata: DataFrame) -> DataFrame:
    """Each partition that Metadata showed, as it was first."""
    m, t = CLUSTER_METADATA, TOPIC_EVENTS
    shown = metadata.where((F.col(m.entry) == "partition") & F.col(m.partition).isNotNull())
    topic = F.coalesce(m.topic, m.topic_id).alias(t.topic)
    return (
        shown.groupBy(topic, m.partition)
        .agg(
            F.unix_micros(F.min(m.response_time)).alias(t.time),
            F.bool_or(F.coalesce(m.is_internal, F.lit(False))).alias(t.is_internal),
            F.min_by(m.replica_nodes, m.response_time).alias(t.replica_nodes),
        )
        .withColumn(t.entry, F.lit(SIGHTING))
    )


def asked_changes(changes: DataFrame, exchanges: DataFrame) -> DataFrame:
    """Each change asked for, with the version of its request."""
    c, x, t = TOPIC_CHANGES, EXCHANGES, TOPIC_EVENTS
    versions = exchanges.select(x.connection_id, x.exchange_no, x.api_version)
    same = (
        c.partition, c.kind, c.connection_id, c.exchange_no, c.position, c.num_partitions, c.replication_factor,
        c.assignments, c.validate_only, c.error_code, c.answered_num_partitions, c.answered_replication_factor,
    )  # fmt: skip
    asked = changes.select(
        F.lit(CHANGE).alias(t.entry),
        F.unix_micros(c.request_time).alias(t.time),
        F.coalesce(c.topic, c.topic_id).alias(t.topic),
        F.coalesce(c.client_id, F.lit("")).alias(t.client_id),
        *same,
    )
    key = [str(c.connection_id), str(c.exchange_no)]
    return versions.join(F.broadcast(asked), key)
