"""A producer as a closed loop: threads that send, its BufferPool, its sender, and connections that serve in turn.

A thread that waits for memory sends nothing meanwhile (BufferPool.allocate blocks); when it goes on it sends at once
what has become due. A batch takes what is sent to its partition until the sender drains it, so that batches become
smaller where the sender drains sooner, and larger where it does so later (RecordAccumulator.append, Kafka 4.4).
"""

from __future__ import annotations

from udfs.kernels.kernel import kernel
from udfs.replay.consumer_memory.producer.buffer_pool import GRANTED, ILLEGAL, WAITING, allocate, expire, fill_buffers
from udfs.replay.consumer_memory.producer.captured_times import BufferBounds, note_wait
from udfs.replay.consumer_memory.producer.requests import Sends
from udfs.replay.consumer_memory.producer.sender import give_back, look, on_answer
from udfs.replay.consumer_memory.producer.state import ANSWER, DUE, EXPIRE, LINGER, NONE, RETURN, Loop, loop_of
from udfs.replay.consumer_memory.usage import advance, begin, use
from udfs.replay.shared.event_heap import INDEX, pop, push
from udfs.wire.record_batches import RECORD_BATCH_OVERHEAD

TOLERANCE_US = 100_000


@kernel
def build(sim: Loop, lane: int, piece: int, time: int) -> None:
    """Append to a new batch."""
    threads, built = sim.threads[0], sim.built
    number = threads.built
    threads.built += 1
    of = sim.pieces.batch[piece]
    stream = sim.served.stream[of]
    connection = sim.routes.connection[stream]
    built.begun[number], built.of[number], built.behind[number], built.sealed[number] = time, of, NONE, 0
    built.held[number] = sim.waiters.size[piece]
    built.size[number] = RECORD_BATCH_OVERHEAD + sim.pieces.size[piece]
    if sim.lines.head[stream] == NONE:
        sim.lines.head[stream] = number
    else:
        built.behind[sim.lines.tail[stream]] = number
    sim.lines.tail[stream] = number
    sim.lines.queued[connection] += 1
    push(sim.heap, time + sim.routes.linger[0], LINGER | connection)
    threads.awake = 1


@kernel
def fits(sim: Loop, lane: int, piece: int) -> bool:
    """Append to the batch that the partition fills, if there is one and it takes the piece."""
    stream = sim.served.stream[sim.pieces.batch[piece]]
    if sim.lines.head[stream] == NONE:
        return False
    number = sim.lines.tail[stream]
    if sim.built.sealed[number] == 1:
        return False
    size = sim.built.size[number] + sim.pieces.size[piece]
    is_as_captured = sim.bounds.poolable[lane] == sim.bounds.poolable[0]
    is_together = is_as_captured and sim.built.of[number] == sim.pieces.batch[piece]
    if size > sim.bounds.poolable[lane] and not is_together:
        sim.built.sealed[number] = 1
        return False
    sim.built.size[number] = size
    return True


@kernel
def note_append(sim: Loop, lane: int, piece: int, time: int) -> None:
    """A piece is in a batch."""
    run, of = sim.runs[lane], sim.pieces.batch[piece]
    run.late_us = max(run.late_us, time - sim.pieces.time[piece])
    if sim.pieces.is_first[piece] == 1 and time > max(sim.served.filled[of], sim.pieces.time[piece]) + TOLERANCE_US:
        run.late += 1


@kernel
def note_grant(sim: Loop, lane: int, piece: int, waited: int) -> None:
    """A thread got memory."""
    note_wait(sim.runs[lane], sim.waits[lane], waited)
    use(sim.usages[lane], sim.spent, lane, sim.waiters.size[piece])


@kernel
def send(sim: Loop, lane: int, time: int) -> None:
    """A thread has the next piece."""
    threads = sim.threads[0]
    piece = threads.next
    threads.next += 1
    if fits(sim, lane, piece):
        note_append(sim, lane, piece, time)
        return
    of = sim.pieces.batch[piece]
    size = max(sim.served.alone[of], sim.bounds.poolable[lane])
    got = allocate(sim.pools[lane], sim.waiters, piece, size)
    if got == ILLEGAL:
        sim.runs[lane].larger += 1
    elif got == GRANTED:
        note_grant(sim, lane, piece, 0)
        build(sim, lane, piece, time)
        note_append(sim, lane, piece, time)
    else:
        sim.runs[lane].waits += 1
        threads.free -= 1
        sim.since[piece] = time
        sim.usages[lane].waiting += 1
        use(sim.usages[lane], sim.spent, lane, 0)
        push(sim.heap, time + sim.bounds.block_us[lane], EXPIRE | piece)


