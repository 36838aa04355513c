"""Compiles every kernel of this replay."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from schemas.tables.event_kinds import MemoryEvent
from schemas.tables.steps_memory import MEMORY_EVENTS
from schemas.tables.values import CONSUMER, PRODUCER
from udfs.columns.records import new_records
from udfs.kernels.blank_rows import blank_rows
from udfs.replay.consumer_memory.replay import replay_memory
from udfs.replay.consumer_memory.settings import (
    BUFFER_SETTINGS,
    FETCH_LIMITS,
    POOL_SETTINGS,
    QUEUE_SETTINGS,
    MemoryLanes,
)
from udfs.replay.fetch_max_bytes.partition_log.replay import read_rows
from udfs.replay.fetch_max_bytes.replay import replay_responses
from udfs.replay.fetch_max_bytes.warm_up import sample_log_and_read, two_fetch_lanes
from udfs.replay.shared.lanes import AS_CAPTURED
from udfs.replay.shared.line_fit import fit_line


def warm_up() -> None:
    """Run a fetch of one partition, and produced batches of which one waits, through two lanes. Also run the closed
    loop of fetches, which gives the responses under other fetch limits.
    """
    for _ in replay_memory([sample_fetch(), two_batches()], two_lanes(), ""):
        pass
    for _ in replay_responses(read_rows([sample_log_and_read()], 1 << 20), two_fetch_lanes()):
        pass
    fit_line(np.ones(1, np.int64), np.ones(1, np.int64), 0.0)  # of responses under other limits


def sample_fetch() -> pa.RecordBatch:
    """An exchange of a librdkafka consumer with a partition and a batch."""
    kinds = np.array([MemoryEvent.EXCHANGE, MemoryEvent.PARTITION, MemoryEvent.BATCH])
    size, side = np.full(3, 100), pa.array([CONSUMER] * 3)
    return blank_rows(MEMORY_EVENTS, 3, side=side, kind=kinds, size=size, returned_bytes=size)


def two_batches() -> pa.RecordBatch:
    """Two batches in requests on one connection; the second is sent while the first is served."""
    side, number, size = pa.array([PRODUCER] * 2), np.arange(2), np.full(2, 100)
    came = np.full(2, 10)
    return blank_rows(
        MEMORY_EVENTS, 2, side=side, exchange_no=number, partition_key=number, size=size, came=came
    )  # fmt: skip


def two_lanes() -> MemoryLanes:
    """The captured lane, and one in which a producer has memory for one batch."""
    pools = new_records(POOL_SETTINGS, 2, size=1 << 20, max_allocation=1 << 20, us_per_record=AS_CAPTURED)
    buffers = new_records(BUFFER_SETTINGS, 2, buffer_memory=[1 << 20, 100], batch_size=1, max_block_us=1, threads=1)
    queues = new_records(QUEUE_SETTINGS, 2, max_kbytes=1, min_messages=1, us_per_record=1)
    limits = new_records(
        FETCH_LIMITS, 1, max_bytes=AS_CAPTURED, partition_max_bytes=AS_CAPTURED, consumers=1, speed=1.0
    )
    return MemoryLanes(
        names=("captured", "other"),
        consumer=pools,
        broker=pools,
        producer=buffers,
        queue=queues,
        fetch_limits=limits,
        fetch_number=np.zeros(2, np.int64),
    )
