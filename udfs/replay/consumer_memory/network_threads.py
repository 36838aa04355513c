"""When a broker's network threads try connections again that the memory pool refused.

Each connection belongs to one of num.network.threads threads; the acceptor deals connections to them in turn. A thread
that had to refuse memory tries again when it polls next (Selector.poll of Kafka 4.4). Released memory does not wake the
thread. What wakes it is a request on one of its other connections, a response to one of them, or the end of 300 ms
(SocketServer.Processor). So a connection may wait for memory long after the pool has some.

A capture does not show which connections share a thread, so that is drawn.
"""

from __future__ import annotations

import numpy as np

from udfs.columns.sentinels import NONE
from udfs.columns.time_units import US_PER_MS
from udfs.kernels.kernel import kernel
from udfs.replay.consumer_memory.requests import SELECT
from udfs.replay.consumer_memory.state import MessageSim
from udfs.replay.shared.event_heap import push

POLL_TIMEOUT_US = 300 * US_PER_MS
"""The longest that a network thread sleeps (SocketServer.Processor.poll)."""


@kernel
def draw(sim: MessageSim, below: int) -> int:
    """The lane's next random number, from 0 to `below` - 1 (a linear congruential generator, Knuth's MMIX)."""
    state = sim.state[0]
    state.random = state.random * 6364136223846793005 + 1442695040888963407
    return int((state.random >> 33) & 0x7FFFFFFF) % below


@kernel
def shuffle(sim: MessageSim, count: int) -> None:
    """Bring the first `count` connections of `race` into a drawn order."""
    race = sim.race
    for place in range(count - 1, 0, -1):
        other = draw(sim, place + 1)
        race[place], race[other] = race[other], race[place]


@kernel
def deal_connections(sim: MessageSim, threads: int) -> None:
    """Deal the connections to network threads, to each thread as many as to the others."""
    for connection in range(len(sim.race)):
        sim.race[connection] = connection
    shuffle(sim, len(sim.race))
    for place in range(len(sim.race)):
        sim.connection_states[sim.race[place]].network_thread = place % threads
    sim.is_scheduled[:threads] = 0


@kernel
def wakes(sim: MessageSim, place: int, thread: int) -> bool:
    """Whether something happens at this place of the wakes that wakes the thread. Nothing comes to the thread on a
    connection that waits for memory, since that is muted.
    """
    state = sim.connection_states[sim.wakes.connection[place]]
    return bool(state.network_thread == thread and state.waiting_since == NONE)


@kernel
def next_poll(sim: MessageSim, thread: int, time: int) -> int:
    """When a thread polls next after `time` (us). Without anything that wakes it, it polls every 300 ms."""
    behind = int(np.searchsorted(sim.wakes.time, time, side="right"))
    last = behind - 1
    while last >= 0 and not wakes(sim, last, thread):
        last -= 1
    slept = (time - sim.wakes.time[last]) % POLL_TIMEOUT_US if last >= 0 else 0
    until = time - slept + POLL_TIMEOUT_US
    while behind < len(sim.wakes.time) and sim.wakes.time[behind] < until:
        if wakes(sim, behind, thread):
            return int(sim.wakes.time[behind])
        behind += 1
    return int(until)


@kernel
def schedule_polls(sim: MessageSim, time: int) -> None:
    """Let each thread with a connection that waits for memory try it again when the thread polls next."""
    for connection in range(len(sim.connections)):
        state = sim.connection_states[connection]
        if state.waiting_since != NONE and sim.is_scheduled[state.network_thread] == 0:
            sim.is_scheduled[state.network_thread] = 1
            push(sim.heap, next_poll(sim, state.network_thread, time), SELECT | state.network_thread)
