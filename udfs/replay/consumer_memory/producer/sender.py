"""A producer's sender in closed loop: what it sends, and how connections serve its requests (Kafka 4.4).

The sender runs when a batch is begun, when a batch has lingered, and at each answer. It sends to a connection that has
fewer than five requests in flight and a batch that is due: a batch that is full or has lingered, or any batch while a
thread waits for memory (RecordAccumulator.batchReady). A request has the first batch of each partition
(drainBatchesForOneNode). The connection serves requests one after the other.
"""

from __future__ import annotations

from udfs.columns.sentinels import NONE
from udfs.kernels.kernel import kernel
from udfs.replay.consumer_memory.producer.buffer_pool import deallocate, is_awaited
from udfs.replay.consumer_memory.producer.state import LoopSim
from udfs.replay.consumer_memory.usage import use_bytes
from udfs.replay.shared.event_heap import kinds, push
from udfs.replay.shared.requests_in_flight import MAX_IN_FLIGHT

ANSWER, RETURN, EXPIRE, LINGER, DUE = kinds(5)
"""Events, as codes with the number of a batch, of a piece (EXPIRE) or of a connection (LINGER). Of events at the same
time, the first one in this list comes first."""
REQUESTS_IN_TURN = 16
"""How many captured requests of about the same time have their service times used in turn."""
MAX_REQUEST_SIZE = 1 << 20
"""The default of max.request.size."""


@kernel
def is_batch_due(sim: LoopSim, lane: int, batch: int, time: int) -> bool:
    """Whether a stream's first batch is due even if no thread waits: it is full, or has lingered."""
    built = sim.built[batch]
    is_full = built.is_sealed == 1 or built.next != NONE or built.size >= sim.settings[lane].batch_size
    return bool(is_full or built.begun_at + sim.linger_us[0] <= time)


@kernel
def is_connection_ready(sim: LoopSim, lane: int, connection: int, time: int) -> bool:
    """Whether the sender would send something to the connection (RecordAccumulator.ready)."""
    line = sim.connections[connection]
    if line.queued == 0:
        return False
    if is_awaited(sim.pool[0]):
        return True
    for stream in range(line.first_stream, line.end_stream):
        head = sim.streams[stream].head
        if head != NONE and is_batch_due(sim, lane, head, time):
            return True
    return False


@kernel
def service_us(sim: LoopSim, connection: int, time: int) -> int:
    """How long the next request is served (us). The captured service times of about that time are used in turn."""
    line = sim.connections[connection]
    while line.next_request < line.end_request and sim.requests[line.next_request].sent_at <= time:
        line.next_request += 1
    first = max(min(line.next_request - REQUESTS_IN_TURN // 2, line.end_request - REQUESTS_IN_TURN), line.first_request)
    turns = min(REQUESTS_IN_TURN, line.end_request - line.first_request)
    request = first + line.sent % turns
    line.sent += 1
    return int(sim.requests[request].service_us)


@kernel
def take_head(sim: LoopSim, stream: int) -> int:
    """Take a stream's first batch from its queue, to be sent; returns the batch."""
    queue, batch = sim.streams[stream], sim.streams[stream].head
    queue.head = sim.built[batch].next
    sim.built[batch].next, sim.built[batch].is_sealed = NONE, 1
    sim.connections[queue.connection].queued -= 1
    return int(batch)


@kernel
def drain_batches(sim: LoopSim, connection: int, time: int) -> None:
    """Send one request: the first batch of each partition (RecordAccumulator.drainBatchesForOneNode)."""
    line = sim.connections[connection]
    first, last, size, start = NONE, NONE, 0, line.turn
    streams = line.end_stream - line.first_stream
    for step in range(streams):
        line.turn = (start + step) % streams
        stream = line.first_stream + line.turn
        head = sim.streams[stream].head
        if head == NONE:
            continue
        if first != NONE and size + sim.built[head].size > MAX_REQUEST_SIZE:
            break
        batch = take_head(sim, stream)
        size += sim.built[batch].size
        if first == NONE:
            first = batch
        else:
            sim.built[last].next = batch
        last = batch
    line.busy_until = max(line.busy_until, time) + service_us(sim, connection, time)
    line.in_flight += 1
    push(sim.heap, line.busy_until, ANSWER | first)


@kernel
def run_sender(sim: LoopSim, lane: int, time: int) -> None:
    """Let the sender send everything that is ready, on every connection."""
    for connection in range(len(sim.connections)):
        while sim.connections[connection].in_flight < MAX_IN_FLIGHT and is_connection_ready(
            sim, lane, connection, time
        ):
            drain_batches(sim, connection, time)


@kernel
def give_back_memory(sim: LoopSim, size: int) -> None:
    """Release memory."""
    use_bytes(sim.meter, -size)
    deallocate(sim.pool[0], sim.waiters, size)


@kernel
def on_answer(sim: LoopSim, first: int, time: int) -> None:
    """Take the answer to a request, so that its batches release their memory. first: its first batch."""
    stream = sim.batches[sim.built[first].captured_batch].stream
    sim.connections[sim.streams[stream].connection].in_flight -= 1
    batch = first
    while batch != NONE:
        built = sim.built[batch]
        held_after_us = sim.batches[built.captured_batch].held_after_us
        if held_after_us > 0:
            push(sim.heap, time + held_after_us, RETURN | batch)
        else:
            give_back_memory(sim, built.held)
        batch = built.next
