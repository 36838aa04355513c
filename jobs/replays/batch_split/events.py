"""What the replay of KIP-126 reads of the silver tables: the batches that each client sent, and what its software
is."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.replays.client_software import IS_NAMELESS, is_java, nameless_clients
from jobs.replays.one_shuffle import shard
from jobs.replays.sequence_numbers import sequence
from schemas.tables.silver import CONNECTIONS, RECORD_BATCHES
from schemas.tables.silver_topics import TOPIC_CHANGES
from schemas.tables.steps import SENT
from schemas.tables.values import CREATE_TOPIC, FROM_PRODUCE
from udfs.errors import CaptureError
from udfs.replay.batch_split.settings import TopicLimits
from udfs.wire.record_batches import MAGIC_VALUE_V2

LISTS = tuple(column for column in SENT.columns if column.type.startswith("array"))
OLDEST_APPEND_MS = 120_000
"""delivery.timeout.ms by default: an older timestamp is not that of the append, but brought along."""


def created_topics(changes: DataFrame) -> DataFrame:
    """A row for each topic that a request creates with a max.message.bytes, of the last such request that was not
    refused.
    """
    c = TOPIC_CHANGES
    made = changes.where((F.col(c.kind) == CREATE_TOPIC) & (F.col(c.error_code) == 0) & ~F.col(c.validate_only))
    last = F.max_by(F.col(c.max_message_bytes), F.struct(c.request_time, c.connection_id, c.exchange_no, c.position))
    return made.groupBy(c.topic).agg(last.alias(SENT.max_message_bytes))


def check_topics(batches: DataFrame, limits: TopicLimits) -> None:
    """Raises CaptureError if max.message.bytes is stated of a topic that nobody produces to."""
    b, stated = RECORD_BATCHES, sorted({topic for by_name in limits.by_name for topic in by_name})
    if not stated:
        return
    produced = batches.where((F.col(b.source) == FROM_PRODUCE) & F.col(b.topic).isin(stated))
    missing = sorted(set(stated) - {row[0] for row in produced.select(b.topic).distinct().collect()})
    if missing:
        raise CaptureError(
            f"topic.NAME.max.message.bytes is given of {', '.join(missing)}, to which the capture shows no batch being "
            "produced: name topics as the column `topic` of silver/record_batches does"
        )


def sent_batches(
    batches: DataFrame, connections: DataFrame, exchanges: DataFrame, created: DataFrame, by_host: bool, shards: int
) -> DataFrame:
    """Rows of SENT. created: as `created_topics` has it. by_host: all clients of an address are one process."""
    b, c, t = RECORD_BATCHES, CONNECTIONS, SENT
    name, version = F.col(c.client_software_name), F.split(c.client_software_version, r"\.")
    may_be_java = is_java(name, F.col(IS_NAMELESS))
    minor = F.try_element_at(version, F.lit(2)).try_cast("int")
    major = F.try_element_at(version, F.lit(1)).try_cast("int")
    release = F.try_add(F.try_multiply(major, F.lit(1000)), minor)  # a client says what it likes there
    software = connections.join(nameless_clients(exchanges), str(c.connection_id), "left").select(
        c.connection_id,
        may_be_java.alias(t.is_java),
        (may_be_java & F.coalesce(release >= 4002, F.lit(True))).alias(t.halves),
        F.col(c.began_before_capture).alias(t.began_before),
    )
    produced = batches.where(
        (F.col(b.source) == FROM_PRODUCE) & F.col(b.size_bytes).isNotNull() & (F.col(b.magic) == MAGIC_VALUE_V2)
    )
    requested = F.unix_micros(b.request_time)
    # A client writes what it likes there: what overflows is no time.
    made = F.try_multiply(F.col(b.base_timestamp), F.lit(1000))
    age = F.try_subtract(requested, made)
    named = {
        t.client_id: F.lit("") if by_host else F.coalesce(b.client_id, F.lit("")),
        t.append_from: F.when(age.between(0, OLDEST_APPEND_MS * 1000), made).otherwise(requested),
        t.base_sequence: sequence(),
        t.request_time: requested,
        t.response_time: F.unix_micros(b.response_time),
        **{column: F.coalesce(column, F.array()) for column in LISTS},
    }
    joined = produced.join(software, str(c.connection_id)).join(F.broadcast(created), str(b.topic), "left")
    rows = joined.withColumns({str(column): values for column, values in named.items()})
    return rows.withColumn(t.shard, shard(shards, t.client_id, t.client_address)).select(*t.columns)
