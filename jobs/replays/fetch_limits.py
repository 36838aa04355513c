"""fetch_max_bytes: KIP-74 on the silver tables, under every lane, in open loop and in closed loop.

Open loop: each captured request is answered under the settings of each lane. Closed loop: each reader goes on from what
it was given.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from jobs.captures.told_by_packets import check_packets
from jobs.lake import rows_of, spark_schema
from jobs.replays.algorithm import Algorithm
from jobs.replays.fetch_answers import QUERIES, TITLE, answer_lines
from jobs.replays.fetch_events import log_events, with_profiles
from jobs.replays.one_shuffle import SHARD, packed_in_order, shard, shards_of
from jobs.run import Run
from jobs.scenarios.scenario import Lane, number_of, values_in
from jobs.scenarios.settings import Value
from schemas.tables.gold import FETCH_CONSUMERS, FETCH_FAIRNESS, FETCH_MEMORY, FETCH_TIMELINE
from schemas.tables.silver import EXCHANGES, FETCH_PARTITIONS, RECORD_BATCHES
from schemas.tables.steps import LOG_EVENTS, READS
from udfs.replay.fetch.client_order import ORDERS, PROFILES
from udfs.replay.fetch.client_pace import ClientLanes
from udfs.replay.fetch.fetch_lanes import FetchLanes
from udfs.replay.fetch.fetch_read import AS_CAPTURED, Lanes
from udfs.replay.fetch.fetch_replay import READER, replay_fetches
from udfs.replay.fetch.fetch_report import ALGORITHM
from udfs.replay.fetch.log_reads import reads

# A partition with lanes that ask for more gets no more batch sizes than these bytes: the replay counts it as unknown.
MOST_BYTES = 64 << 20
READER_ORDER = (*READER, READS.request_time, READS.connection_id, READS.exchange_no, READS.read_position)
"""In which order rows of READS come to what replays a reader."""
BROKER_MAX_BYTES = "broker.fetch.max.bytes"
MAX_POLL_RECORDS = "consumer.max.poll.records"
PROCESSING = "processing.us.per.record"
NO_QUOTA = (1 << 31) - 1
BYTE_RATE = "consumer_byte_rate"
QUOTA_SECONDS = 10
"""(quota.window.num - 1) x quota.window.size.seconds, by default: what a response may have of a quota, in seconds."""
SETTINGS = {
    "consumer": ("consumer.fetch.max.bytes", "consumer.max.partition.fetch.bytes"),
    "follower": ("replica.fetch.response.max.bytes", "replica.fetch.max.bytes"),
}
WAITS = {
    "consumer": ("consumer.fetch.min.bytes", "consumer.fetch.max.wait.ms"),
    "follower": ("replica.fetch.min.bytes", "replica.fetch.wait.max.ms"),
}


def fetch_lanes(lanes: Sequence[Lane], captured: dict[str, Value]) -> FetchLanes:
    """The scenario's lanes as the replay takes them; what a lane does not change is as captured."""

    def column(key: str, default: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.array([int(lane.settings.get(key, default)) for lane in lanes], np.int64)

    rates = [number_of(rate, NO_QUOTA) for rate in values_in(lanes, BYTE_RATE, captured)]
    quota = np.array(rates, np.int64) * QUOTA_SECONDS

    def of(reader: str) -> Lanes:
        max_bytes, partition_max_bytes = SETTINGS[reader]
        most = column(BROKER_MAX_BYTES, int(captured[BROKER_MAX_BYTES]))
        profiles = [lane.settings.get("kafka", captured.get("kafka")) for lane in lanes]
        return Lanes(
            column(max_bytes, AS_CAPTURED),
            column(partition_max_bytes, AS_CAPTURED),
            np.minimum(most, quota) if reader == "consumer" else most,
            np.array([profile == "kip" for profile in profiles]).astype(np.int64),
        )

    def client(reader: str) -> ClientLanes:
        min_bytes, max_wait = WAITS[reader]
        named = {"profile": PROFILES, "order": ORDERS} if reader == "consumer" else {"order": ORDERS}
        codes = {
            key: np.array([known.get(str(lane.settings.get(key)), AS_CAPTURED) for lane in lanes], np.int64)
            for key, known in named.items()
        }
        return ClientLanes(
            column(min_bytes, AS_CAPTURED),
            column(max_wait, AS_CAPTURED),
            column(MAX_POLL_RECORDS, int(captured[MAX_POLL_RECORDS])),
            column(PROCESSING, AS_CAPTURED),
            codes.get("profile", np.full(len(lanes), AS_CAPTURED)),
            codes["order"],
        )

    names = tuple(lane.name for lane in lanes)
    return FetchLanes(names, of("consumer"), of("follower"), client("consumer"), client("follower"))


def replay(spark: SparkSession, run: Run, capture_id: str, run_id: str) -> DataFrame:
    """Replay every fetch of the capture set. Raises CaptureError where batch sizes are not known."""
    check_packets(spark, run.lake, capture_id, f"the sizes of record batches that the replay of {ALGORITHM} needs")
    lanes = fetch_lanes(run.scenario.lanes(ALGORITHM), dict(run.scenario.captured))
    exchanges = rows_of(spark, run.lake, EXCHANGES, capture_id)
    fetches = with_profiles(rows_of(spark, run.lake, FETCH_PARTITIONS, capture_id), exchanges)
    batches = rows_of(spark, run.lake, RECORD_BATCHES, capture_id)
    shards = shards_of(spark)
    return replayed(fetches, batches, lanes, run_id, shards)


def replayed(fetches: DataFrame, batches: DataFrame, lanes: FetchLanes, run_id: str, shards: int) -> DataFrame:
    """Packed rows of the gold tables: one shuffle by partition, to know the logs, and one by reader, to replay."""

    def replay(rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from replay_fetches(rows, lanes, run_id)

    return packed_in_order(known_reads(fetches, batches, shards), shards, READER_ORDER, replay)


def known_reads(fetches: DataFrame, batches: DataFrame, shards: int) -> DataFrame:
    """Rows of READS with the shard of their reader: one shuffle by partition."""
    t = LOG_EVENTS

    def read_logs(rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from reads(rows, MOST_BYTES)

    found = (
        log_events(fetches, batches, shards)
        .repartitionById(shards, t.shard)
        .sortWithinPartitions(t.topic_key, t.partition, t.kind, t.position, t.connection_id, t.exchange_no)
        .mapInArrow(read_logs, spark_schema(READS))
    )
    return found.withColumn(SHARD, shard(shards, *READER))


TABLES = (FETCH_FAIRNESS, FETCH_CONSUMERS, FETCH_TIMELINE, FETCH_MEMORY)
FETCH_LIMITS = Algorithm(ALGORITHM, TITLE, TABLES, replay, QUERIES, answer_lines)
