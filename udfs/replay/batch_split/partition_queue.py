"""The batches of a partition that wait while the parts of split ones are sent, in the order of sequence numbers.

An idempotent producer sends the parts one at a time, each when the one before is answered. What is behind them waits
until the last one is sent (`RecordAccumulator.insertInSequenceOrder` and `shouldStopDrainBatchesForPartition` of
kafka-clients 4.3). A batch that waits is not closed: the estimate does not follow it yet, and the one behind it is
filled further though it has lingered.
"""

from __future__ import annotations

from udfs.kernels.kernel import kernel
from udfs.replay.batch_split.sender_events import LINGERED, schedule, schedule_close
from udfs.replay.batch_split.state import Sim
from udfs.replay.shared.resent_batches import NONE

NO_PART, TO_SEND, IN_FLIGHT = range(3)
"""What became of the part of a split batch that left the queue last; NO_PART once it is answered."""


@kernel
def has_to_wait(sim: Sim, partition: int) -> bool:
    """Whether a batch without a sequence number has to wait."""
    filling = sim.filling[partition]
    return bool(filling.queued != NONE or filling.part == TO_SEND)


@kernel
def enqueue(sim: Sim, first: int, may_leave: int) -> None:
    """Have a batch wait in its place, at least until `may_leave`; a partition's records are numbered as in sequence."""
    filling, ready = sim.filling[sim.capture.records[first].partition], sim.ready[first]
    before, behind = NONE, filling.queued
    while behind != NONE and behind < first:
        before, behind = behind, sim.ready[behind].behind
    ready.may_leave, ready.behind = may_leave, behind
    if before == NONE:
        filling.queued = first
    else:
        sim.ready[before].behind = first


@kernel
def leave_queue(sim: Sim, partition: int, time: int) -> None:
    """Send what need not wait any longer, each batch as long after the last part as the captured one."""
    filling, last = sim.filling[partition], time
    while filling.queued != NONE:
        first = filling.queued
        ready = sim.ready[first]
        if filling.part == TO_SEND or (ready.made_by_split and filling.part == IN_FLIGHT):
            return
        if ready.made_by_split:
            filling.part = TO_SEND
        else:
            last = max(last, time + sim.capture.batches[sim.capture.records[ready.end - 1].batch].behind)
        filling.queued = ready.behind
        last = max(last, ready.may_leave)
        schedule_close(sim, last, first)
    if filling.is_overdue and filling.part != TO_SEND and filling.count:
        filling.is_overdue = 0
        behind = sim.capture.batches[sim.capture.records[filling.first].batch].behind
        schedule(sim, max(last, time + behind), LINGERED, filling.first)
