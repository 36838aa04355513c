"""Requests on connections that share a memory pool: sent, or held back by three variants of KIP-81, a proposal.

The KIP's earlier text and the two that it rejected count what is in flight or completed and send no more fetches than
there is room for, each of fetch.max.bytes. A connection that waits, for that or for memory, is accounted for here.
"""

from __future__ import annotations

from udfs.kernels.kernel import kernel
from udfs.replay.consumer_memory.state import COMPLETED_AS_MAX, IN_FLIGHT_ESTIMATE, MEMORY_POOL, NONE, Sim
from udfs.replay.consumer_memory.usage import use
from udfs.replay.shared.event_heap import kinds, push

READ, RELEASE, POLL, REQUEST, ARRIVE = kinds(5)  # beside the index of an exchange


@kernel
def reckoned(sim: Sim, lane: int) -> int:
    """Bytes that the lane's variant takes for used."""
    run, variant = sim.runs[lane], sim.bounds.variant[lane]
    if variant == MEMORY_POOL:
        return int(sim.usages[lane].used)
    if variant == IN_FLIGHT_ESTIMATE:
        return int(run.completed + run.in_flight)
    return int(run.in_flight + (run.completed_max if variant == COMPLETED_AS_MAX else 0))


@kernel
def may_send(sim: Sim, lane: int, i: int) -> bool:
    """Whether (buffer.memory - used) / fetch.max.bytes allows one more fetch (KIP-81's earlier text)."""
    if sim.bounds.variant[lane] == MEMORY_POOL or sim.trace.max_bytes[i] == 0:
        return True
    return bool(sim.bounds.size[lane] - reckoned(sim, lane) >= sim.trace.max_bytes[i])


@kernel
def start_waiting(sim: Sim, lane: int, connection: int, time: int) -> None:
    """A connection's message or request has to wait."""
    sim.work.waiting_since[connection], sim.work.overtaken[connection] = time, 0
    sim.usages[lane].waiting += 1
    sim.runs[lane].waits += 1
    use(sim.usages[lane], sim.spent, lane, 0)


@kernel
def end_waiting(sim: Sim, lane: int, connection: int, i: int, time: int) -> None:
    """It need not wait any longer."""
    waited = time - sim.work.waiting_since[connection]
    sim.work.waiting_since[connection] = NONE
    sim.work.waited[i] = waited
    sim.usages[lane].waiting -= 1
    sim.runs[lane].wait_us += waited
    sim.runs[lane].longest_us = max(sim.runs[lane].longest_us, waited)


@kernel
def send(sim: Sim, lane: int, i: int, time: int) -> None:
    """A request goes out; its answer takes as long as it took, and so does a request sent without waiting for that."""
    trace, run = sim.trace, sim.runs[lane]
    run.in_flight += trace.max_bytes[i]
    run.reckoned = max(run.reckoned, reckoned(sim, lane))
    lag = time - trace.asked[i]
    push(sim.heap, trace.started[i] + lag, ARRIVE | i)
    behind = trace.behind[i]
    if behind != NONE and trace.asked[behind] < trace.came[i]:
        push(sim.heap, trace.asked[behind] + lag, REQUEST | behind)


@kernel
def on_request(sim: Sim, lane: int, i: int, time: int) -> None:
    """Send a request, or hold it back."""
    if may_send(sim, lane, i):
        send(sim, lane, i, time)
        return
    sim.work.parked[sim.trace.connection[i]] = i
    start_waiting(sim, lane, sim.trace.connection[i], time)


@kernel
def resume(sim: Sim, lane: int, time: int) -> None:
    """Send the requests held back that may go now, in the order of their connections."""
    if sim.usages[lane].waiting == 0 or sim.bounds.variant[lane] == MEMORY_POOL:
        return
    for connection in range(len(sim.work.parked)):
        i = sim.work.parked[connection]
        if i != NONE and may_send(sim, lane, i):
            sim.work.parked[connection] = NONE
            end_waiting(sim, lane, connection, i, time)
            send(sim, lane, i, time)


@kernel
def complete(sim: Sim, lane: int, i: int) -> None:
    """A fetch is no longer in flight but completed, as the variants that hold requests back count."""
    run, most = sim.runs[lane], sim.trace.max_bytes[i]
    if most > 0:
        run.in_flight -= most
        run.completed += sim.trace.size[i]
        run.completed_max += most
    run.reckoned = max(run.reckoned, reckoned(sim, lane))
