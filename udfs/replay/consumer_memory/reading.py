"""How messages are read on connections that share a memory pool, and which connections wait for memory.

A message takes its memory once its size is known, which is in its first bytes (NetworkReceive, KafkaChannel.read and
Selector of Kafka 4.4). It is complete with its last byte. A connection that the pool refuses is muted. When memory has
been released, muted connections race: in the order of their ids, or shuffled while less than a tenth of the pool is
free. At a consumer all of them race at once, at a broker those of a network thread when that polls
(network_threads.py).
"""

from __future__ import annotations

from udfs.columns.sentinels import NONE
from udfs.columns.time_units import NEVER
from udfs.kernels.kernel import kernel
from udfs.replay.consumer_memory.network_threads import shuffle
from udfs.replay.consumer_memory.pool import GRANTED, ILLEGAL, try_allocate
from udfs.replay.consumer_memory.requests import (
    COMPLETE,
    POLL,
    RELEASE,
    REQUEST,
    RESPONSE,
    complete_fetch,
    end_waiting,
    note_reckoned,
    resume_requests,
    start_waiting,
)
from udfs.replay.consumer_memory.state import MessageSim
from udfs.replay.consumer_memory.usage import count_wait, use_bytes
from udfs.replay.shared.event_heap import push
from udfs.replay.shared.lanes import AS_CAPTURED


@kernel
def note_overtaken(sim: MessageSim, lane: int, reader: int) -> None:
    """Count, for each waiting connection, that another one reads before it. A connection that was passed over as often
    as there are connections counts as starved.
    """
    if sim.meter.usage[0].waiting == 0:
        return
    for connection in range(len(sim.connections)):
        state = sim.connection_states[connection]
        if connection != reader and state.waiting_since != NONE:
            state.overtaken += 1
            if state.overtaken >= len(sim.connections) and state.is_starved == 0:
                state.is_starved = 1
                sim.outcomes[lane].starved += 1


@kernel
def take_memory(sim: MessageSim, lane: int, number: int, is_pooled: bool) -> None:
    """Account for a message that is read. number: the message's. is_pooled: it is read into the pool's memory."""
    outcome, used, size = sim.outcomes[lane], sim.meter.usage[0].used, sim.messages[number].size
    outcome.messages += 1
    outcome.bytes += size
    outcome.records += sim.messages[number].records
    if is_pooled and size > 0:
        needed = used + size if sim.settings[lane].is_strict else max(used + 1, size)
        outcome.smallest_pool = max(outcome.smallest_pool, needed)
        sim.message_states[number].pooled = size
        use_bytes(sim.meter, size)
    note_reckoned(sim, lane)


@kernel
def enqueue_message(sim: MessageSim, number: int, time: int) -> None:
    """Put a message into the application's queue (the completed fetches)."""
    state, message = sim.state[0], sim.message_states[number]
    message.records_left, message.next_in_queue = sim.messages[number].records, NONE
    if state.queue_first == NONE:
        state.queue_first = number
    else:
        sim.message_states[state.queue_last].next_in_queue = number
    state.queue_last = number
    if state.is_busy == 0:
        state.is_busy = 1
        push(sim.heap, time, POLL)


@kernel
def is_paced(sim: MessageSim, lane: int, number: int) -> bool:
    """Whether the application's pace, and not the capture, decides when the message's memory is released."""
    return bool(sim.settings[lane].us_per_record != AS_CAPTURED and sim.messages[number].records > 0)


@kernel
def request_after(sim: MessageSim, number: int) -> int:
    """The connection's next message, if its request was sent after this message was complete; NONE otherwise."""
    message = sim.messages[number]
    following = message.next_request
    if following != NONE and sim.messages[following].requested_at >= message.complete_at:
        return int(following)
    return NONE


