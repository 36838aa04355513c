"""Connections that share a memory pool: which of them read, which wait, and how a wait delays what comes later.

The pool is a broker's (KIP-72), or a consumer's in the prototype of KIP-81, which is a proposal. This module handles
the events of a lane; reading.py says how messages take memory, and which connections wait for it. Three variants of the
proposal hold back requests instead. If a connection has to wait, all that comes later on it is late by as much.
"""

from __future__ import annotations

from udfs.columns.arrays import Records
from udfs.columns.sentinels import NONE
from udfs.kernels.kernel import kernel
from udfs.replay.consumer_memory.network_threads import deal_connections, schedule_polls
from udfs.replay.consumer_memory.pool import end_depletion, fill_pool, forget_depletion, release_memory
from udfs.replay.consumer_memory.reading import (
    finish_message,
    is_paced,
    poll_thread_of,
    read_muted,
    read_what_is_there,
    request_after,
)
from udfs.replay.consumer_memory.requests import (
    ARRIVE,
    COMPLETE,
    POLL,
    RELEASE,
    REQUEST,
    RESPONSE,
    SELECT,
    note_reckoned,
    resume_requests,
    send_or_hold_back,
)
from udfs.replay.consumer_memory.settings import MEMORY_POOL, UNBOUNDED
from udfs.replay.consumer_memory.state import MessageSim, Traces, UnitOutcomes, simulations_of_units
from udfs.replay.consumer_memory.usage import (
    advance_meter,
    begin_metering,
    begin_window,
    draw_curves,
    enters_window,
    is_in_time,
    sum_up,
    use_bytes,
)
from udfs.replay.shared.event_heap import INDEX, pop, push
from udfs.replay.shared.window import WHOLE, Window


@kernel
def on_arrival(sim: MessageSim, lane: int, number: int, time: int) -> None:
    """Note that a message's first bytes came, so that its size is known; then read as far as there is memory."""
    sim.message_states[number].is_there = 1
    read_what_is_there(sim, lane, sim.messages[number].connection, time)
    poll_thread_of(sim, lane, number, time)


@kernel
def on_completion(sim: MessageSim, lane: int, number: int, time: int) -> None:
    """Complete a message, and read what came after it on the connection."""
    finish_message(sim, lane, number, time)
    read_what_is_there(sim, lane, sim.messages[number].connection, time)
    poll_thread_of(sim, lane, number, time)


@kernel
def on_select(sim: MessageSim, lane: int, thread: int, time: int) -> None:
    """Let a network thread poll, after memory was released."""
    sim.is_scheduled[thread] = 0
    read_muted(sim, lane, thread, time)


@kernel
def on_message_release(sim: MessageSim, lane: int, number: int, time: int) -> None:
    """Release a message's memory: muted connections race for it, and requests that were held back may be sent."""
    message, state, pooled = sim.messages[number], sim.state[0], sim.message_states[number].pooled
    if message.max_bytes > 0:
        state.completed -= message.size
        state.completed_as_max -= message.max_bytes
    if pooled > 0:
        release_memory(sim.pool[0], pooled, time)
        use_bytes(sim.meter, -pooled)
    following = request_after(sim, number)
    if is_paced(sim, lane, number) and following != NONE:
        push(sim.heap, time, REQUEST | following)
    if sim.settings[lane].network_threads == 0:
        read_muted(sim, lane, NONE, time)
    elif sim.meter.usage[0].waiting > 0:
        if message.held_us == 0:  # its own network thread releases it, once it has parsed the request
            poll_thread_of(sim, lane, number, time)
        schedule_polls(sim, time)
    resume_requests(sim, lane, time)


@kernel
def on_poll(sim: MessageSim, lane: int, time: int) -> None:
    """Let the application take max.poll.records, and release emptied messages when that poll ends; then it works."""
    state, settings, taken = sim.state[0], sim.settings[lane], 0
    while state.queue_first != NONE and taken < settings.max_poll_records:
        number = state.queue_first
        message = sim.message_states[number]
        records = min(message.records_left, settings.max_poll_records - taken)
        message.records_left -= records
        taken += records
        if message.records_left == 0:
            state.queue_first = message.next_in_queue
            push(sim.heap, time, RELEASE | number)
    state.is_busy = 1 if taken > 0 else 0
    if taken > 0:
        push(sim.heap, time + round(taken * settings.us_per_record), POLL)


