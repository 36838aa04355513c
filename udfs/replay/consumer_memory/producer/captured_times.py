"""A producer's batches through its BufferPool: what was in use, who would have blocked, who would have given up.

A batch takes max(batch.size, the bytes of its first record) when that is appended, and gives it back with the response
(RecordAccumulator.append and deallocate, Kafka 4.4). A batch that has to wait is that much later. While one waits none
lingers, once the sender looks: all that are not sent yet are sent (RecordAccumulator.batchReady). It looks when a batch
is begun, sent or answered; who begins to wait does not wake it. The captured times of a batch contain what it had to
wait under the captured settings, which are lane 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints, Record, Records, read_only
from udfs.kernels.kernel import kernel
from udfs.replay.consumer_memory.producer.buffer_pool import (
    BUFFERS,
    GRANTED,
    ILLEGAL,
    WAITING,
    Waiters,
    allocate,
    deallocate,
    expire,
    fill_buffers,
)
from udfs.replay.consumer_memory.usage import USAGE, Spent, advance, begin, nothing_spent, use
from udfs.replay.shared.event_heap import INDEX, Heap, kinds, pop, push
from udfs.replay.shared.histogram import BUCKETS, bucket_of

RELEASE, EXPIRE, ALLOCATE, SEND = kinds(4)  # beside the index of a batch
GONE = -1


class Batches(NamedTuple):
    """int64[n] each, in the order of time."""

    time: Ints  # us: the first record is appended
    size: Ints  # bytes on the wire
    held: Ints  # us
    may_grow: Ints  # 1: compressed and of several records, so that it may have come to be larger than what it took
    filled: Ints  # us: by then the capture has its last record
    sending: Ints  # us: how long of `held` it was in a request


class BufferBounds(NamedTuple):
    """Settings by lane, int64[lanes]."""

    total: Ints  # buffer.memory
    poolable: Ints  # batch.size
    block_us: Ints  # max.block.ms
    threads: Ints  # that send, for the closed loop


BLOCKED = np.dtype(
    [
        (name, np.int64)
        for name in (
            "waits",
            "wait_us",
            "longest_us",
            "exhausted",  # BufferExhaustedException: max.block.ms was over
            "larger",  # larger than buffer.memory
            "late",  # in lane 0: got its memory when the capture had its last record
            "late_us",  # in closed loop: how late a record was sent at most
            "end",
        )
    ]
)


class Buffered(NamedTuple):
    """All of a producer's replay; waits: int64[lanes, BUCKETS], batches by how long they waited (us).

    waited: int64[n], how long in lane 0, no longer than they were held.
    """

    batches: Batches
    bounds: BufferBounds
    waiters: Waiters
    served: Ints  # int64[n]: 1 once its grant was noted
    due: Ints  # int64[n]: us, when it is given back; GONE once it was
    lingering: Ints  # int64[n]: batches[:lingers[0]] that were begun since the sender saw somebody wait
    lingers: Ints  # int64[1]
    waited: Ints
    heap: Heap
    spent: Spent
    waits: Ints
    pools: Records
    usages: Records
    runs: Records


@kernel
def note_wait(run: Record, waits: Ints, waited: int) -> None:
    """Count that a batch got its memory after so many us, of a lane's BLOCKED and its waits, int64[BUCKETS]."""
    waits[bucket_of(waited)] += 1
    run.wait_us += waited
    run.longest_us = max(run.longest_us, waited)


@kernel
def grant(sim: Buffered, lane: int, i: int, time: int) -> None:
    """A batch got its memory."""
    run, waited = sim.runs[lane], time - sim.batches.time[i]
    sim.served[i] = 1
    note_wait(run, sim.waits[lane], waited)
    if lane == 0:
        sim.waited[i] = min(waited, sim.batches.held[i])
        run.late += 1 if time > max(sim.batches.filled[i], sim.batches.time[i]) else 0
    use(sim.usages[lane], sim.spent, lane, sim.waiters.size[i])
    sim.due[i] = time + sim.batches.held[i] - sim.waited[i]
    push(sim.heap, sim.due[i], RELEASE | i)
    push(sim.heap, max(time, sim.due[i] - sim.batches.sending[i]), SEND | i)
    sim.lingering[sim.lingers[0]] = i
    sim.lingers[0] += 1
    send_if_exhausted(sim, lane, time)


@kernel
def send_if_exhausted(sim: Buffered, lane: int, time: int) -> None:
    """The sender looks: where somebody waits it sends what lingers."""
    if sim.pools[lane].first == sim.pools[lane].end:
        return
    for place in range(sim.lingers[0]):
        i = sim.lingering[place]
        due = time + sim.batches.sending[i]
        if due < sim.due[i]:
            sim.due[i] = due
            push(sim.heap, due, RELEASE | i)
    sim.lingers[0] = 0


