"""What KIP-126's replay reads, from the silver tables: the batches that each client sent, with what its software is."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.replays.one_shuffle import shard
from jobs.replays.sequence_numbers import sequence
from schemas.tables.silver import CONNECTIONS, RECORD_BATCHES
from schemas.tables.steps import SENT

JAVA = "apache-kafka-java"
"""client_software_name of Kafka's own client."""
OLDEST_APPEND_MS = 120_000
"""delivery.timeout.ms by default: an older timestamp is not that of the append, but brought along."""


def sent_batches(batches: DataFrame, connections: DataFrame, by_host: bool, shards: int) -> DataFrame:
    """Rows of SENT. by_host: all clients of an address are one process."""
    b, c, t = RECORD_BATCHES, CONNECTIONS, SENT
    name, version = F.col(c.client_software_name), F.split(c.client_software_version, r"\.")
    is_java = name.isNull() | (name == JAVA)
    minor = F.try_element_at(version, F.lit(2)).try_cast("int")
    release = F.try_element_at(version, F.lit(1)).try_cast("int") * 1000 + minor
    software = connections.select(
        c.connection_id,
        is_java.alias(t.is_java),
        (is_java & F.coalesce(release >= 4002, F.lit(True))).alias(t.halves),
        F.col(c.began_before_capture).alias(t.began_before),
    )
    produced = batches.where((F.col(b.source) == "produce") & F.col(b.size_bytes).isNotNull() & (F.col(b.magic) == 2))
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
    }
    rows = produced.join(software, str(c.connection_id)).withColumns({str(column): of for column, of in named.items()})
    return rows.withColumn(t.shard, shard(shards, t.client_id, t.client_address)).select(*t.columns)
