"""Batches through a BufferPool by captured times: how much is in use, and which batches would block or give up.

A batch takes max(batch.size, the bytes of its first record) when its first record is appended, and releases it with
the response (RecordAccumulator.append and deallocate, Kafka 4.4). A batch that has to wait is later by its wait. While
a batch waits, no batch lingers: when the sender runs, it sends all batches that are not yet sent
(RecordAccumulator.batchReady). The sender runs when a batch is begun, sent or answered; a thread that begins to wait
does not wake it. The captured times of a batch contain its wait under the captured settings, which are lane 0.
"""

from __future__ import annotations

from udfs.kernels.kernel import kernel
from udfs.replay.consumer_memory.producer.buffer_pool import (
    GRANTED,
    ILLEGAL,
    allocate,
    deallocate,
    fill_buffers,
    give_up_waiting,
    is_awaited,
    signal_if_any_left,
)
from udfs.replay.consumer_memory.producer.state import BatchSim
from udfs.replay.consumer_memory.producer.window import count_from_here, end_window
from udfs.replay.consumer_memory.usage import (
    advance_meter,
    begin_metering,
    count_wait,
    enters_window,
    is_in_time,
    sum_up,
    use_bytes,
    wait_more,
)
from udfs.replay.shared.event_heap import INDEX, kinds, pop, push
from udfs.replay.shared.lanes import CAPTURED

RELEASE, EXPIRE, ALLOCATE, SEND = kinds(4)
"""Events of a batch, as codes with its number. Of events at the same time, the first one in this list comes first."""
RELEASED = -1


@kernel
def grant_memory(sim: BatchSim, lane: int, number: int, time: int) -> None:
    """Give a batch its memory, and schedule when it is sent and when it releases the memory. number: the batch's."""
    batch, state = sim.batches[number], sim.states[number]
    waited_us = time - batch.appended_at
    state.is_granted = 1
    count_wait(sim.meter, waited_us)
    sim.outcomes[lane].longest_us = max(sim.outcomes[lane].longest_us, waited_us)
    if lane == CAPTURED:
        state.waited_us = min(waited_us, batch.held_us)
        sim.outcomes[lane].late += 1 if time > max(batch.filled_at, batch.appended_at) else 0
    use_bytes(sim.meter, sim.waiters.allocations[number].size)
    state.release_at = time + batch.held_us - state.waited_us
    push(sim.heap, state.release_at, RELEASE | number)
    push(sim.heap, max(time, state.release_at - batch.sending_us), SEND | number)
    sim.lingering[sim.lingers[0]] = number
    sim.lingers[0] += 1
    send_if_exhausted(sim, time)


@kernel
def send_if_exhausted(sim: BatchSim, time: int) -> None:
    """Run the sender: if a batch waits for memory, it sends all batches that linger."""
    if not is_awaited(sim.pool[0]):
        return
    for place in range(sim.lingers[0]):
        number = sim.lingering[place]
        release_at = time + sim.batches[number].sending_us
        if release_at < sim.states[number].release_at:
            sim.states[number].release_at = release_at
            push(sim.heap, release_at, RELEASE | number)
    sim.lingers[0] = 0


@kernel
def grant_woken(sim: BatchSim, lane: int, first: int, time: int) -> None:
    """Give memory to the woken batches: those from index `first` of the queue on."""
    for place in range(first, sim.pool[0].first):
        wait_more(sim.meter, -1)
        grant_memory(sim, lane, sim.waiters.order[place], time)


@kernel
def memory_of_batch(sim: BatchSim, lane: int, number: int) -> int:
    """Bytes of the pool that a batch takes.

    If it grows beyond that, as when it compresses less well than estimated, the additional memory is not the pool's
    (ByteBufferOutputStream.expandBuffer). A lane with a smaller batch.size would have several batches instead.
    """
    batch = sim.batches[number]
    size = min(batch.size, sim.settings[CAPTURED].batch_size) if batch.may_grow == 1 else batch.size
    return max(size, sim.settings[lane].batch_size)


