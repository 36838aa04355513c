"""The amounts in a capture set that settings limit: a handful of numbers, each an aggregate of a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from pyspark.sql import DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as F

from jobs.captures.broker_fetches import partitions_of_brokers
from jobs.captures.clusters import rows_of_cluster
from jobs.lake.delta_tables import run_side_by_side
from jobs.scenarios.chosen_grids import Amounts, FetchAmounts
from schemas.tables.silver import EXCHANGES, FETCH_PARTITIONS, RECORD_BATCHES
from schemas.tables.silver_topics import CLUSTER_METADATA
from schemas.tables.table import Table
from schemas.tables.values import CONSUMER, FOLLOWER, FROM_PRODUCE, PARTITION
from schemas.wire.fetch import FETCH_REQUEST
from schemas.wire.fetch_sessions import FINAL_EPOCH
from schemas.wire.produce import PRODUCE_REQUEST

OfTable = Callable[[Table], DataFrame]
"""From a silver table to those of its rows that count."""


def read_amounts(spark: SparkSession, lake: str, capture_id: str, cluster_id: str | None) -> Amounts:
    """The amounts of a capture set, or of one of its clusters if that is named."""

    def rows(table: Table) -> DataFrame:
        return rows_of_cluster(spark, lake, table, capture_id, cluster_id)

    queries = (fetch_amounts, batch_amounts, most_readers, largest_request, most_replicas)
    by_reader, (of_batches,), (of_readers,), (of_sent,), (of_replicas,) = run_side_by_side(
        spark, [partial(_collect_query, query, rows) for query in queries]
    )
    of = {row[0]: FetchAmounts(*(int(value or 0) for value in row[1:])) for row in by_reader}
    return Amounts(
        consumers=of.get(CONSUMER),
        followers=of.get(FOLLOWER),
        batch=of_batches[0] or 0,
        readers=of_readers[0],
        produced=of_batches[1],
        sent=of_sent[0],
        replicas=of_replicas[0],
    )


def _collect_query(query: Callable[[OfTable], DataFrame], rows: OfTable) -> Sequence[Row]:
    return query(rows).collect()


def fetch_amounts(rows: OfTable) -> DataFrame:
    """A row for consumers and one for followers: the kind of reader, then the fields of FetchAmounts in their order."""
    f = FETCH_PARTITIONS
    limits = (F.max(f.max_bytes).alias("max_bytes"), F.max(f.partition_max_bytes).alias("partition_max_bytes"))
    got = (F.max(f.response_record_bytes).alias("response"), F.max(f.returned_bytes).alias("partition"))
    requested = partitions_of_brokers(rows(f))
    of_broker = requested.groupBy(f.reader, f.client_address, f.client_id, f.broker).agg(*limits, *got)
    widest = [F.max(name).alias(name) for name in ("max_bytes", "partition_max_bytes", "response", "partition")]
    of_client = of_broker.groupBy(f.reader, f.client_address, f.client_id).agg(*widest, F.sum("response").alias("held"))
    return of_client.groupBy(f.reader).agg(*widest, F.max("held"))


def batch_amounts(rows: OfTable) -> DataFrame:
    """One row: the bytes of the largest batch, and those of the largest batch of several records that a broker took.

    The second is 0 if brokers took only batches of a single record. With acks=0 no error is known, so such batches
    count as taken.
    """
    b = RECORD_BATCHES
    is_taken = (F.col(b.source) == FROM_PRODUCE) & (F.coalesce(b.error_code, F.lit(0)) == 0)
    produced = F.when(is_taken, F.when(F.col(b.record_count) > 1, F.col(b.size_bytes)).otherwise(0))
    read = F.when((F.col(b.source) != FROM_PRODUCE) | is_taken, F.col(b.size_bytes))
    return rows(b).agg(F.max(read), F.max(produced))


def most_readers(rows: OfTable) -> DataFrame:
    """One row: the largest number of connections that fetch in sessions from one broker at the same time. A connection
    counts from its first fetch to its last.
    """
    x = EXCHANGES
    in_session = (F.col(x.api_key) == FETCH_REQUEST.api_key) & (F.col(x.fetch_session_epoch) != FINAL_EPOCH)
    spans = rows(x).where(in_session).groupBy(x.broker, x.connection_id).agg(
        F.min(x.request_time).alias("first"), F.max(x.request_time).alias("last")
    )  # fmt: skip
    begin, end = (
        F.struct(F.col(at).alias("at"), F.lit(fewer).alias("fewer")) for at, fewer in (("first", -1), ("last", 1))
    )
    steps = F.explode(F.array(begin, end)).alias("step")
    in_order = Window.partitionBy(x.broker).orderBy("step.at", "step.fewer").rowsBetween(Window.unboundedPreceding, 0)
    at_a_time = (-F.sum("step.fewer").over(in_order)).alias("readers")
    return spans.select(x.broker, steps).select(at_a_time).agg(F.max("readers"))


def largest_request(rows: OfTable) -> DataFrame:
    """One row: the bytes of the largest produce request."""
    x = EXCHANGES
    return rows(x).where(F.col(x.api_key) == PRODUCE_REQUEST.api_key).agg(F.max(x.request_bytes))


def most_replicas(rows: OfTable) -> DataFrame:
    """One row: the replicas on the broker that has most of them, without internal topics, by the last Metadata
    responses.
    """
    m = CLUSTER_METADATA
    listed = rows(m).where((F.col(m.entry) == PARTITION) & ~F.coalesce(m.is_internal, F.lit(False)))
    last = F.max_by(m.replica_nodes, F.struct(m.request_time, m.connection_id, m.exchange_no)).alias("nodes")
    nodes = listed.groupBy(m.topic, m.partition).agg(last).select(F.explode("nodes").alias("node"))
    return nodes.groupBy("node").count().agg(F.max("count"))
