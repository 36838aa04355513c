"""The table rack_reads: the broker that consumers read from, and the one they would with fetch-from-follower (KIP-392).

It depends only on the capture and on racks, so it is the same in every lane: a consumer reads the same records from any
broker. The time when a replica would have answered is not replayed.
"""

from __future__ import annotations

from functools import partial

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from jobs.lake.delta_tables import rows_of_driver
from jobs.replays.algorithm import Source
from jobs.replays.capture_window import rows_in_window
from jobs.replays.fetch_max_bytes.racks import BROKER_RACK, broker_racks, consumer_racks
from jobs.replays.silver import may_have_rows
from schemas.tables.gold_racks import RACK_READS
from schemas.tables.silver import FETCH_PARTITIONS
from schemas.tables.silver_topics import CLUSTER_METADATA
from schemas.tables.values import CONSUMER, PARTITION
from udfs.facts.arrow_tables import PACKED
from udfs.replay.fetch_max_bytes.rack_reads import API_VERSION, ISR, LOCATED, READS, located_reads, packed_rack_reads

T = RACK_READS
WHOSE = [str(column) for column in (T.client_id, T.client_address, T.topic, T.partition)]
"""A consumer's partition."""
NOT_EMPTY = "\0"
"""Only the empty text sorts before it."""
REPLICA, SENDER, EPOCH, TIME = "replica", "sender", "epoch", "time"
SINCE, UNTIL, LEADER_NODE, LEADER_EPOCH = "since", "until", "leader_node", "leader_epoch"


def packed_rack_rows(source: Source) -> DataFrame | None:
    """The packed rows of RACK_READS of a run. None if no broker's rack is known and no consumer is sent to another
    replica: then there would be no rows, and making none takes seconds.
    """
    if not (names_racks(source) or may_have_rows(source, FETCH_PARTITIONS, FETCH_PARTITIONS.preferred_read_replica, 0)):
        return None
    reads = consumer_reads(source)
    located = [str(name) for name in READS.names]
    served = reads_served(reads, replicas_shown(source)).join(
        F.broadcast(rows_of_driver(source.spark, consumer_racks(source))),
        str(FETCH_PARTITIONS.connection_id), "left",
    ).select(*located)  # fmt: skip
    locate = partial(located_reads, racks=broker_racks(source))
    with_replicas = served.mapInArrow(locate, from_arrow_schema(LOCATED))
    keys = [name for name in LOCATED.names if name != T.bytes]
    by_key = with_replicas.groupBy(*keys).agg(F.sum(T.bytes).alias(str(T.bytes))).select(*LOCATED.names)
    rows = by_key.unionByName(reads_not_captured(reads))
    return rows.mapInArrow(partial(packed_rack_reads, run_id=source.run_id), from_arrow_schema(PACKED))


def names_racks(source: Source) -> bool:
    """Whether the capture may show a broker's rack, or somebody states one."""
    stated = any(key.endswith(BROKER_RACK) for key in source.run.scenario.captured)
    return stated or may_have_rows(source, CLUSTER_METADATA, CLUSTER_METADATA.rack, NOT_EMPTY)


def consumer_reads(source: Source) -> DataFrame:
    """The consumers' answered reads of partitions in the run's window: connection_id, WHOSE, broker, api_version,
    epoch, time, replica (the one that the consumer is sent to, null for none) and bytes.
    """
    f = FETCH_PARTITIONS
    scenario = source.run.scenario
    rows = rows_in_window(source.rows(f), f.request_time, scenario.begin, scenario.end)
    return rows.where((F.col(f.reader) == CONSUMER) & F.col(f.returned_bytes).isNotNull()).select(
        f.connection_id,
        F.coalesce(f.client_id, F.lit("")).alias(str(T.client_id)),
        F.col(f.client_address).alias(str(T.client_address)),
        F.coalesce(f.topic, f.topic_id).alias(str(T.topic)),
        F.col(f.partition).alias(str(T.partition)),
        F.col(f.broker).alias(str(T.broker)),
        F.col(f.api_version).alias(API_VERSION),
        F.col(f.current_leader_epoch).alias(EPOCH),
        F.col(f.request_time).alias(TIME),
        F.when(F.col(f.preferred_read_replica) >= 0, F.col(f.preferred_read_replica).cast("string")).alias(REPLICA),
        F.col(f.returned_bytes).alias(str(T.bytes)),
    )


