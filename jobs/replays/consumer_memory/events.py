"""What the replay of memory reads, from the silver tables: messages, their sizes and times, by whose memory it is."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jobs.replays.client_software import IS_JAVA, java_clients
from jobs.replays.consumer_memory.request_releases import with_releases
from jobs.replays.consumer_memory.takeovers import BY, takeovers
from jobs.replays.one_shuffle import shard
from jobs.replays.sequence_numbers import sequence
from schemas.tables.event_kinds import MemoryEvent
from schemas.tables.silver import EXCHANGES, FETCH_PARTITIONS, RECORD_BATCHES
from schemas.tables.steps import MEMORY_EVENTS
from schemas.tables.values import ANSWERED, BROKER, CONSUMER, FROM_FETCH, FROM_PRODUCE, PRODUCER
from udfs.capture.framing import SIZE_BYTES
from udfs.replay.consumer_memory.given_up import FINAL_EPOCH
from udfs.wire.record_batches import MAGIC_VALUE_V2, RECORD_BATCH_OVERHEAD

DELIVERY_TIMEOUT_MS = 120_000  # delivery.timeout.ms: no batch waits longer between its first record and its request


def memory_events(
    exchanges: DataFrame, fetches: DataFrame, batches: DataFrame, replayed: DataFrame | None, shards: int
) -> DataFrame:
    """Rows of MEMORY_EVENTS: clients' responses, brokers' requests, producers' batches.

    replayed: rows of clients' responses under other fetch limits.
    """
    t = MEMORY_EVENTS
    parts = [
        response_events(exchanges), partition_events(fetches), fetched_batches(batches),
        takeover_events(takeovers(exchanges, fetches)),
        request_events(with_releases(exchanges, batches)),
        produced_batches(batches, exchanges), *([] if replayed is None else [closed_loop_events(replayed)]),
    ]  # fmt: skip
    events = parts[0]
    for part in parts[1:]:
        events = events.unionByName(part, allowMissingColumns=True)
    absent = [c for c in t.columns if c not in events.columns and c != t.shard]
    filled = events.withColumns({c: F.lit(None).cast(c.type) for c in absent})
    return filled.withColumn(t.shard, shard(shards, t.side, t.unit, t.unit_address)).select(
        *(F.col(c).cast(c.type).alias(c) for c in t.columns)
    )


def closed_loop_events(replayed: DataFrame) -> DataFrame:
    """Rows of the closed loop, with the number of each partition that is given up."""
    t = MEMORY_EVENTS
    key = F.when(F.col(t.kind) == MemoryEvent.GIVEN_UP, partition_key(t.topic, t.partition))
    return replayed.drop(t.shard).withColumn(t.partition_key, key)


def of_client(side: str) -> list[Column]:
    """The key of a client's rows."""
    t, x = MEMORY_EVENTS, EXCHANGES
    return [
        F.lit(side).alias(t.side),
        F.coalesce(x.client_id, F.lit("")).alias(t.unit),
        F.col(x.client_address).alias(t.unit_address),
        F.col(x.connection_id).alias(t.connection_id),
        F.col(x.exchange_no).alias(t.exchange_no),
    ]


def kind(of: MemoryEvent) -> Column:
    """The kind of rows."""
    return F.lit(of.value).cast("tinyint").alias(MEMORY_EVENTS.kind)


def response_events(exchanges: DataFrame) -> DataFrame:
    """Every client's exchanges: what its responses took."""
    t, x = MEMORY_EVENTS, EXCHANGES
    return exchanges.where(F.col(x.request_time).isNotNull()).select(
        *of_client(CONSUMER),
        kind(MemoryEvent.EXCHANGE),
        F.unix_micros(x.request_time).alias(t.time),
        F.unix_micros(x.response_first_time).alias(t.started),
        F.when(F.col(x.status) == ANSWERED, F.unix_micros(x.response_time)).alias(t.came),
        (F.col(x.response_bytes) - SIZE_BYTES).alias(t.size),
        F.col(x.fetch_max_bytes).alias(t.max_bytes),
        F.col(x.api_key).alias(t.api_key),
        ((F.col(x.fetch_session_epoch) == FINAL_EPOCH) & (F.col(x.fetch_session_id) != 0)).alias(t.closes_session),
    )


def partition_key(topic: str, partition: str) -> Column:
    """A number for a partition of a topic."""
    return F.xxhash64(topic, partition).alias(MEMORY_EVENTS.partition_key)


def partition_events(fetches: DataFrame) -> DataFrame:
    """The partitions of consumers' fetches."""
    t, f = MEMORY_EVENTS, FETCH_PARTITIONS
    is_wanted = F.col(f.read_position).isNotNull()
    return fetches.where((F.col(f.reader) == CONSUMER) & F.col(f.request_time).isNotNull()).select(
        *of_client(CONSUMER),
        kind(MemoryEvent.PARTITION),
        F.unix_micros(f.request_time).alias(t.time),
        F.xxhash64(f.broker).alias(t.broker_key),
        partition_key(f.topic, f.partition),
        F.when(is_wanted, F.col(f.fetch_offset)).alias(t.fetch_offset),
        F.col(f.partition_max_bytes).alias(t.partition_max_bytes),
        F.col(f.returned_bytes).alias(t.returned_bytes),
    )


