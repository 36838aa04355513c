"""What KIP-74's replay reads, from the silver tables: each partition's batches, and the reads of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jobs.lake.delta_tables import spark_schema
from jobs.replays.client_software import JAVA
from jobs.replays.one_shuffle import SHARD, shard
from schemas.tables.event_kinds import LogEvent
from schemas.tables.silver import EXCHANGES, FETCH_PARTITIONS, RECORD_BATCHES
from schemas.tables.steps import LOG_EVENTS, READS
from schemas.tables.values import FOLLOWER, FROM_PRODUCE, FULL
from udfs.replay.fetch_max_bytes.events import READER
from udfs.replay.fetch_max_bytes.partition_log.replay import read_rows
from udfs.replay.fetch_max_bytes.settings import JAVA_3, JAVA_4, LIBRDKAFKA
from udfs.wire.record_batches import MAGIC_VALUE_V2

# A partition with lanes that ask for more gets no more batch sizes than these bytes: the replay counts it as unknown.
KNOWN_BYTES_CAP = 64 << 20
READER_ORDER = (*READER, READS.request_time, READS.connection_id, READS.exchange_no, READS.read_position)
"""In which order reads come to what replays a reader."""
BATCH_BYTES_CAP = (1 << 31) - 1
"""Kafka's sizes are an INT; bytes that say more are no batch of a log."""


def with_profiles(fetches: DataFrame, exchanges: DataFrame) -> DataFrame:
    """The fetches with the profile of the client's software (LOG_EVENTS.profile), null where none is known for it."""
    x = EXCHANGES
    major = F.regexp_extract(F.max(x.client_software_version), r"^(\d+)", 1)
    name, version = F.max(x.client_software_name), F.max(x.client_software_version)
    profile = F.when(name == JAVA, F.when(major.try_cast("int") < 4, JAVA_3).otherwise(JAVA_4)).when(
        # Bindings say it in their version: `confluent-kafka-python`, `2.16.1-rdkafka-2.16.0`.
        name.contains("librdkafka") | version.contains("rdkafka"),
        LIBRDKAFKA,
    )
    named = exchanges.where(F.col(x.client_software_name).isNotNull())
    by_connection = named.groupBy(x.connection_id).agg(profile.cast("tinyint").alias(LOG_EVENTS.profile))
    return fetches.join(F.broadcast(by_connection), [str(x.connection_id)], "left")


def log_events(fetches: DataFrame, batches: DataFrame, shards: int) -> DataFrame:
    """Rows of LOG_EVENTS: every known batch and every read of every partition, reads that tell of ends twice."""
    t = LOG_EVENTS
    read = read_events(fetches)
    sound = ~F.col(t.refused) & ~F.col(t.throttled) & ~F.col(t.redirected) & F.col(t.returned_bytes).isNotNull()
    shows = (F.col(t.reader) == FOLLOWER) | (F.col(t.bound_known) & (F.col(t.returned_bytes) > 0))
    witnesses = read.where(shows & sound).withColumn(t.kind, F.lit(LogEvent.WITNESS.value).cast("tinyint"))
    events = batch_events(batches).unionByName(read.unionByName(witnesses), allowMissingColumns=True)
    absent = [c for c in t.columns if c not in events.columns and c != t.shard]
    filled = events.withColumns({c: F.lit(None).cast(c.type) for c in absent})
    return filled.withColumn(t.shard, shard(shards, t.topic_key, t.partition)).select(*t.columns)


def batch_events(batches: DataFrame) -> DataFrame:
    """Batches that are in the log: produced without error, or fetched, with their offsets known."""
    b, t = RECORD_BATCHES, LOG_EVENTS
    is_produced = F.col(b.source) == FROM_PRODUCE
    last = F.try_add(F.col(b.base_offset), F.col(b.last_offset_delta))  # null of a header that is cut or cannot be
    in_log = (F.col(b.size_bytes) <= BATCH_BYTES_CAP) & last.isNotNull()
    appended = ~is_produced | (F.coalesce(b.error_code, F.lit(0)) == 0)
    # A producer leaves out no offset of a batch; the log cleaner keeps a batch's offsets and not all of its records.
    is_sparse = (F.col(b.magic) >= MAGIC_VALUE_V2) & (F.col(b.record_count) <= F.col(b.last_offset_delta))
    return batches.where(in_log & appended).select(
        F.col(b.topic).alias(t.topic),
        F.coalesce(b.topic_id, b.topic).alias(t.topic_key),
        F.col(b.partition).alias(t.partition),
        F.col(b.connection_id).alias(t.connection_id),
        F.col(b.exchange_no).alias(t.exchange_no),
        F.col(b.api_version).alias(t.api_version),
        F.lit(LogEvent.BATCH.value).cast("tinyint").alias(t.kind),
        F.col(b.base_offset).alias(t.position),
        last.alias(t.last_offset),
        F.col(b.size_bytes).alias(t.size_bytes),
        (F.col(b.magic) < MAGIC_VALUE_V2).alias(t.is_old_format),
        is_sparse.alias(t.is_sparse),
        F.when(~is_produced, F.col(b.partition_leader_epoch)).alias(t.leader_epoch),
        F.when(is_produced, F.unix_micros(b.request_time)).alias(t.append_after),
        F.unix_micros(b.response_time).alias(t.append_before),
    )


