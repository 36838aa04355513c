"""The batches of a partition that wait while the parts of split batches are sent, in the order of sequence numbers.

An idempotent producer sends the parts one at a time, each when the part before is answered. The batches after them
wait until the last part is sent (`RecordAccumulator.insertInSequenceOrder` and `shouldStopDrainBatchesForPartition` of
kafka-clients 4.3). A batch that waits is not closed. So the estimate does not yet follow it, and the batch after it
takes more records although it has lingered.
"""

from __future__ import annotations

from udfs.columns.sentinels import NONE
from udfs.kernels.kernel import kernel
from udfs.replay.batch_split.sender_events import LINGERED, schedule_close, schedule_event
from udfs.replay.batch_split.state import ProducerSim, delay_by_bytes

NO_PART, TO_SEND, IN_FLIGHT = range(3)
"""The state of the part of a split batch that left the queue last; NO_PART once it is answered."""


@kernel
def must_wait_in_queue(sim: ProducerSim, partition: int) -> bool:
    """Whether a batch without a sequence number has to wait."""
    filling = sim.filling[partition]
    return bool(filling.queued != NONE or filling.part == TO_SEND)


@kernel
def delay_in_turn(sim: ProducerSim, first: int) -> int:
    """The time from the close before to this batch's close (us): that of the captured batch with its last record,
    corrected for the difference in bytes.
    """
    ready = sim.ready[first]
    captured = sim.capture.batches[sim.capture.records[ready.end - 1].batch]
    return int(max(captured.delay_in_turn + delay_by_bytes(captured, ready.uncompressed), 0))


@kernel
def comes_after_sent(sim: ProducerSim, first: int, time: int) -> bool:
    """Whether a batch that would close now comes after a batch that has left the queue and closes later."""
    filling = sim.filling[sim.capture.records[first].partition]
    is_next = filling.left != NONE and first > filling.left and not sim.ready[first].made_by_split
    return bool(is_next and time < filling.left_at)


@kernel
def close_in_turn(sim: ProducerSim, first: int) -> None:
    """Close a batch in its turn, after the last one that has left the queue."""
    filling = sim.filling[sim.capture.records[first].partition]
    filling.left, filling.left_at = first, filling.left_at + delay_in_turn(sim, first)
    filling.last_closed = max(filling.last_closed, filling.left_at)
    schedule_close(sim, filling.left_at, first)


@kernel
def enqueue_batch(sim: ProducerSim, first: int, may_leave: int) -> None:
    """Let a batch wait in its place, at least until `may_leave`. A partition's records are numbered in sequence."""
    filling, ready = sim.filling[sim.capture.records[first].partition], sim.ready[first]
    before, following = NONE, filling.queued
    while following != NONE and following < first:
        before, following = following, sim.ready[following].next_in_queue
    ready.may_leave, ready.next_in_queue = may_leave, following
    if before == NONE:
        filling.queued = first
    else:
        sim.ready[before].next_in_queue = first


@kernel
def leave_queue(sim: ProducerSim, partition: int, time: int) -> None:
    """Send the batches that no longer have to wait. The times between them are as captured."""
    filling, last = sim.filling[partition], time
    while filling.queued != NONE:
        first = filling.queued
        ready = sim.ready[first]
        if filling.part == TO_SEND or (ready.made_by_split and filling.part == IN_FLIGHT):
            return
        if ready.made_by_split:
            filling.part = TO_SEND
        else:
            last += delay_in_turn(sim, first)
        filling.queued = ready.next_in_queue
        last = max(last, ready.may_leave)
        filling.last_closed = max(filling.last_closed, last)
        if not ready.made_by_split:
            filling.left, filling.left_at = first, last
        schedule_close(sim, last, first)
    if filling.is_overdue and filling.part != TO_SEND and filling.count:
        filling.is_overdue = 0
        delay = sim.capture.batches[sim.capture.records[filling.first].batch].delay_in_turn
        schedule_event(sim, last + delay, LINGERED, filling.first)
