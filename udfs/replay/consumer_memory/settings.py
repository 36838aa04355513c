"""What each lane sets: pools of consumers and brokers, buffers of producers, and limits of consumers' fetches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from udfs.columns.arrays import Ints, Records
from udfs.columns.records import Kind, int_fields, new_records
from udfs.columns.time_units import US_PER_MS
from udfs.replay.shared.lanes import AS_CAPTURED, CAPTURED, LaneSettings
from udfs.replay.shared.window import WHOLE, Window

VARIANTS = ("memory_pool", "in_flight_estimate", "requests_in_flight", "completed_as_max")
"""What counts as used memory, by `memory.variant`: KIP-81's prototype, its earlier text, or two rejected variants."""
MEMORY_POOL, IN_FLIGHT_ESTIMATE, REQUESTS_IN_FLIGHT, COMPLETED_AS_MAX = range(len(VARIANTS))
UNBOUNDED = 1 << 62
"""The size of a pool that never refuses, and the most that it grants at once (MemoryPool.NONE)."""
MOST_CONSUMER_ALLOCATION = (1 << 31) - 1
"""KIP-81's prototype grants at most min(buffer.memory, Integer.MAX_VALUE) at once."""
MAX_KBYTES, MIN_MESSAGES = "consumer.queued.max.messages.kbytes", "consumer.queued.min.messages"
QUEUE_BACKOFF = "consumer.fetch.queue.backoff.ms"
QUEUED_BYTES = "broker.queued.max.request.bytes"
BATCH_SIZE = "producer.batch.size"
QUEUE_KEYS = (MAX_KBYTES, MIN_MESSAGES, QUEUE_BACKOFF)
"""The settings of a librdkafka consumer's queue."""
MOST_BLOCK_MS = 1 << 40
"""A longer max.block.ms counts as this one, some 35 years, which in us can still be added to a time."""

POOL_SETTINGS: Kind = np.dtype(
    [
        ("size", np.int64),  # bytes, or UNBOUNDED
        ("max_allocation", np.int64),  # bytes of one message, or UNBOUNDED
        ("is_strict", np.int64),  # 1: grants only what is wholly free; 0: grants as long as a byte is free
        ("variant", np.int64),
        ("max_poll_records", np.int64),
        ("seed", np.int64),  # of the unit's random numbers in the lane: which connection is first when connections race
        ("us_per_record", np.float64),  # how long the application works on each record, by the capture's clock;
        # AS_CAPTURED: memory is held as captured
        ("network_threads", np.int64),  # of a broker; 0: connections that wait read as soon as memory is released
    ]
)
"""The settings of a lane for a consumer or broker."""
BUFFER_SETTINGS = int_fields(
    "buffer_memory",  # bytes
    "batch_size",  # bytes; AS_CAPTURED: as the producer's batches show it
    "max_block_us",
    "threads",  # that send, in closed loop
)
"""The settings of a lane for a producer."""
QUEUE_SETTINGS = int_fields(
    "max_kbytes",  # queued.max.messages.kbytes; AS_CAPTURED: the default of the client's release
    "min_messages",
    "backoff_us",
    "us_per_record",  # how long the application works on each record; AS_CAPTURED: as the capture shows it
)
"""The settings of a lane for the queue of a librdkafka consumer."""
FETCH_LIMITS: Kind = np.dtype(
    [
        ("max_bytes", np.int64),  # fetch.max.bytes, or AS_CAPTURED
        ("partition_max_bytes", np.int64),  # max.partition.fetch.bytes, or AS_CAPTURED
        ("broker_max_bytes", np.int64),  # the broker's fetch.max.bytes
        ("consumers", np.int64),  # how many share what the captured consumer reads
        ("speed", np.float64),  # factor by which records are produced faster than captured
    ]
)
"""The limits of a consumer's fetches, and the traffic that it reads."""


@dataclass(frozen=True)
class MemoryLanes:
    """The lanes of a replay; lane 0 has the settings in force.

    consumer, broker: POOL_SETTINGS[lanes]. producer: BUFFER_SETTINGS[lanes]. queue: QUEUE_SETTINGS[lanes].
    fetch_limits: FETCH_LIMITS[limits], those in force first. fetch_number: int64[lanes], the index in fetch_limits of
    each lane's limits. default_batch_size: the default of batch.size. default_kbytes: the default of
    queued.max.messages.kbytes. older_kbytes: (a release of librdkafka as 1000 x major + minor, the default in the
    releases before it), the oldest first. window: the time that counts. own_pools: the bytes of the pool in each lane,
    int64[lanes], of each broker for which another bound is stated than for all, by its name.
    """

    names: tuple[str, ...]
    consumer: Records
    broker: Records
    producer: Records
    queue: Records
    fetch_limits: Records
    fetch_number: Ints
    default_batch_size: int = 0
    default_kbytes: int = 0
    older_kbytes: tuple[tuple[int, int], ...] = ()
    window: Window = WHOLE
    own_pools: Mapping[str, Ints] = field(default_factory=dict)

    def pools_of_brokers(self, brokers: Sequence[str]) -> Records:
        """POOL_SETTINGS[brokers, lanes]. brokers: their names."""
        pools = np.tile(self.broker, (len(brokers), 1))
        for broker, name in enumerate(brokers):
            if name in self.own_pools:
                pools["size"][broker] = self.own_pools[name]
        return pools

    @property
    def with_captured_traffic(self) -> MemoryLanes:
        """The lanes in which as much is produced as captured, and as many consumers read it: the captured lane, and
        others. Only in these are brokers, producers and librdkafka's queues replayed.
        """
        of_lane = self.fetch_limits[self.fetch_number]
        kept = np.flatnonzero((of_lane["speed"] == 1.0) & (of_lane["consumers"] == 1))
        return replace(
            self,
            names=tuple(self.names[number] for number in kept.tolist()),
            consumer=self.consumer[kept],
            broker=self.broker[kept],
            producer=self.producer[kept],
            queue=self.queue[kept],
            fetch_number=self.fetch_number[kept],
            own_pools={broker: sizes[kept] for broker, sizes in self.own_pools.items()},
        )


