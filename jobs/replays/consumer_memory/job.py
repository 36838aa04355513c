"""consumer_memory: what memory consumers (KIP-81, a proposal), brokers (KIP-72) and producers use and would need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from jobs.captures.packets_needed import check_packets
from jobs.lake.packed_tables import unpacked
from jobs.replays.algorithm import Algorithm, Prepared, Source
from jobs.replays.consumer_memory.answers import QUERIES, TITLE, answer_lines
from jobs.replays.consumer_memory.events import memory_events
from jobs.replays.consumer_memory.fetch_limits import fetch_limits, limits_of_memory, replayed_responses
from jobs.replays.fetch_max_bytes.settings import MAX_POLL_RECORDS, PROCESSING
from jobs.replays.one_shuffle import shards_of
from jobs.scenarios.scenario import Lane, number_of, values_in
from jobs.scenarios.settings import Value
from schemas.tables import algorithms
from schemas.tables.gold_memory import GOLD_MEMORY
from schemas.tables.silver import EXCHANGES, FETCH_PARTITIONS, RECORD_BATCHES
from schemas.tables.steps import MEMORY_EVENTS
from udfs.columns.arrays import Ints
from udfs.columns.time_units import US_PER_MS
from udfs.replay.consumer_memory.pool import UNBOUNDED
from udfs.replay.consumer_memory.producer.captured_times import BufferBounds
from udfs.replay.consumer_memory.replay import replay_memory
from udfs.replay.consumer_memory.rows import VARIANTS, MemoryLanes
from udfs.replay.consumer_memory.state import MEMORY_POOL, Bounds
from udfs.replay.shared.lanes import AS_CAPTURED

MOST_CONSUMER_ALLOCATION = (1 << 31) - 1  # the prototype's min(buffer.memory, Integer.MAX_VALUE)
MOST_BLOCK_MS = 1 << 40  # for ever: as us, it can be added to a time
SENDING_THREADS = "sending.threads"
_T = MEMORY_EVENTS
ORDER = (
    _T.side, _T.unit, _T.unit_address, _T.time, _T.connection_id, _T.exchange_no, _T.kind, _T.lane, _T.partition_key,
    _T.end_offset, _T.cut_end_offset, _T.size, _T.held,
)  # fmt: skip


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


def reads_logs(source: Source) -> bool:
    """Whether lanes have fetch limits of their own, and no replay before this one hands on what consumers receive."""
    return algorithms.FETCH_MAX_BYTES not in source.before and limits_of_memory(source.run.scenario) is not None


def prepare(source: Source) -> Prepared:
    """The memory of everyone in the capture set. Raises CaptureError where sizes of messages are not known."""
    check_packets(source.spark, source.run.lake, source.capture_id, algorithms.CONSUMER_MEMORY)
    scenario, shards = source.run.scenario, shards_of(source.spark)
    lanes = memory_lanes(scenario.lanes(algorithms.CONSUMER_MEMORY), scenario.captured)
    exchanges, fetches, batches = map(source.rows, (EXCHANGES, FETCH_PARTITIONS, RECORD_BATCHES))
    responses = None
    if reads_logs(source):
        responses = replayed_responses(exchanges, fetches, batches, lanes.fetch_limits, shards)
    elif lanes.fetch_number.any():
        responses = unpacked(source.before[algorithms.FETCH_MAX_BYTES], MEMORY_EVENTS)
    events = memory_events(exchanges, fetches, batches, responses, shards)
    replay = partial(replay_memory, lanes=lanes, run_id=source.run_id)
    # Reads of logs have the sizes of all batches that could be read.
    return Prepared(events, ORDER, replay, is_narrow=not reads_logs(source))


CONSUMER_MEMORY = Algorithm(algorithms.CONSUMER_MEMORY, TITLE, GOLD_MEMORY, prepare, QUERIES, answer_lines)