@kernel
def go_on(sim: Loop, lane: int, time: int) -> None:
    """The thread that was woken first goes on; somebody else may have begun a batch for it meanwhile."""
    threads = sim.threads[0]
    piece = sim.waiters.order[threads.noted]
    threads.noted += 1
    threads.free += 1
    sim.usages[lane].waiting -= 1
    note_grant(sim, lane, piece, time - sim.since[piece])
    if fits(sim, lane, piece):
        give_back(sim, lane, sim.waiters.size[piece])
    else:
        build(sim, lane, piece, time)
    note_append(sim, lane, piece, time)


@kernel
def on_expiry(sim: Loop, lane: int, piece: int) -> None:
    """max.block.ms after a thread began to wait."""
    if sim.waiters.state[piece] == WAITING:
        expire(sim.pools[lane], sim.waiters, piece)
        sim.usages[lane].waiting -= 1
        sim.runs[lane].exhausted += 1
        sim.threads[0].free += 1


@kernel
def settle(sim: Loop, lane: int, time: int) -> None:
    """All that happens now: who was woken goes on, the sender looks, and threads that are free take what is due."""
    threads, pieces = sim.threads[0], sim.pieces
    while True:
        if threads.noted < sim.pools[lane].first:
            go_on(sim, lane, time)
        elif threads.awake == 1:
            threads.awake = 0
            look(sim, lane, time)
        elif threads.free > 0 and threads.next < len(pieces.time) and pieces.time[threads.next] <= time:
            send(sim, lane, time)
        else:
            break
    if threads.next < len(pieces.time) and threads.told < threads.next:
        threads.told = threads.next
        push(sim.heap, max(time, pieces.time[threads.next]), DUE)


@kernel
def start_loop(sim: Loop, lane: int) -> None:
    """Nothing was sent yet."""
    threads = sim.threads[0]
    fill_buffers(sim.pools[lane], sim.bounds.total[lane], sim.bounds.poolable[lane])
    begin(sim.usages[lane], sim.pieces.time[0])
    threads.next, threads.noted, threads.awake, threads.built, threads.told = 0, 0, 0, 0, NONE
    threads.free = sim.bounds.threads[lane]
    for stream in range(len(sim.lines.head)):
        sim.lines.head[stream] = NONE
    for connection in range(len(sim.lines.queued)):
        sim.lines.queued[connection], sim.lines.in_flight[connection] = 0, 0
        sim.lines.busy[connection], sim.lines.turn[connection] = 0, 0
        sim.lines.at[connection], sim.lines.sent[connection] = sim.requests.bounds[connection], 0
    push(sim.heap, sim.pieces.time[0], DUE)


@kernel
def loop_lane(sim: Loop, lane: int) -> None:
    """All pieces in a lane."""
    start_loop(sim, lane)
    while sim.heap.events[0] > 0:
        time, code = pop(sim.heap)
        kind, index = code & ~INDEX, code & INDEX
        if kind == EXPIRE and sim.waiters.state[index] != WAITING:
            continue
        if kind == LINGER and sim.lines.queued[index] == 0:
            continue
        advance(sim.usages[lane], sim.spent, lane, time)
        if kind == ANSWER:
            on_answer(sim, lane, index, time)
        elif kind == RETURN:
            give_back(sim, lane, sim.built.held[index])
        elif kind == EXPIRE:
            on_expiry(sim, lane, index)
        if kind != DUE:
            sim.threads[0].awake = 1
        settle(sim, lane, time)
    sim.runs[lane].end = sim.usages[lane].now


@kernel
def loop_lanes(sim: Loop) -> None:
    """Every lane."""
    for lane in range(len(sim.bounds.total)):
        loop_lane(sim, lane)


def replay_sends(sends: Sends, bounds: BufferBounds) -> Loop:
    """Replay what a producer's threads sent in every lane."""
    sim = loop_of(sends, bounds)
    loop_lanes(sim)
    return sim
