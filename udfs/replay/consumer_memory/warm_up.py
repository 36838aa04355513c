"""Have every kernel of this replay compiled."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from schemas.tables.steps import MEMORY_EVENTS
from schemas.tables.values import CONSUMER, PRODUCER
from udfs.kernels.blank_rows import blank_rows
from udfs.replay.consumer_memory.producer.batches import Produced
from udfs.replay.consumer_memory.producer.captured_times import BufferBounds
from udfs.replay.consumer_memory.producer.threads import replay_sends
from udfs.replay.consumer_memory.replay import replay_memory
from udfs.replay.consumer_memory.rows import MemoryLanes
from udfs.replay.consumer_memory.state import Bounds
from udfs.replay.fetch_max_bytes.log_reads import reads
from udfs.replay.fetch_max_bytes.responses_alone import replayed_fetches
from udfs.replay.fetch_max_bytes.warm_up import log_and_read, two_fetch_lanes


def warm_up() -> None:
    """A fetch of one partition, and a produced batch, in one lane."""
    one, none = np.full(1, 1 << 20), np.zeros(1, np.int64)
    bounds = Bounds(one, one, none, none, -np.ones(1, np.int64), one, none)
    lanes = MemoryLanes(("captured",), bounds, bounds, BufferBounds(one, one, one, one), none, two_fetch_lanes())
    hundred = np.full(3, 100)
    sides = {side: pa.array([side] * 3) for side in (CONSUMER, PRODUCER)}
    fetched = blank_rows(
        MEMORY_EVENTS, 3, kind=np.arange(3), size=hundred, returned_bytes=hundred, side=sides[CONSUMER]
    )
    produced = blank_rows(MEMORY_EVENTS, 3, size=hundred, side=sides[PRODUCER])
    for _ in replay_memory([fetched, produced], lanes, ""):
        pass
    sent = Produced()
    sent.add(produced)
    replay_sends(sent.sent().sends, lanes.producer)
    for _ in replayed_fetches(reads([log_and_read()], 1 << 20), two_fetch_lanes()):
        pass
