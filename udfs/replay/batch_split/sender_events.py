"""The events of a producer's Sender, as codes in a heap that is sorted by time."""

from __future__ import annotations

from udfs.kernels.kernel import kernel
from udfs.replay.batch_split.state import NOT_CLOSED, ProducerSim
from udfs.replay.shared.event_heap import kinds, push

ANSWERED, CAPTURED_CLOSE, OF_BATCH = kinds(3)
"""Of events at the same time these come first: responses for which a batch is split, by its first record. Then, by
partition, the times at which a captured batch was closed before it was full or had lingered. All other events are in
the order of the first records of their batches."""
LINGERED, CLOSED, RETRIED, TAKEN = range(4)
"""Kinds of events OF_BATCH, in their order for the same batch. TAKEN: a part of a split batch is answered, and is not
split again."""
KIND_BITS = 2
KIND = (1 << KIND_BITS) - 1
"""The bits of an event OF_BATCH that have its kind; the bits above have the first record of the batch."""


@kernel
def schedule_event(sim: ProducerSim, time: int, kind: int, first: int) -> None:
    """Schedule an event of this kind for the batch that begins with the record `first`."""
    push(sim.heap, time, OF_BATCH | first << KIND_BITS | kind)


@kernel
def schedule_close(sim: ProducerSim, time: int, first: int) -> None:
    """Schedule the close of a batch that is ready."""
    sim.ready[first].size = NOT_CLOSED
    schedule_event(sim, time, CLOSED, first)