@kernel
def on_allocation(sim: BatchSim, lane: int, number: int, time: int) -> None:
    """Append a batch's first record, for which the batch takes memory or waits."""
    outcome, first = sim.outcomes[lane], sim.pool[0].first
    state = allocate(sim.pool[0], sim.waiters, number, memory_of_batch(sim, lane, number))
    if state == ILLEGAL:
        outcome.too_large += 1
    elif state == GRANTED:
        grant_memory(sim, lane, number, time)
        grant_woken(sim, lane, first, time)
    else:
        outcome.waits += 1
        wait_more(sim.meter, 1)
        push(sim.heap, time + sim.settings[lane].max_block_us, EXPIRE | number)


@kernel
def on_batch_expiry(sim: BatchSim, lane: int, number: int, time: int) -> None:
    """Let a batch give up after it has waited for max.block.ms."""
    wait_more(sim.meter, -1)
    sim.outcomes[lane].exhausted += 1
    give_up_waiting(sim.pool[0], sim.waiters, number)
    first = sim.pool[0].first
    signal_if_any_left(sim.pool[0], sim.waiters)
    grant_woken(sim, lane, first, time)


@kernel
def on_batch_release(sim: BatchSim, lane: int, number: int, time: int) -> None:
    """Let a batch release its memory."""
    first, size = sim.pool[0].first, sim.waiters.allocations[number].size
    sim.states[number].release_at = RELEASED
    use_bytes(sim.meter, -size)
    deallocate(sim.pool[0], sim.waiters, size)
    grant_woken(sim, lane, first, time)
    send_if_exhausted(sim, time)


@kernel
def is_batch_event_past(sim: BatchSim, kind: int, number: int, time: int) -> bool:
    """Whether a batch's event is out of date, because it happened before."""
    state = sim.states[number]
    if kind == EXPIRE:
        return bool(state.is_granted == 1)
    sending_us = sim.batches[number].sending_us if kind == SEND else 0
    return bool(kind != ALLOCATE and state.release_at - sending_us != time)


@kernel
def wait_until(sim: BatchSim, lane: int, time: int) -> None:
    """Go on to `time`, and count the time that threads wait until then. Batches wait by themselves here, but no more
    threads can wait at a time than send.
    """
    usage = sim.meter.usage[0]
    sim.outcomes[lane].wait_us += min(usage.waiting, sim.settings[lane].threads) * max(time - usage.time, 0)
    advance_meter(sim.meter, time)


@kernel
def schedule_append(sim: BatchSim, number: int) -> None:
    """Schedule the append of a batch's first record. One batch is scheduled at a time, so that the heap stays small."""
    if number < len(sim.batches):
        push(sim.heap, sim.batches[number].appended_at, ALLOCATE | number)


@kernel
def replay_lane(sim: BatchSim, lane: int) -> None:
    """Replay all batches of a lane, up to the window's end."""
    settings = sim.settings[lane]
    fill_buffers(sim.pool[0], settings.buffer_memory, settings.batch_size)
    begin_metering(sim.meter, sim.batches[0].appended_at)
    sim.lingers[0] = 0
    for number in range(len(sim.batches)):
        sim.states[number].is_granted = 0
    schedule_append(sim, 0)
    while sim.heap.events[0] > 0 and is_in_time(sim.meter, sim.heap.time[0]):
        time, code = pop(sim.heap)
        kind, number = code & ~INDEX, code & INDEX
        if kind == ALLOCATE:
            schedule_append(sim, number + 1)
        if is_batch_event_past(sim, kind, number, time):
            continue
        if enters_window(sim.meter, time):
            count_from_here(sim.meter, sim.outcomes, sim.no_outcome, lane)
        wait_until(sim, lane, time)
        if kind == RELEASE:
            on_batch_release(sim, lane, number, time)
        elif kind == EXPIRE:
            on_batch_expiry(sim, lane, number, time)
        elif kind == SEND:
            send_if_exhausted(sim, time)
        else:
            on_allocation(sim, lane, number, time)
    end_window(sim.meter, sim.outcomes, sim.no_outcome, lane, sim.heap)
    sim.outcomes[lane].granted = sim.meter.usage[0].waits_counted
    sum_up(sim.meter, sim.outcomes[lane])


@kernel
def replay_lanes(sim: BatchSim) -> None:
    """Replay the batches in every lane."""
    for lane in range(len(sim.settings)):
        replay_lane(sim, lane)
