"""Requests on connections that share a memory pool: sent, or held back by three variants of KIP-81, a proposal.

The KIP's earlier text, and the two variants that it rejected, count the bytes that are in flight or complete. They send
a fetch only if there is room for another fetch.max.bytes. This module accounts for each connection that waits to send
its request, or for memory. Kernels take a message by its number among the unit's messages.
"""

from __future__ import annotations

from udfs.columns.sentinels import NONE
from udfs.kernels.kernel import kernel
from udfs.replay.consumer_memory.settings import COMPLETED_AS_MAX, IN_FLIGHT_ESTIMATE, MEMORY_POOL
from udfs.replay.consumer_memory.state import MessageSim
from udfs.replay.consumer_memory.usage import note_waited, wait_more
from udfs.replay.shared.event_heap import kinds, push

COMPLETE, RELEASE, POLL, REQUEST, ARRIVE, RESPONSE, SELECT = kinds(7)
"""Events, for codes with the number of their message; SELECT is of a network thread, and has the thread's number. Of
events at the same time, the first one in this list comes first."""


@kernel
def reckoned_bytes(sim: MessageSim, lane: int) -> int:
    """The bytes that the lane's variant counts as used."""
    state, variant = sim.state[0], sim.settings[lane].variant
    if variant == MEMORY_POOL:
        return int(sim.meter.usage[0].used)
    if variant == IN_FLIGHT_ESTIMATE:
        return int(state.completed + state.in_flight)
    return int(state.in_flight + (state.completed_as_max if variant == COMPLETED_AS_MAX else 0))


@kernel
def note_reckoned(sim: MessageSim, lane: int) -> None:
    """Note in the outcome the bytes that the variant counts as used."""
    outcome = sim.outcomes[lane]
    outcome.reckoned_max = max(outcome.reckoned_max, reckoned_bytes(sim, lane))


@kernel
def may_send(sim: MessageSim, lane: int, number: int) -> bool:
    """Whether (buffer.memory - used) / fetch.max.bytes allows one more fetch (KIP-81's earlier text)."""
    settings, max_bytes = sim.settings[lane], sim.messages[number].max_bytes
    if settings.variant == MEMORY_POOL or max_bytes == 0:
        return True
    return bool(settings.size - reckoned_bytes(sim, lane) >= max_bytes)


@kernel
def start_waiting(sim: MessageSim, lane: int, connection: int, time: int) -> None:
    """Let a connection wait, for its message or its request."""
    state = sim.connection_states[connection]
    state.waiting_since, state.overtaken = time, 0
    sim.outcomes[lane].waits += 1
    wait_more(sim.meter, 1)


@kernel
def end_waiting(sim: MessageSim, lane: int, number: int, time: int) -> None:
    """End the wait of a message's connection."""
    state = sim.connection_states[sim.messages[number].connection]
    waited_us = time - state.waiting_since
    state.waiting_since = NONE
    sim.message_states[number].waited_us = waited_us
    wait_more(sim.meter, -1)
    note_waited(sim.outcomes[lane], waited_us)


@kernel
def send_request(sim: MessageSim, lane: int, number: int, time: int) -> None:
    """Send a request. Its response takes as long as captured. If the next request did not wait for the response, it
    follows after the captured time.
    """
    message = sim.messages[number]
    sim.state[0].in_flight += message.max_bytes
    note_reckoned(sim, lane)
    lag = time - message.requested_at
    push(sim.heap, message.size_known_at + lag, ARRIVE | number)
    following = message.next_request
    if following != NONE and sim.messages[following].requested_at < message.complete_at:
        push(sim.heap, sim.messages[following].requested_at + lag, REQUEST | following)


@kernel
def send_or_hold_back(sim: MessageSim, lane: int, number: int, time: int) -> None:
    """Send a request, or hold it back."""
    if may_send(sim, lane, number):
        send_request(sim, lane, number, time)
        return
    connection = sim.messages[number].connection
    sim.connection_states[connection].held_back = number
    start_waiting(sim, lane, connection, time)


@kernel
def resume_requests(sim: MessageSim, lane: int, time: int) -> None:
    """Send the requests that were held back and may now be sent, in the order of their connections."""
    if sim.meter.usage[0].waiting == 0 or sim.settings[lane].variant == MEMORY_POOL:
        return
    for connection in range(len(sim.connections)):
        number = sim.connection_states[connection].held_back
        if number != NONE and may_send(sim, lane, number):
            sim.connection_states[connection].held_back = NONE
            end_waiting(sim, lane, number, time)
            send_request(sim, lane, number, time)


@kernel
def complete_fetch(sim: MessageSim, lane: int, number: int) -> None:
    """Count a fetch as complete, and no longer in flight, for the variants that hold requests back."""
    state, message = sim.state[0], sim.messages[number]
    if message.max_bytes > 0:
        state.in_flight -= message.max_bytes
        state.completed += message.size
        state.completed_as_max += message.max_bytes
    note_reckoned(sim, lane)