def senders(reads: DataFrame) -> DataFrame:
    """(WHOSE, replica, sender): the broker that last sent a consumer to a replica."""
    sent = reads.where(F.col(REPLICA).isNotNull())
    return sent.groupBy(*WHOSE, REPLICA).agg(F.max_by(T.broker, TIME).alias(SENDER))


def reads_served(reads: DataFrame, shown: DataFrame) -> DataFrame:
    """Rows of READS with their connection_id, without racks: a connection's reads with records, added up for the same
    leader and replicas in sync.

    shown: from `replicas_shown`.
    """
    served = reads.where(F.col(T.bytes) > 0).drop(REPLICA)
    of_partition = [served[name] == shown[name] for name in (T.topic, T.partition)]
    at_the_time = (served[TIME] >= shown[SINCE]) & (served[TIME] < shown[UNTIL])
    with_replicas = served.join(shown, [*of_partition, at_the_time], "left").drop(shown[T.topic], shown[T.partition])
    sent = senders(reads).withColumnRenamed(REPLICA, str(T.broker))
    with_sender = with_replicas.join(sent, [*WHOSE, str(T.broker)], "left")
    keys = [str(FETCH_PARTITIONS.connection_id), *WHOSE, str(T.broker), API_VERSION, ISR]
    return with_sender.groupBy(*keys, leader_then().alias(str(T.leader))).agg(F.sum(T.bytes).alias(str(T.bytes)))


def leader_then() -> Column:
    """The leader of a read: that of the epoch that the consumer names, if a Metadata response shows it; otherwise the
    broker that sent the consumer to the one that served it; otherwise the broker that served it.

    A broker whose node id is not known has another name than the one in Metadata responses.
    """
    is_named = F.col(T.broker).rlike("^[0-9]+$")
    is_shown = is_named & (F.col(EPOCH) >= 0) & (F.col(EPOCH) == F.col(LEADER_EPOCH)) & (F.col(LEADER_NODE) >= 0)
    return F.coalesce(F.when(is_shown, F.col(LEADER_NODE).cast("string")), SENDER, T.broker)


def replicas_shown(source: Source) -> DataFrame:
    """What Metadata responses show of each partition, and from when until when: (topic, partition, isr, leader_node,
    leader_epoch, since, until). What is shown first also holds for the time before.
    """
    m = CLUSTER_METADATA
    told = [F.col(m.leader_id).alias(LEADER_NODE), F.col(m.leader_epoch).alias(LEADER_EPOCH),
            F.array_sort(m.isr_nodes).alias(ISR)]  # fmt: skip
    rows = source.rows(m).where((F.col(m.entry) == PARTITION) & (F.size(m.isr_nodes) > 0))
    seen = rows.select(m.topic, m.partition, F.col(m.response_time).alias(SINCE), F.struct(*told).alias("told"))
    in_turn = Window.partitionBy(m.topic, m.partition).orderBy(SINCE, "told")
    before, after = F.lag("told").over(in_turn), F.lead(SINCE).over(in_turn)
    changes = seen.withColumn("before", before).where(~F.col("before").eqNullSafe(F.col("told")))
    first, last = (F.lit(f"{year:04}-01-01").cast("timestamp") for year in (1, 9999))
    return changes.select(
        m.topic, m.partition, "told.*",
        F.when(F.col("before").isNull(), first).otherwise(F.col(SINCE)).alias(SINCE),
        F.coalesce(after, last).alias(UNTIL),
    )  # fmt: skip


def reads_not_captured(reads: DataFrame) -> DataFrame:
    """Rows of LOCATED for consumers that were sent to a replica, but do not read from it in the capture."""
    there = reads.select(*WHOSE, F.col(T.broker).alias(REPLICA))
    lost = senders(reads).join(there, [*WHOSE, REPLICA], "left_anti")
    known = {name: F.col(name) for name in WHOSE}
    known |= {
        str(T.leader): F.col(SENDER), str(T.preferred): F.col(REPLICA), str(T.bytes): F.lit(0).cast("bigint")
    }  # fmt: skip
    return lost.select(*(known.get(name, F.lit(None).cast("string")).alias(name) for name in LOCATED.names))