@kernel
def grant_woken(sim: Buffered, lane: int, first: int, time: int) -> None:
    """Note those that were woken: they stood at `first` and behind in the queue."""
    for place in range(first, sim.pools[lane].first):
        i = sim.waiters.order[place]
        sim.usages[lane].waiting -= 1
        grant(sim, lane, i, time)


@kernel
def taken(sim: Buffered, lane: int, i: int) -> int:
    """Bytes of the pool that a batch takes.

    What it grows beyond that is not the pool's (ByteBufferOutputStream.expandBuffer), as where compression is worse
    than was estimated. A lane with a smaller batch.size would have several batches in its place.
    """
    size: int = sim.batches.size[i]
    if sim.batches.may_grow[i] == 1:
        size = min(size, sim.bounds.poolable[0])
    return max(size, sim.bounds.poolable[lane])


@kernel
def on_allocation(sim: Buffered, lane: int, i: int, time: int) -> None:
    """A batch's first record is appended."""
    run, first = sim.runs[lane], sim.pools[lane].first
    state = allocate(sim.pools[lane], sim.waiters, i, taken(sim, lane, i))
    if state == ILLEGAL:
        run.larger += 1
    elif state == GRANTED:
        grant(sim, lane, i, time)
        grant_woken(sim, lane, first, time)
    else:
        run.waits += 1
        sim.usages[lane].waiting += 1
        use(sim.usages[lane], sim.spent, lane, 0)
        push(sim.heap, time + sim.bounds.block_us[lane], EXPIRE | i)


@kernel
def on_expiry(sim: Buffered, lane: int, i: int, time: int) -> None:
    """max.block.ms after a batch began to wait."""
    if sim.served[i] == 0 and sim.waiters.state[i] == WAITING:
        first = sim.pools[lane].first
        sim.usages[lane].waiting -= 1
        sim.runs[lane].exhausted += 1
        expire(sim.pools[lane], sim.waiters, i)
        grant_woken(sim, lane, first, time)


@kernel
def on_return(sim: Buffered, lane: int, i: int, time: int) -> None:
    """A batch is done with."""
    first, sim.due[i] = sim.pools[lane].first, GONE
    use(sim.usages[lane], sim.spent, lane, -sim.waiters.size[i])
    deallocate(sim.pools[lane], sim.waiters, sim.waiters.size[i])
    grant_woken(sim, lane, first, time)
    send_if_exhausted(sim, lane, time)


@kernel
def is_past(sim: Buffered, kind: int, i: int, time: int) -> bool:
    """Whether what was to happen to a batch now has happened before."""
    if kind == EXPIRE:
        return bool(sim.served[i] == 1)
    until_back = sim.batches.sending[i] if kind == SEND else 0
    return kind != ALLOCATE and bool(sim.due[i] - until_back != time)


@kernel
def replay_producer_lane(sim: Buffered, lane: int) -> None:
    """All batches of a lane."""
    bounds = sim.bounds
    fill_buffers(sim.pools[lane], bounds.total[lane], bounds.poolable[lane])
    begin(sim.usages[lane], sim.batches.time[0])
    sim.lingers[0] = 0
    for i in range(len(sim.served)):
        sim.served[i] = 0
        push(sim.heap, sim.batches.time[i], ALLOCATE | i)
    while sim.heap.events[0] > 0:
        time, code = pop(sim.heap)
        kind, i = code & ~INDEX, code & INDEX
        if is_past(sim, kind, i, time):
            continue
        advance(sim.usages[lane], sim.spent, lane, time)
        if kind == RELEASE:
            on_return(sim, lane, i, time)
        elif kind == EXPIRE:
            on_expiry(sim, lane, i, time)
        elif kind == SEND:
            send_if_exhausted(sim, lane, time)
        else:
            on_allocation(sim, lane, i, time)
    sim.runs[lane].end = sim.usages[lane].now


@kernel
def replay_producer_lanes(sim: Buffered) -> None:
    """The batches in every lane."""
    for lane in range(len(sim.bounds.total)):
        replay_producer_lane(sim, lane)


def replay_producer(batches: Batches, bounds: BufferBounds) -> Buffered:
    """Replay a producer's batches in every lane; what it came to is in spent, waits, usages and runs."""
    n, lanes = len(batches.time), len(bounds.total)
    room = 4 * n + 1  # a batch is to be allocated, or sent and given back, now or later; and its wait may end
    sim = Buffered(
        Batches(*map(read_only, batches)),
        BufferBounds(*map(read_only, bounds)),
        Waiters(*(np.zeros(n, np.int64) for _ in Waiters._fields)),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.zeros(1, np.int64),
        np.zeros(n, np.int64),
        Heap(np.zeros(room, np.int64), np.zeros(room, np.int64), np.zeros(1, np.int64)),
        nothing_spent(lanes),
        np.zeros((lanes, BUCKETS), np.int64),
        np.zeros(lanes, BUFFERS),
        np.zeros(lanes, USAGE),
        np.zeros(lanes, BLOCKED),
    )
    replay_producer_lanes(sim)
    return sim
