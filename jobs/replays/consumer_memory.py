"""consumer_memory: what memory consumers (KIP-81, a proposal), brokers (KIP-72) and producers use and would need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from jobs.captures.told_by_packets import check_packets
from jobs.lake.packed_tables import unpacked
from jobs.replays.algorithm import Algorithm, Source
from jobs.replays.fetch_settings import MAX_POLL_RECORDS, PROCESSING
from jobs.replays.memory_answers import QUERIES, TITLE, answer_lines
from jobs.replays.memory_events import memory_events
from jobs.replays.memory_fetches import fetch_limits, limits_of_memory, replayed_responses
from jobs.replays.one_shuffle import packed_in_order, shards_of
from jobs.scenarios.scenario import Lane, number_of, values_in
from jobs.scenarios.settings import Value
from schemas.tables.gold_memory import GOLD_MEMORY
from schemas.tables.silver import EXCHANGES, FETCH_PARTITIONS, RECORD_BATCHES
from schemas.tables.steps import MEMORY_EVENTS
from udfs.columns.arrays import Ints
from udfs.columns.time_units import US_PER_MS
from udfs.replay.fetch.fetch_read import AS_CAPTURED
from udfs.replay.fetch.fetch_report import ALGORITHM as FETCH_MAX_BYTES
from udfs.replay.memory.memory_pool import UNBOUNDED
from udfs.replay.memory.memory_replay import replay_memory
from udfs.replay.memory.memory_report import ALGORITHM, VARIANTS, MemoryLanes
from udfs.replay.memory.memory_state import MEMORY_POOL, Bounds
from udfs.replay.memory.producer_memory import BufferBounds

MOST_CONSUMER_ALLOCATION = (1 << 31) - 1  # the prototype's min(buffer.memory, Integer.MAX_VALUE)
MOST_BLOCK_MS = 1 << 40  # for ever: as us, it can be added to a time
SENDING_THREADS = "sending.threads"


def memory_lanes(lanes: Sequence[Lane], captured: Mapping[str, Value]) -> MemoryLanes:
    """The scenario's lanes as the replay takes them; what a lane does not change is as captured, or Kafka's default."""

    def values(key: str) -> list[Value | None]:
        return values_in(lanes, key, captured)

    def column(key: str, unset: int = 0) -> Ints:
        return np.array([number_of(value, unset) for value in values(key)], np.int64)

    none, as_captured = np.zeros(len(lanes), np.int64), np.full(len(lanes), AS_CAPTURED)
    buffer, requests = column("consumer.buffer.memory", UNBOUNDED), column("broker.queued.max.request.bytes", UNBOUNDED)
    most_request = column("broker.socket.request.max.bytes")
    consumer = Bounds(
        size=buffer,
        max_single=np.where(buffer == UNBOUNDED, UNBOUNDED, np.minimum(buffer, MOST_CONSUMER_ALLOCATION)),
        strict=np.array([value == "strict" for value in values("memory.pool")]).astype(np.int64),
        variant=np.array([VARIANTS.index(str(value)) for value in values("memory.variant")], np.int64),
        record_us=column(PROCESSING, AS_CAPTURED),
        most_records=column(MAX_POLL_RECORDS),
        seed=none,
    )
    broker = Bounds(
        size=requests,
        max_single=most_request,
        strict=none,
        variant=np.full(len(lanes), MEMORY_POOL),
        record_us=as_captured,
        most_records=np.ones(len(lanes), np.int64),
        seed=none,
    )
    producer = BufferBounds(
        total=column("producer.buffer.memory"),
        poolable=np.maximum(column("producer.batch.size"), 1),
        block_us=np.minimum(column("producer.max.block.ms"), MOST_BLOCK_MS) * US_PER_MS,
        threads=column(SENDING_THREADS),
    )
    numbers, limits = fetch_limits(lanes, captured)
    return MemoryLanes(tuple(lane.name for lane in lanes), consumer, broker, producer, numbers, limits)


def replay(source: Source) -> DataFrame:
    """Replay the memory of everyone in the capture set. Raises CaptureError where sizes of messages are not known."""
    check_packets(source.spark, source.run.lake, source.capture_id, ALGORITHM)
    scenario, shards = source.run.scenario, shards_of(source.spark)
    lanes = memory_lanes(scenario.lanes(ALGORITHM), scenario.captured)
    exchanges, fetches, batches = map(source.rows, (EXCHANGES, FETCH_PARTITIONS, RECORD_BATCHES))
    if not lanes.fetch_number.any():
        responses = None
    elif FETCH_MAX_BYTES in source.before:
        responses = unpacked(source.before[FETCH_MAX_BYTES], MEMORY_EVENTS)
    else:
        responses = replayed_responses(exchanges, fetches, batches, lanes.fetch_limits, shards)
    events = memory_events(exchanges, fetches, batches, responses, shards)
    return replayed(events, lanes, source.run_id, shards)


def is_narrow(source: Source) -> bool:
    """Whether no reads of logs come to the workers, which have the sizes of all batches that could be read."""
    return FETCH_MAX_BYTES in source.before or limits_of_memory(source.run.scenario) is None


def replayed(events: DataFrame, lanes: MemoryLanes, run_id: str, shards: int) -> DataFrame:
    """Packed rows of the gold tables: one shuffle, by whose memory it is."""
    t = MEMORY_EVENTS

    def replay(rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from replay_memory(rows, lanes, run_id)

    order = (
        t.side, t.unit, t.unit_address, t.time, t.connection_id, t.exchange_no, t.kind, t.lane, t.partition_key,
        t.end_offset, t.cut_end_offset, t.size, t.held,
    )  # fmt: skip
    return packed_in_order(events, shards, order, replay)


CONSUMER_MEMORY_REPLAY = Algorithm(ALGORITHM, TITLE, GOLD_MEMORY, replay, QUERIES, answer_lines, is_narrow=is_narrow)
