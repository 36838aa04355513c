"""A producer as a closed loop: threads that send, its BufferPool, its sender, and connections that serve in turn.

A thread that waits for memory sends nothing meanwhile (BufferPool.allocate blocks). When it goes on, it sends at once
all records that have become due. A batch takes the records of its partition until the sender drains it. So batches are
smaller if the sender drains earlier, and larger if it drains later (RecordAccumulator.append, Kafka 4.4).
"""

from __future__ import annotations

from udfs.columns.arrays import Ints
from udfs.columns.sentinels import NONE
from udfs.kernels.kernel import kernel
from udfs.replay.consumer_memory.producer.buffer_pool import (
    GRANTED,
    ILLEGAL,
    WAITING,
    allocate,
    fill_buffers,
    give_up_waiting,
    signal_if_any_left,
)
from udfs.replay.consumer_memory.producer.sender import (
    ANSWER,
    DUE,
    EXPIRE,
    LINGER,
    RETURN,
    give_back_memory,
    on_answer,
    run_sender,
)
from udfs.replay.consumer_memory.producer.state import LoopSim
from udfs.replay.consumer_memory.producer.window import count_from_here, end_window
from udfs.replay.consumer_memory.usage import (
    advance_meter,
    begin_metering,
    count_wait,
    enters_window,
    is_in_time,
    note_waited,
    sum_up,
    use_bytes,
    wait_more,
)
from udfs.replay.shared.event_heap import INDEX, pop, push
from udfs.replay.shared.lanes import CAPTURED
from udfs.wire.record_batches import RECORD_BATCH_OVERHEAD

TOLERANCE_US = 100_000
"""How long after its last captured record a batch may get its memory without being late."""


@kernel
def append_to_new_batch(sim: LoopSim, piece: int, time: int) -> None:
    """Append a piece to a new batch."""
    threads, batch = sim.threads[0], sim.threads[0].built
    threads.built += 1
    captured_batch = sim.pieces[piece].batch
    built, stream = sim.built[batch], sim.streams[sim.batches[captured_batch].stream]
    built.begun_at, built.captured_batch, built.next, built.is_sealed = time, captured_batch, NONE, 0
    built.held = sim.waiters.allocations[piece].size
    built.size = RECORD_BATCH_OVERHEAD + sim.pieces[piece].size
    if stream.head == NONE:
        stream.head = batch
    else:
        sim.built[stream.tail].next = batch
    stream.tail = batch
    sim.connections[stream.connection].queued += 1
    push(sim.heap, time + sim.linger_us[0], LINGER | stream.connection)
    threads.is_awake = 1


@kernel
def append_if_room(sim: LoopSim, lane: int, piece: int) -> bool:
    """Append a piece to its partition's current batch, if there is one with room. Returns whether there is."""
    captured_batch = sim.pieces[piece].batch
    stream = sim.streams[sim.batches[captured_batch].stream]
    if stream.head == NONE:
        return False
    built, batch_size = sim.built[stream.tail], sim.settings[lane].batch_size
    if built.is_sealed == 1:
        return False
    size = built.size + sim.pieces[piece].size
    is_together = built.captured_batch == captured_batch and batch_size == sim.settings[CAPTURED].batch_size
    if size > batch_size and not is_together:
        built.is_sealed = 1
        return False
    built.size = size
    return True


@kernel
def note_append(sim: LoopSim, lane: int, piece: int, time: int) -> None:
    """Note that a piece was appended to a batch."""
    outcome, appended = sim.outcomes[lane], sim.pieces[piece]
    outcome.late_us = max(outcome.late_us, time - appended.due_at)
    if appended.is_first == 1:
        filled_at = sim.batches[appended.batch].filled_at
        outcome.late += 1 if time > max(filled_at, appended.due_at) + TOLERANCE_US else 0


@kernel
def note_memory_granted(sim: LoopSim, lane: int, piece: int, waited_us: int) -> None:
    """Note that a thread got memory."""
    count_wait(sim.meter, waited_us)
    note_waited(sim.outcomes[lane], waited_us)
    use_bytes(sim.meter, sim.waiters.allocations[piece].size)


@kernel
def append_next_piece(sim: LoopSim, lane: int, time: int) -> None:
    """Let a free thread append the next piece, or wait for memory for it."""
    threads, piece = sim.threads[0], sim.threads[0].next_piece
    threads.next_piece += 1
    if append_if_room(sim, lane, piece):
        note_append(sim, lane, piece, time)
        return
    settings, alone = sim.settings[lane], sim.batches[sim.pieces[piece].batch].first_record_size
    state = allocate(sim.pool[0], sim.waiters, piece, max(alone, settings.batch_size))
    if state == ILLEGAL:
        sim.outcomes[lane].too_large += 1
    elif state == GRANTED:
        note_memory_granted(sim, lane, piece, 0)
        append_to_new_batch(sim, piece, time)
        note_append(sim, lane, piece, time)
    else:
        sim.outcomes[lane].waits += 1
        threads.free -= 1
        sim.waiting_since[piece] = time
        wait_more(sim.meter, 1)
        push(sim.heap, time + settings.max_block_us, EXPIRE | piece)


