"""What KIP-227's replay reads, from the silver tables: every fetch, and behind it its partitions."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from jobs.replays.one_shuffle import shard
from schemas.tables.silver import CONNECTIONS, EXCHANGES, FETCH_PARTITIONS
from schemas.tables.steps import SESSION_EVENTS
from schemas.wire.fetch import FETCH_REQUEST
from udfs.replay.session_cache.events import OF_FETCH

WITH_SESSIONS = 7
"""The version of Fetch that KIP-227 brought."""
LAST = (1 << 31) - 1  # position of what the broker does not read


def session_events(exchanges: DataFrame, fetches: DataFrame, connections: DataFrame, shards: int) -> DataFrame:
    """Rows of SESSION_EVENTS."""
    t = SESSION_EVENTS
    events = fetch_events(exchanges).unionByName(partition_events(fetches), allowMissingColumns=True)
    events = events.join(F.broadcast(later_lives(connections)), [str(t.connection_id)], "left").fillna(0, [str(t.life)])
    return events.withColumn(t.shard, shard(shards, t.broker)).select(*(F.col(c).cast(c.type) for c in t.columns))


def later_lives(connections: DataFrame) -> DataFrame:
    """The connections that were opened when all others to their broker had ended, or later, each with how often that
    had been so. A broker that is restarted has none from before.
    """
    c, t = CONNECTIONS, SESSION_EVENTS
    in_turn = Window.partitionBy(c.broker).orderBy(c.first_time, c.connection_id)
    before = F.max(c.last_time).over(in_turn.rowsBetween(Window.unboundedPreceding, -1))
    opened = connections.where(F.col(c.broker).isNotNull()).withColumn("is_alone", F.col(c.first_time) > before)
    lives = opened.select(c.connection_id, F.count_if("is_alone").over(in_turn).alias(t.life))
    return lives.where(F.col(t.life) > 0)


def fetch_events(exchanges: DataFrame) -> DataFrame:
    """A row a Fetch request; one that is cut, or could not be decoded, is there if its version has sessions."""
    x, t = EXCHANGES, SESSION_EVENTS
    fetches = exchanges.where(
        (F.col(x.api_key) == FETCH_REQUEST.api_key)
        & F.col(x.request_time).isNotNull()
        & (F.col(x.fetch_session_epoch).isNotNull() | (F.col(x.api_version) >= WITH_SESSIONS))
    )

    # Of a response that is cut nothing is known, its session neither; of one to a request without epoch, when it came.
    is_decoded = F.col(x.error_code).isNotNull() | F.col(x.fetch_session_epoch).isNull()

    def if_whole(column: Column) -> Column:
        return F.when((F.col(x.missing_bytes) + F.col(x.unsent_bytes) == 0) & (column > 0), column)

    return fetches.select(
        t.broker, t.connection_id, t.exchange_no, t.client_address, t.api_version, t.throttle_time_ms,
        F.unix_micros(x.request_time).alias(t.request_time),
        F.lit(OF_FETCH).cast("bigint").alias(t.position),
        F.coalesce(F.col(x.client_id), F.lit("")).alias(t.client_id),
        F.when(is_decoded, F.unix_micros(F.coalesce(x.response_first_time, x.response_time))).alias(t.response_time),
        F.col(x.fetch_session_id).alias(t.session_id),
        F.col(x.fetch_session_epoch).alias(t.session_epoch),
        F.col(x.fetch_replica_id).isNull().alias(t.is_cut),
        F.col(x.error_code).alias(t.fetch_error),
        (F.col(x.fetch_replica_id) >= 0).alias(t.is_follower),
        if_whole(F.col(x.request_bytes)).alias(t.request_bytes),
        if_whole(F.col(x.response_bytes)).alias(t.response_bytes),
    )  # fmt: skip


def partition_events(fetches: DataFrame) -> DataFrame:
    """A row a partition of a fetch."""
    f, t = FETCH_PARTITIONS, SESSION_EVENTS
    return fetches.where(F.col(f.request_time).isNotNull()).select(
        t.broker, t.connection_id, t.exchange_no, t.max_wait_ms, t.session_known, t.response_session_id, t.partition,
        t.fetch_offset, t.partition_max_bytes, t.current_leader_epoch, t.returned_bytes, t.high_watermark,
        t.log_start_offset, t.error_code, t.preferred_read_replica,
        F.unix_micros(f.request_time).alias(t.request_time),
        F.coalesce(F.col(f.read_position), F.lit(LAST)).cast("bigint").alias(t.position),
        F.xxhash64(F.coalesce(f.topic_id, f.topic)).alias(t.topic_key),
        F.octet_length(f.topic).alias(t.name_length),
        F.col(f.read_position).isNotNull().alias(t.is_wanted),
        F.col(f.request_position).isNotNull().alias(t.is_listed),
        F.col(f.response_position).isNotNull().alias(t.is_returned),
    )  # fmt: skip