@kernel
def finish_message(sim: MessageSim, lane: int, number: int, time: int) -> None:
    """Complete a message, and schedule when its memory is released and when the connection's next request goes out."""
    message = sim.messages[number]
    state = sim.connection_states[message.connection]
    state.head, state.is_reading = message.next_request, 0
    complete_fetch(sim, lane, number)
    if sim.connections[message.connection].is_privileged == 0:
        count_wait(sim.meter, sim.message_states[number].waited_us)
    if is_paced(sim, lane, number):
        enqueue_message(sim, number, time)
        return
    if message.held_us != NEVER:
        push(sim.heap, time + message.held_us, RELEASE | number)
    else:
        sim.outcomes[lane].pinned += 1
    if sim.settings[lane].network_threads > 0 and time > message.complete_at and message.response_us != NEVER:
        push(sim.heap, time + message.response_us, RESPONSE | number)
    following = request_after(sim, number)
    if following != NONE:
        push(sim.heap, sim.messages[following].requested_at + time - message.complete_at, REQUEST | following)


@kernel
def read_message(sim: MessageSim, lane: int, number: int, time: int) -> bool:
    """Try to take a message's memory; returns whether that succeeded, or the connection is closed.

    The rest of the message takes as long to arrive as captured.
    """
    message, outcome = sim.messages[number], sim.outcomes[lane]
    result = try_allocate(sim.pool[0], message.size, time) if message.size > 0 else GRANTED
    if result == ILLEGAL:
        outcome.too_large += 1
        outcome.smallest_pool = max(outcome.smallest_pool, message.size)
        sim.connection_states[message.connection].head = NONE
        return True
    if result != GRANTED:
        if sim.connections[message.connection].is_privileged == 0:
            return False
        outcome.unpooled += 1
    take_memory(sim, lane, number, result == GRANTED)
    note_overtaken(sim, lane, message.connection)
    rest_us = message.complete_at - message.size_known_at
    if rest_us > 0:
        sim.connection_states[message.connection].is_reading = 1
        push(sim.heap, time + rest_us, COMPLETE | number)
    else:
        finish_message(sim, lane, number, time)
    return True


@kernel
def may_read_next(sim: MessageSim, connection: int) -> bool:
    """Whether the connection's next message has come and can be read."""
    state = sim.connection_states[connection]
    return bool(state.head != NONE and state.is_reading == 0 and sim.message_states[state.head].is_there == 1)


@kernel
def read_what_is_there(sim: MessageSim, lane: int, connection: int, time: int) -> None:
    """Read the messages that have come on the connection, as far as there is memory."""
    state = sim.connection_states[connection]
    while state.waiting_since == NONE and may_read_next(sim, connection):
        if not read_message(sim, lane, state.head, time):
            start_waiting(sim, lane, connection, time)
    resume_requests(sim, lane, time)


@kernel
def order_muted(sim: MessageSim, thread: int) -> int:
    """Put the muted connections of a network thread, or all of them if it is NONE, into the order in which they are
    tried; returns how many there are.
    """
    count = 0
    for connection in range(len(sim.race)):
        state = sim.connection_states[connection]
        is_muted = state.waiting_since != NONE and state.held_back == NONE
        if is_muted and (thread == NONE or state.network_thread == thread):
            sim.race[count] = connection
            count += 1
    if sim.pool[0].available < sim.pool[0].size // 10:
        shuffle(sim, count)
    return count


@kernel
def poll_muted(sim: MessageSim, lane: int, thread: int, time: int) -> bool:
    """Poll once after memory was released: each muted connection of a thread, or of all threads if it is NONE, reads at
    most one message. Returns whether any did.
    """
    any_read = False
    for place in range(order_muted(sim, thread)):
        connection = sim.race[place]
        number = sim.connection_states[connection].head
        sim.message_states[number].waited_us = time - sim.connection_states[connection].waiting_since
        if read_message(sim, lane, number, time):
            any_read = True
            end_waiting(sim, lane, number, time)
            if may_read_next(sim, connection):
                start_waiting(sim, lane, connection, time)
    return any_read


@kernel
def read_muted(sim: MessageSim, lane: int, thread: int, time: int) -> None:
    """Let the muted connections of a network thread, or all of them if it is NONE, read as long as there is memory."""
    while sim.meter.usage[0].waiting > 0 and sim.pool[0].available > 0:
        if not poll_muted(sim, lane, thread, time):
            break


@kernel
def poll_thread_of(sim: MessageSim, lane: int, number: int, time: int) -> None:
    """Let the network thread that reads a message try its muted connections next."""
    if sim.settings[lane].network_threads > 0:
        read_muted(sim, lane, sim.connection_states[sim.messages[number].connection].network_thread, time)
