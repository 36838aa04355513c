"""Requests on connections that share a memory pool: sent, or held back by three variants of KIP-81, a proposal.

The KIP's earlier text and the two that it rejected count what is in flight or complete, and send no more fetches than
there is room for, each of fetch.max.bytes. A connection that waits, for that or for memory, is accounted for here.
"""

from __future__ import annotations

from udfs.kernels.kernel import kernel
from udfs.replay.consumer_memory.settings import COMPLETED_AS_MAX, IN_FLIGHT_ESTIMATE, MEMORY_POOL
from udfs.replay.consumer_memory.state import NONE, Sim
from udfs.replay.consumer_memory.usage import note_waited, wait_more
from udfs.replay.shared.event_heap import kinds, push

COMPLETE, RELEASE, POLL, REQUEST, ARRIVE = kinds(5)
"""What happens to a message, as codes with its number. At the same time the first of these comes first."""


@kernel
def reckoned(sim: Sim, lane: int) -> int:
    """Bytes that the lane's variant takes for used."""
    state, variant = sim.state[0], sim.settings[lane].variant
    if variant == MEMORY_POOL:
        return int(sim.meter.usage[0].used)
    if variant == IN_FLIGHT_ESTIMATE:
        return int(state.completed + state.in_flight)
    return int(state.in_flight + (state.completed_as_max if variant == COMPLETED_AS_MAX else 0))


@kernel
def note_reckoned(sim: Sim, lane: int) -> None:
    """Have the outcome know what the variant takes for used."""
    outcome = sim.outcomes[lane]
    outcome.reckoned_max = max(outcome.reckoned_max, reckoned(sim, lane))


@kernel
def may_send(sim: Sim, lane: int, i: int) -> bool:
    """Whether (buffer.memory - used) / fetch.max.bytes allows one more fetch (KIP-81's earlier text)."""
    settings, max_bytes = sim.settings[lane], sim.messages[i].max_bytes
    if settings.variant == MEMORY_POOL or max_bytes == 0:
        return True
    return bool(settings.size - reckoned(sim, lane) >= max_bytes)


@kernel
def start_waiting(sim: Sim, lane: int, connection: int, time: int) -> None:
    """A connection's message or request has to wait."""
    state = sim.connection_states[connection]
    state.waiting_since, state.overtaken = time, 0
    sim.outcomes[lane].waits += 1
    wait_more(sim.meter, 1)


@kernel
def end_waiting(sim: Sim, lane: int, i: int, time: int) -> None:
    """A message, or its request, need not wait any longer."""
    state = sim.connection_states[sim.messages[i].connection]
    waited_us = time - state.waiting_since
    state.waiting_since = NONE
    sim.message_states[i].waited_us = waited_us
    wait_more(sim.meter, -1)
    note_waited(sim.outcomes[lane], waited_us)


@kernel
def send(sim: Sim, lane: int, i: int, time: int) -> None:
    """A request goes out. Its response takes as long as captured; a request that did not wait for the response follows
    after as long as captured.
    """
    message = sim.messages[i]
    sim.state[0].in_flight += message.max_bytes
    note_reckoned(sim, lane)
    lag = time - message.requested_at
    push(sim.heap, message.size_known_at + lag, ARRIVE | i)
    following = message.next_request
    if following != NONE and sim.messages[following].requested_at < message.complete_at:
        push(sim.heap, sim.messages[following].requested_at + lag, REQUEST | following)


@kernel
def on_request(sim: Sim, lane: int, i: int, time: int) -> None:
    """Send a request, or hold it back."""
    if may_send(sim, lane, i):
        send(sim, lane, i, time)
        return
    connection = sim.messages[i].connection
    sim.connection_states[connection].held_back = i
    start_waiting(sim, lane, connection, time)


@kernel
def resume(sim: Sim, lane: int, time: int) -> None:
    """Send the requests held back that may go out now, in the order of their connections."""
    if sim.meter.usage[0].waiting == 0 or sim.settings[lane].variant == MEMORY_POOL:
        return
    for connection in range(len(sim.connections)):
        i = sim.connection_states[connection].held_back
        if i != NONE and may_send(sim, lane, i):
            sim.connection_states[connection].held_back = NONE
            end_waiting(sim, lane, i, time)
            send(sim, lane, i, time)


@kernel
def complete(sim: Sim, lane: int, i: int) -> None:
    """A fetch is no longer in flight but complete, as the variants that hold requests back count."""
    state, message = sim.state[0], sim.messages[i]
    if message.max_bytes > 0:
        state.in_flight -= message.max_bytes
        state.completed += message.size
        state.completed_as_max += message.max_bytes
    note_reckoned(sim, lane)