@kernel
def wake_thread(sim: LoopSim, lane: int, time: int) -> None:
    """Let the thread go on that was woken first. By now another thread may have begun a batch that takes its piece."""
    threads = sim.threads[0]
    piece = sim.waiters.order[threads.gone_on]
    threads.gone_on += 1
    threads.free += 1
    wait_more(sim.meter, -1)
    note_memory_granted(sim, lane, piece, time - sim.waiting_since[piece])
    if append_if_room(sim, lane, piece):
        give_back_memory(sim, sim.waiters.allocations[piece].size)
    else:
        append_to_new_batch(sim, piece, time)
    note_append(sim, lane, piece, time)


@kernel
def on_thread_expiry(sim: LoopSim, lane: int, piece: int) -> None:
    """Let a thread give up after it waited for max.block.ms. Threads that were woken before have already gone on."""
    give_up_waiting(sim.pool[0], sim.waiters, piece)
    sim.threads[0].gone_on = sim.pool[0].first
    signal_if_any_left(sim.pool[0], sim.waiters)
    wait_more(sim.meter, -1)
    sim.outcomes[lane].exhausted += 1
    sim.outcomes[lane].wait_us += sim.settings[lane].max_block_us
    sim.threads[0].free += 1


@kernel
def is_piece_due(sim: LoopSim, time: int) -> bool:
    """Whether a thread is free for the next piece, and it is due."""
    threads = sim.threads[0]
    if threads.free == 0 or threads.next_piece == len(sim.pieces):
        return False
    return bool(sim.pieces[threads.next_piece].due_at <= time)


@kernel
def do_what_is_due(sim: LoopSim, lane: int, time: int) -> None:
    """Do all that happens at `time`: woken threads go on, the sender runs, and free threads take due pieces."""
    threads = sim.threads[0]
    while True:
        if threads.gone_on < sim.pool[0].first:
            wake_thread(sim, lane, time)
        elif threads.is_awake == 1:
            threads.is_awake = 0
            run_sender(sim, lane, time)
        elif is_piece_due(sim, time):
            append_next_piece(sim, lane, time)
        else:
            break
    if threads.next_piece < len(sim.pieces) and threads.due_piece < threads.next_piece:
        threads.due_piece = threads.next_piece
        push(sim.heap, max(time, sim.pieces[threads.next_piece].due_at), DUE)


@kernel
def start_lane(sim: LoopSim, lane: int) -> None:
    """Set up a lane in which nothing was sent yet."""
    threads, settings, first_at = sim.threads[0], sim.settings[lane], sim.pieces[0].due_at
    fill_buffers(sim.pool[0], settings.buffer_memory, settings.batch_size)
    begin_metering(sim.meter, first_at)
    threads.next_piece, threads.due_piece, threads.gone_on, threads.is_awake, threads.built = 0, NONE, 0, 0, 0
    threads.free = settings.threads
    for stream in range(len(sim.streams)):
        sim.streams[stream].head = NONE
    for connection in range(len(sim.connections)):
        line = sim.connections[connection]
        line.queued, line.in_flight, line.busy_until, line.turn, line.sent = 0, 0, 0, 0, 0
        line.next_request = line.first_request
    push(sim.heap, first_at, DUE)


@kernel
def is_thread_event_past(sim: LoopSim, kind: int, index: int) -> bool:
    """Whether an event is out of date: the thread that would give up no longer waits, or no batch lingers any more."""
    if kind == EXPIRE:
        return bool(sim.waiters.allocations[index].state != WAITING)
    return bool(kind == LINGER and sim.connections[index].queued == 0)


@kernel
def loop_lane(sim: LoopSim, lane: int) -> None:
    """Replay all pieces in a lane, up to the window's end."""
    start_lane(sim, lane)
    while sim.heap.events[0] > 0 and is_in_time(sim.meter, sim.heap.time[0]):
        time, code = pop(sim.heap)
        kind, index = code & ~INDEX, code & INDEX
        if is_thread_event_past(sim, kind, index):
            continue
        if enters_window(sim.meter, time):
            count_from_here(sim.meter, sim.outcomes, sim.no_outcome, lane)
        advance_meter(sim.meter, time)
        if kind == ANSWER:
            on_answer(sim, index, time)
        elif kind == RETURN:
            give_back_memory(sim, sim.built[index].held)
        elif kind == EXPIRE:
            on_thread_expiry(sim, lane, index)
        if kind != DUE:
            sim.threads[0].is_awake = 1
        do_what_is_due(sim, lane, time)
    end_window(sim.meter, sim.outcomes, sim.no_outcome, lane, sim.heap)
    sim.outcomes[lane].granted = sim.meter.usage[0].waits_counted
    sum_up(sim.meter, sim.outcomes[lane])


@kernel
def loop_lanes(sim: LoopSim, lanes: Ints) -> None:
    """Replay these lanes. lanes: int64[n], their numbers."""
    for place in range(len(lanes)):
        loop_lane(sim, lanes[place])
