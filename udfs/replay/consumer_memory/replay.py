"""The pass over units: what held memory of each consumer, broker and producer, replayed in every lane."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b

import numpy as np
import pyarrow as pa

from schemas.tables.steps import MEMORY_EVENTS
from schemas.tables.table import Table
from udfs.columns.arrays import Ints
from udfs.facts.arrow_tables import packed_together
from udfs.replay.consumer_memory.channels import replay_unit
from udfs.replay.consumer_memory.consumers import Consumed, replays_of
from udfs.replay.consumer_memory.producer.batches import Produced
from udfs.replay.consumer_memory.producer.replay import followed
from udfs.replay.consumer_memory.rows import (
    MemoryLanes,
    Unit,
    broker_rows,
    consumer_fidelity,
    consumer_rows,
    producer_rows,
    without_buffer,
)
from udfs.replay.consumer_memory.state import Bounds
from udfs.replay.consumer_memory.traces import BROKER, CONSUMER, PRODUCER, Gathered, request_trace
from udfs.replay.shared.rows_by_key import by_key

UNIT = (MEMORY_EVENTS.side, MEMORY_EVENTS.unit, MEMORY_EVENTS.unit_address)


Sources = Consumed | Gathered | Produced
"""What a consumer, a broker or a producer is replayed from."""


def replay_memory(batches: Iterable[pa.RecordBatch], lanes: MemoryLanes, run_id: str) -> Iterator[pa.RecordBatch]:
    """Packed rows of gold tables from rows of MEMORY_EVENTS, sorted by its key."""
    yield from packed_together(rows_of_units(batches, lanes, run_id))


def rows_of_units(
    batches: Iterable[pa.RecordBatch], lanes: MemoryLanes, run_id: str
) -> Iterator[tuple[Table, pa.RecordBatch]]:
    """The rows of one unit after the other."""
    for (side, name, address), parts in by_key(batches, UNIT):
        gathered: Sources = {CONSUMER: Consumed, BROKER: Gathered, PRODUCER: Produced}[side]()
        for part in parts:
            gathered.add(part)
        yield from rows_of_unit(Unit(side, name, address, run_id), gathered, lanes)


def seeds(unit: Unit, names: Sequence[str]) -> Ints:
    """A seed a lane, of the lane's and the unit's names alone."""
    digests = (blake2b("\0".join((*unit.names, name)).encode(), digest_size=8).digest() for name in names)
    return np.array([int.from_bytes(digest, "big", signed=True) for digest in digests], np.int64)


def seeded(bounds: Bounds, unit: Unit, names: Sequence[str]) -> Bounds:
    """The lanes' settings with the seeds of a unit."""
    return bounds._replace(seed=seeds(unit, names))


def rows_of_unit(unit: Unit, gathered: Sources, lanes: MemoryLanes) -> Iterator[tuple[Table, pa.RecordBatch]]:
    """The rows of a unit that is complete. A client that fetched nothing, or as a follower, is no consumer."""
    if isinstance(gathered, Produced):
        sent = gathered.sent()
        if gathered.is_java:
            yield from producer_rows(unit, followed(sent, lanes.producer), lanes, sent, gathered.left_out)
        else:
            yield from without_buffer(unit, sent)
        return
    if isinstance(gathered, Gathered):
        replayed = replay_unit(request_trace(gathered), seeded(lanes.broker, unit, lanes.names))
        yield from broker_rows(unit, replayed, gathered, lanes)
    elif gathered.captured.brokers and len(gathered.answered.came):
        bounds = seeded(lanes.consumer, unit, lanes.names)
        for done in replays_of(gathered, lanes.names, bounds, lanes.fetch_number, lanes.fetch_limits):
            yield from consumer_rows(unit, done, gathered.captured)
        yield from consumer_fidelity(unit, gathered, lanes)