def read_events(fetches: DataFrame) -> DataFrame:
    """Partitions that brokers read for a fetch, with the bound of the reader (FetchIsolation.of, Kafka 4.3)."""
    f, t = FETCH_PARTITIONS, LOG_EVENTS
    is_follower = F.col(f.reader) == FOLLOWER
    stopped = (F.coalesce(f.error_code, F.lit(0)) != 0) | (F.coalesce(f.preferred_read_replica, F.lit(-1)) >= 0)
    # An incremental response leaves a partition out while its high watermark stands still and it has no records
    # (FetchSession.CachedPartition.maybeUpdateResponseData). Then the last stable offset stands still, too: it moves
    # when the high watermark or the log start does (UnifiedLog.maybeIncrementFirstUnstableOffset).
    committed = F.col(f.isolation_level) == 1
    bound = F.coalesce(F.when(committed, F.col(f.last_stable_offset)), F.col(f.high_watermark))

    def unless_stopped(value: Column) -> Column:
        return F.when(stopped, F.col(f.fetch_offset)).when(~is_follower, F.coalesce(value, f.fetch_offset))

    wanted = fetches.where(F.col(f.read_position).isNotNull() & F.col(f.fetch_offset).isNotNull())
    return wanted.select(
        F.col(f.topic).alias(t.topic),
        F.coalesce(f.topic_id, f.topic).alias(t.topic_key),
        F.lit(LogEvent.READ.value).cast("tinyint").alias(t.kind),
        F.unix_micros(f.request_time).alias(t.position),
        unless_stopped(bound).alias(t.bound_low),
        unless_stopped(bound).alias(t.bound_high),
        (stopped | is_follower | bound.isNotNull()).alias(t.bound_known),
        stopped.alias(t.redirected),
        F.coalesce(F.col(f.client_id), F.lit("")).alias(t.client_id),
        F.unix_micros(f.request_time).alias(t.request_time),
        F.unix_micros(f.response_time).alias(t.response_time),
        (F.coalesce(f.response_error_code, F.lit(0)) != 0).alias(t.refused),
        (F.coalesce(f.throttle_time_ms, F.lit(0)) > 0).alias(t.throttled),
        F.when(~stopped, bound).alias(t.response_bound),
        (F.coalesce(f.response_session_id, f.session_id) > 0).alias(t.in_session),
        (F.col(f.kind) == FULL).alias(t.opens_session),
        *(
            F.col(name)
            for name in (
                t.partition, t.fetch_offset, t.broker, t.client_address, t.reader, t.connection_id, t.exchange_no,
                t.api_version, t.max_wait_ms, t.min_bytes, t.max_bytes, t.profile, t.session_known, t.read_position,
                t.partition_max_bytes, t.returned_bytes, t.response_record_bytes,
            )
        ),
    )  # fmt: skip


def known_reads(fetches: DataFrame, batches: DataFrame, shards: int) -> DataFrame:
    """Rows of READS with the shard of their reader: one shuffle by partition."""
    t = LOG_EVENTS

    def read_logs(rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from read_rows(rows, KNOWN_BYTES_CAP)

    found = (
        log_events(fetches, batches, shards)
        .repartitionById(shards, t.shard)
        .sortWithinPartitions(t.topic_key, t.partition, t.kind, t.position, t.connection_id, t.exchange_no)
        .mapInArrow(read_logs, spark_schema(READS))
    )
    return found.withColumn(SHARD, shard(shards, *READER))
