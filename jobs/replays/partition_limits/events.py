"""What the replay of partition limits reads, from the silver tables: brokers, partitions, changes to topics."""

from __future__ import annotations

from functools import partial, reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from schemas.tables import values
from schemas.tables.event_kinds import TopicEvent
from schemas.tables.silver import EXCHANGES, FETCH_PARTITIONS, RECORD_BATCHES
from schemas.tables.silver_topics import CLUSTER_METADATA, TOPIC_CHANGES
from schemas.tables.steps import TOPIC_EVENTS
from schemas.wire.fetch import FETCH_REQUEST
from schemas.wire.metadata import METADATA_REQUEST
from schemas.wire.produce import PRODUCE_REQUEST

BEGINS, ENDS, AT, API, REQUEST = "begins", "ends", "at", "api", "request"
PRODUCE, FETCH, METADATA = PRODUCE_REQUEST.api_key, FETCH_REQUEST.api_key, METADATA_REQUEST.api_key


def topic_events(
    metadata: DataFrame, changes: DataFrame, exchanges: DataFrame, batches: DataFrame, fetches: DataFrame
) -> DataFrame:
    """Rows of TOPIC_EVENTS, in no order: one for each broker, each partition and each change that is requested."""
    t = TOPIC_EVENTS
    uses = uses_of_changed(changes, produced(batches).unionByName(fetched(fetches)).unionByName(named(metadata)))
    parts = (brokers(metadata), sightings(metadata), requested_changes(changes, exchanges, uses))
    rows = reduce(partial(DataFrame.unionByName, allowMissingColumns=True), parts)
    return rows.select(*(F.col(column).cast(column.type) for column in t.columns))


def response_order() -> Column:
    """The order of what Metadata responses list: by their times and, of those at one time, by their numbers."""
    m = CLUSTER_METADATA
    return F.struct(m.response_time, m.connection_id, m.exchange_no, m.position)


def brokers(metadata: DataFrame) -> DataFrame:
    """Each broker that Metadata lists, with its last rack."""
    m, t = CLUSTER_METADATA, TOPIC_EVENTS
    listed = metadata.where((F.col(m.entry) == values.BROKER) & F.col(m.node_id).isNotNull())
    last_rack = F.max_by(m.rack, response_order()).alias(t.rack)
    return listed.groupBy(m.node_id).agg(last_rack).withColumn(t.entry, F.lit(TopicEvent.BROKER))


def sightings(metadata: DataFrame) -> DataFrame:
    """Each partition of a topic id, as Metadata showed it first. Old versions have no ids, which are then null."""
    m, t = CLUSTER_METADATA, TOPIC_EVENTS
    shown = metadata.where((F.col(m.entry) == values.PARTITION) & F.col(m.partition).isNotNull())
    topic = F.coalesce(m.topic, m.topic_id).alias(t.topic)
    return (
        shown.groupBy(topic, m.topic_id, m.partition)
        .agg(
            F.unix_micros(F.min(m.response_time)).alias(t.time),
            F.bool_or(F.coalesce(m.is_internal, F.lit(False))).alias(t.is_internal),
            F.min_by(m.replica_nodes, response_order()).alias(t.replica_nodes),
        )
        .withColumn(t.entry, F.lit(TopicEvent.SIGHTING))
    )


def produced(batches: DataFrame) -> DataFrame:
    """The topics of each Produce request."""
    b, t = RECORD_BATCHES, TOPIC_EVENTS
    request = F.struct(b.connection_id, b.exchange_no).alias(REQUEST)
    topic = F.coalesce(b.topic, b.topic_id).alias(t.topic)
    in_requests = batches.where(F.col(b.source) == values.FROM_PRODUCE)
    return in_requests.select(topic, request, F.col(b.request_time).alias(AT), F.lit(PRODUCE).alias(API))


def fetched(fetches: DataFrame) -> DataFrame:
    """The topics that each Fetch request of a consumer wants."""
    f, t = FETCH_PARTITIONS, TOPIC_EVENTS
    request = F.struct(f.connection_id, f.exchange_no).alias(REQUEST)
    topic = F.coalesce(f.topic, f.topic_id).alias(t.topic)
    wanted = fetches.where((F.col(f.reader) == values.CONSUMER) & F.col(f.read_position).isNotNull())
    return wanted.select(topic, request, F.col(f.request_time).alias(AT), F.lit(FETCH).alias(API))


def named(metadata: DataFrame) -> DataFrame:
    """The topics that each Metadata request names, if the response tells of them."""
    m, t = CLUSTER_METADATA, TOPIC_EVENTS
    request = F.struct(m.connection_id, m.exchange_no).alias(REQUEST)
    topic = F.coalesce(m.topic, m.topic_id).alias(t.topic)
    return metadata.where(m.is_named).select(
        topic, request, F.col(m.request_time).alias(AT), F.lit(METADATA).alias(API)
    )


def uses_of_changed(changes: DataFrame, uses: DataFrame) -> DataFrame:
    """For each change, how many requests use its topic until the next change of the topic."""
    c, t = TOPIC_CHANGES, TOPIC_EVENTS
    topic = F.coalesce(c.topic, c.topic_id).alias(t.topic)
    key = (c.connection_id, c.exchange_no, c.position)
    in_order = Window.partitionBy(F.coalesce(c.topic, c.topic_id)).orderBy(c.request_time, *key)
    ends = F.lead(c.request_time).over(in_order).alias(ENDS)
    spans = changes.select(topic, *key, F.col(c.request_time).alias(BEGINS), ends)
    is_within = (F.col(AT) > F.col(BEGINS)) & (F.col(ENDS).isNull() | (F.col(AT) < F.col(ENDS)))
    counts = {PRODUCE: t.produce_requests, FETCH: t.fetch_requests, METADATA: t.metadata_requests}
    return (
        uses.join(F.broadcast(spans), str(t.topic))
        .where(is_within)
        .groupBy(*key)
        .agg(*(F.count_distinct(F.when(F.col(API) == api, F.col(REQUEST))).alias(c) for api, c in counts.items()))
    )


def requested_changes(changes: DataFrame, exchanges: DataFrame, uses: DataFrame) -> DataFrame:
    """Each change that is requested, with the version of its request, who sent it, and how its topic is used then."""
    c, x, t = TOPIC_CHANGES, EXCHANGES, TOPIC_EVENTS
    principal = F.coalesce(x.principal, F.lit("")).alias(t.principal)
    versions = exchanges.select(x.connection_id, x.exchange_no, x.api_version, principal)
    same = (
        c.partition, c.kind, c.connection_id, c.exchange_no, c.position, c.num_partitions, c.replication_factor,
        c.assignments, c.configs, c.validate_only, c.error_code, c.answered_num_partitions,
        c.answered_replication_factor,
    )  # fmt: skip
    requested = changes.select(
        F.lit(TopicEvent.CHANGE).alias(t.entry),
        F.unix_micros(c.request_time).alias(t.time),
        F.coalesce(c.topic, c.topic_id).alias(t.topic),
        F.coalesce(c.client_id, F.lit("")).alias(t.client_id),
        *same,
    )
    request = [str(c.connection_id), str(c.exchange_no)]
    return versions.join(F.broadcast(requested), request).join(uses, [*request, str(c.position)], "left")