def takeover_events(found: DataFrame) -> DataFrame:
    """That partitions were taken over, for those from whom they were: rows in time with the fetches of the others."""
    t, f = MEMORY_EVENTS, FETCH_PARTITIONS
    return found.select(
        F.lit(CONSUMER).alias(t.side),
        F.coalesce(f.client_id, F.lit("")).alias(t.unit),
        F.col(f.client_address).alias(t.unit_address),
        F.col(BY.connection_id).alias(t.connection_id),
        F.col(BY.exchange_no).alias(t.exchange_no),
        kind(MemoryEvent.TAKEN_OVER),
        F.unix_micros(BY.time).alias(t.time),
        F.unix_micros(BY.joins).alias(t.started),
        F.unix_micros(BY.joined).alias(t.came),
        partition_key(f.topic, f.partition),
    )


def fetched_batches(batches: DataFrame) -> DataFrame:
    """The batches in fetch responses; of one that is cut only how much of it came counts."""
    t, b = MEMORY_EVENTS, RECORD_BATCHES
    is_whole = ~F.col(b.is_cut)
    is_compressed = is_whole & (F.col(b.codec) != "none")
    # In wrappers of the formats before, every message has a header of its own.
    header = F.when(F.col(b.magic) == MAGIC_VALUE_V2, RECORD_BATCH_OVERHEAD).otherwise(0)
    behind = F.try_add(F.col(b.base_offset), F.col(b.last_offset_delta).cast("bigint") + 1)
    fetched = batches.where((F.col(b.source) == FROM_FETCH) & F.col(b.request_time).isNotNull())
    return fetched.select(
        *of_client(CONSUMER),
        kind(MemoryEvent.BATCH),
        F.unix_micros(b.request_time).alias(t.time),
        F.col(b.available_bytes).alias(t.size),
        partition_key(b.topic, b.partition),
        F.when(is_whole, behind).alias(t.end_offset),
        F.when(~is_whole, behind).alias(t.cut_end_offset),
        F.when(is_whole, F.col(b.record_count)).alias(t.records),
        F.when(is_compressed, F.col(b.uncompressed_bytes) + header).alias(t.uncompressed),
        is_compressed.alias(t.compressed),
    )


def request_events(exchanges: DataFrame) -> DataFrame:
    """Every broker's requests with their releases; which of them count is for the replay to say."""
    t, x = MEMORY_EVENTS, EXCHANGES
    asked, answered = F.unix_micros(x.request_time), F.unix_micros(x.response_time)
    return exchanges.select(
        F.lit(BROKER).alias(t.side),
        F.col(x.broker).alias(t.unit),
        F.lit("").alias(t.unit_address),
        F.col(x.connection_id).alias(t.connection_id),
        F.col(x.exchange_no).alias(t.exchange_no),
        kind(MemoryEvent.EXCHANGE),
        asked.alias(t.time),
        F.unix_micros(x.request_first_time).alias(t.started),
        asked.alias(t.came),
        (F.col(x.request_bytes) - SIZE_BYTES).alias(t.size),
        F.when(F.col(x.status) == ANSWERED, answered - asked).otherwise(F.lit(0)).alias(t.held),
        t.released,
        t.released_by,
        F.col(x.api_key).alias(t.api_key),
    )


def produced_batches(batches: DataFrame, exchanges: DataFrame) -> DataFrame:
    """The batches of produce requests, from their first record on where its time can be that of the append, and whether
    a Java client sent them.
    """
    t, b = MEMORY_EVENTS, RECORD_BATCHES
    asked = F.unix_micros(b.request_time)
    waited_ms = asked / 1000 - F.col(b.base_timestamp)
    is_append = (F.col(b.timestamp_type) == "CreateTime") & waited_ms.between(0, DELIVERY_TIMEOUT_MS)
    appended = F.when(is_append, F.try_multiply(F.col(b.base_timestamp), F.lit(1000))).otherwise(asked)
    produced = batches.where((F.col(b.source) == FROM_PRODUCE) & F.col(b.request_time).isNotNull())
    told = produced.join(F.broadcast(java_clients(exchanges)), [str(b.connection_id)], "left")
    return told.select(
        *of_client(PRODUCER),
        kind(MemoryEvent.BATCH),
        appended.alias(t.time),
        asked.alias(t.started),
        F.unix_micros(b.response_time).alias(t.came),
        F.coalesce(b.size_bytes, b.available_bytes).alias(t.size),
        F.xxhash64(b.topic, b.partition, b.producer_id, b.producer_epoch).alias(t.partition_key),
        sequence().alias(t.sequence),
        F.col(b.record_count).alias(t.records),
        (F.col(b.codec) != "none").alias(t.compressed),
        F.col(b.error_code).alias(t.error_code),
        F.col(b.base_timestamp).alias(t.first_timestamp),
        F.col(b.max_timestamp).alias(t.last_timestamp),
        F.coalesce(IS_JAVA, F.lit(True)).alias(t.is_java),
    )