def memory_lanes(
    lanes: LaneSettings, fetch_limits: Records, fetch_number: Ints, assumed: Sequence[str] = ()
) -> MemoryLanes:
    """The lanes in the form that the replay takes.

    fetch_limits: FETCH_LIMITS[limits]. fetch_number: int64[lanes]. Both are as in MemoryLanes. assumed: the settings in
    force that nobody stated.
    """
    return MemoryLanes(
        names=lanes.names,
        consumer=consumer_pools(lanes),
        broker=broker_pools(lanes),
        producer=producer_buffers(lanes, assumed),
        queue=consumer_queues(lanes, assumed),
        fetch_limits=fetch_limits,
        fetch_number=fetch_number,
        default_batch_size=int(lanes.ints(BATCH_SIZE)[CAPTURED]),
        own_pools={
            broker: lanes.of_broker(broker).ints(QUEUED_BYTES, UNBOUNDED) for broker in lanes.brokers_with(QUEUED_BYTES)
        },
    )


def consumer_pools(lanes: LaneSettings) -> Records:
    """POOL_SETTINGS[lanes] of consumers: buffer.memory of KIP-81, a proposal."""
    size = lanes.ints("consumer.buffer.memory", UNBOUNDED)
    us_per_record = lanes.ints("processing.us.per.record", AS_CAPTURED)
    return new_records(
        POOL_SETTINGS,
        len(lanes.names),
        size=size,
        max_allocation=np.where(size == UNBOUNDED, UNBOUNDED, np.minimum(size, MOST_CONSUMER_ALLOCATION)),
        is_strict=lanes.choices("memory.pool", {"strict": 1}, unset=0),
        variant=lanes.choices("memory.variant", VARIANTS),
        us_per_record=np.where(us_per_record == AS_CAPTURED, AS_CAPTURED, us_per_record * lanes.traffic_speed),
        max_poll_records=lanes.ints("consumer.max.poll.records"),
    )


def broker_pools(lanes: LaneSettings) -> Records:
    """POOL_SETTINGS[lanes] of brokers: queued.max.request.bytes (KIP-72)."""
    return new_records(
        POOL_SETTINGS,
        len(lanes.names),
        size=lanes.ints(QUEUED_BYTES, UNBOUNDED),
        max_allocation=lanes.ints("broker.socket.request.max.bytes"),
        variant=MEMORY_POOL,
        us_per_record=AS_CAPTURED,
        network_threads=lanes.ints("broker.num.network.threads"),
    )


def consumer_queues(lanes: LaneSettings, assumed: Sequence[str]) -> Records:
    """QUEUE_SETTINGS[lanes] of librdkafka consumers."""
    kbytes = lanes.changed_ints(MAX_KBYTES) if MAX_KBYTES in assumed else lanes.ints(MAX_KBYTES, AS_CAPTURED)
    return new_records(
        QUEUE_SETTINGS,
        len(lanes.names),
        max_kbytes=kbytes,
        min_messages=lanes.ints(MIN_MESSAGES),
        backoff_us=lanes.ints(QUEUE_BACKOFF) * US_PER_MS,
        us_per_record=lanes.ints("processing.us.per.record", AS_CAPTURED),
    )


def producer_buffers(lanes: LaneSettings, assumed: Sequence[str]) -> Records:
    """BUFFER_SETTINGS[lanes] of producers. assumed: the settings in force that nobody stated."""
    batch_size = lanes.changed_ints(BATCH_SIZE) if BATCH_SIZE in assumed else lanes.ints(BATCH_SIZE)
    return new_records(
        BUFFER_SETTINGS,
        len(lanes.names),
        buffer_memory=lanes.ints("producer.buffer.memory"),
        batch_size=np.where(batch_size == AS_CAPTURED, AS_CAPTURED, np.maximum(batch_size, 1)),
        max_block_us=np.minimum(lanes.ints("producer.max.block.ms"), MOST_BLOCK_MS) * US_PER_MS,
        threads=lanes.ints("sending.threads"),
    )