@kernel
def start_lane(sim: MessageSim, lane: int) -> None:
    """Begin a lane: schedule the first request of every connection."""
    settings, state = sim.settings[lane], sim.state[0]
    for number in range(len(sim.messages)):
        message = sim.message_states[number]
        message.is_there, message.pooled, message.waited_us = 0, 0, 0
    state.in_flight, state.completed, state.completed_as_max, state.is_busy = 0, 0, 0, 0
    state.queue_first, state.random = NONE, settings.seed
    if settings.variant == MEMORY_POOL:
        fill_pool(sim.pool[0], settings.size, settings.max_allocation, settings.is_strict)
    else:
        fill_pool(sim.pool[0], UNBOUNDED, UNBOUNDED, 0)
    for connection in range(len(sim.connections)):
        first, channel = sim.connections[connection].first_message, sim.connection_states[connection]
        channel.head, channel.waiting_since, channel.held_back = first, NONE, NONE
        channel.is_starved, channel.is_reading = 0, 0
        push(sim.heap, sim.messages[first].requested_at, REQUEST | first)
    if settings.network_threads > 0:
        deal_connections(sim, settings.network_threads)
    begin_metering(sim.meter, sim.heap.time[0])


@kernel
def count_from_here(sim: MessageSim, lane: int) -> None:
    """Let the lane count from the window's begin on. Memory in use and waiting connections stay as they are."""
    begin_window(sim.meter)
    sim.outcomes[lane] = sim.no_outcome[0]
    forget_depletion(sim.pool[0], sim.meter.usage[0].time)
    note_reckoned(sim, lane)


@kernel
def is_stuck(sim: MessageSim, lane: int) -> bool:
    """Whether no event to come frees memory, or frees what a variant counts as used memory."""
    is_pooled = sim.settings[lane].variant == MEMORY_POOL
    for place in range(sim.heap.events[0]):
        kind = sim.heap.code[place] & ~INDEX
        if kind not in (REQUEST, RESPONSE) and not (is_pooled and kind == ARRIVE):
            return False
    return True


@kernel
def end_window(sim: MessageSim, lane: int) -> None:
    """Stop at the end of the window, or after the last event. If that was before the window, nothing is in it."""
    if enters_window(sim.meter, sim.meter.usage[0].window_begins_at):
        count_from_here(sim, lane)
    outcome, usage = sim.outcomes[lane], sim.meter.usage[0]
    outcome.stuck = usage.waiting if is_stuck(sim, lane) else 0
    if sim.heap.events[0] > 0:
        advance_meter(sim.meter, max(usage.time, usage.window_ends_at))
        sim.heap.events[0] = 0
    end_depletion(sim.pool[0], usage.time)
    outcome.depleted_us = sim.pool[0].depleted_us


@kernel
def replay_lane(sim: MessageSim, lane: int) -> None:
    """Replay all events of a lane, up to the window's end."""
    start_lane(sim, lane)
    while sim.heap.events[0] > 0 and is_in_time(sim.meter, sim.heap.time[0]):
        due, code = pop(sim.heap)
        time = max(due, sim.meter.usage[0].time)  # the capture's clocks may go back
        if enters_window(sim.meter, time):
            count_from_here(sim, lane)
        advance_meter(sim.meter, time)
        kind, number = code & ~INDEX, code & INDEX
        if kind == COMPLETE:
            on_completion(sim, lane, number, time)
        elif kind == RELEASE:
            on_message_release(sim, lane, number, time)
        elif kind == POLL:
            on_poll(sim, lane, time)
        elif kind == RESPONSE:
            poll_thread_of(sim, lane, number, time)
        elif kind == SELECT:
            on_select(sim, lane, number, time)
        elif kind == REQUEST:
            send_or_hold_back(sim, lane, number, time)
        else:
            on_arrival(sim, lane, number, time)


@kernel
def replay_lanes(sim: MessageSim, unit: int) -> None:
    """Replay a unit's messages in every lane. unit: its number in the curves."""
    for lane in range(len(sim.settings)):
        replay_lane(sim, lane)
        end_window(sim, lane)
        sum_up(sim.meter, sim.outcomes[lane])
        draw_curves(sim.meter, sim.curves, unit, lane)


def replay_units(traces: Traces, settings: Records, window: Window = WHOLE) -> UnitOutcomes:
    """Replay each unit's messages in every lane. settings: POOL_SETTINGS[units, lanes]."""
    replayed, units = simulations_of_units(traces, settings, window)
    for unit, sim in units:
        replay_lanes(sim, unit)
    return replayed
