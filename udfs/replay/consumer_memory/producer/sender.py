"""A producer's sender in closed loop: what it sends, and how connections serve that (Kafka 4.4).

It looks when a batch is begun, when one has lingered, and at each answer. It sends to a connection that has fewer than
five requests in flight and a batch that is full, has lingered, or any at all while a thread waits for memory
(RecordAccumulator.batchReady): of each partition the first batch (drainBatchesForOneNode). The connection serves
requests one after the other.
"""

from __future__ import annotations

from udfs.kernels.kernel import kernel
from udfs.replay.consumer_memory.producer.buffer_pool import deallocate
from udfs.replay.consumer_memory.producer.state import ANSWER, NONE, RETURN, Loop
from udfs.replay.consumer_memory.usage import use
from udfs.replay.shared.event_heap import push
from udfs.replay.shared.requests_in_flight import MAX_IN_FLIGHT

ABOUT = 16
"""Captured requests that take turns in telling how long one is served."""
MOST_OF_REQUEST = 1 << 20
"""max.request.size by default."""


@kernel
def is_ready(sim: Loop, lane: int, connection: int, time: int) -> bool:
    """Whether the sender would send something to the connection (RecordAccumulator.ready)."""
    if sim.lines.queued[connection] == 0:
        return False
    if sim.pools[lane].first < sim.pools[lane].end:
        return True
    linger = sim.routes.linger[0]
    for stream in range(sim.routes.streams[connection], sim.routes.streams[connection + 1]):
        head = sim.lines.head[stream]
        if head == NONE:
            continue
        is_full = sim.built.sealed[head] == 1 or sim.built.behind[head] != NONE
        is_full = is_full or sim.built.size[head] >= sim.bounds.poolable[lane]
        if is_full or sim.built.begun[head] + linger <= time:
            return True
    return False


@kernel
def serving_time(sim: Loop, connection: int, time: int) -> int:
    """How long the next request is served: those captured on the connection about that time take turns."""
    requests, lines = sim.requests, sim.lines
    first, end = requests.bounds[connection], requests.bounds[connection + 1]
    while lines.at[connection] < end and requests.sent[lines.at[connection]] <= time:
        lines.at[connection] += 1
    start = max(min(lines.at[connection] - ABOUT // 2, end - ABOUT), first)
    among = min(ABOUT, end - first)
    which = start + lines.sent[connection] % among
    lines.sent[connection] += 1
    return requests.service[which]


@kernel
def drain(sim: Loop, connection: int, time: int) -> None:
    """Send one request: the first batch of each partition (RecordAccumulator.drainBatchesForOneNode)."""
    lines, built = sim.lines, sim.built
    first, end = sim.routes.streams[connection], sim.routes.streams[connection + 1]
    chain, last, size = NONE, NONE, 0
    start = lines.turn[connection]
    for step in range(end - first):
        stream = first + (start + step) % (end - first)
        head = lines.head[stream]
        lines.turn[connection] = (start + step) % (end - first)
        if head == NONE:
            continue
        if chain != NONE and size + built.size[head] > MOST_OF_REQUEST:
            break
        lines.head[stream] = built.behind[head]
        built.behind[head], built.sealed[head] = NONE, 1
        lines.queued[connection] -= 1
        size += built.size[head]
        if chain == NONE:
            chain = head
        else:
            built.behind[last] = head
        last = head
    lines.busy[connection] = max(lines.busy[connection], time) + serving_time(sim, connection, time)
    lines.in_flight[connection] += 1
    push(sim.heap, lines.busy[connection], ANSWER | chain)


@kernel
def look(sim: Loop, lane: int, time: int) -> None:
    """The sender looks what there is to be sent."""
    for connection in range(len(sim.lines.queued)):
        while sim.lines.in_flight[connection] < MAX_IN_FLIGHT and is_ready(sim, lane, connection, time):
            drain(sim, connection, time)


@kernel
def give_back(sim: Loop, lane: int, size: int) -> None:
    """Memory comes back to the pool."""
    use(sim.usages[lane], sim.spent, lane, -size)
    deallocate(sim.pools[lane], sim.waiters, size)


@kernel
def on_answer(sim: Loop, lane: int, number: int, time: int) -> None:
    """A request is answered."""
    sim.lines.in_flight[sim.routes.connection[sim.served.stream[sim.built.of[number]]]] -= 1
    while number != NONE:
        after = sim.served.after[sim.built.of[number]]
        if after > 0:
            push(sim.heap, time + after, RETURN | number)
        else:
            give_back(sim, lane, sim.built.held[number])
        number = sim.built.behind[number]
