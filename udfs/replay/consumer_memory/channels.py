"""Connections that share a memory pool: who may read, who has to wait, and what that does to everything behind.

A message is read once the pool gives its size, which its first bytes tell (NetworkReceive, KafkaChannel.read and
Selector of Kafka 4.4; KIP-72 for brokers and, in the prototype of KIP-81, a proposal, for consumers): it takes its
memory then, and is there when its last byte has come. A refused connection is muted until memory is given back; then
all muted ones race: in the order of their ids, or shuffled while less than a tenth of the pool is free.
Three variants of the proposal hold requests back instead. A connection that had to wait keeps the distances in time
that the capture shows: everything behind comes later by as much.
"""

from __future__ import annotations

from udfs.kernels.kernel import kernel
from udfs.replay.consumer_memory.pool import (
    GRANTED,
    ILLEGAL,
    UNBOUNDED,
    end_dry_spell,
    fill_pool,
    release,
    try_allocate,
)
from udfs.replay.consumer_memory.requests import (
    POLL,
    READ,
    RELEASE,
    REQUEST,
    complete,
    end_waiting,
    on_request,
    reckoned,
    resume,
    start_waiting,
)
from udfs.replay.consumer_memory.state import MEMORY_POOL, NONE, NOT_GIVEN_BACK, Bounds, Sim, Trace, new_sim
from udfs.replay.consumer_memory.usage import advance, begin, use
from udfs.replay.shared.event_heap import INDEX, pop, push
from udfs.replay.shared.histogram import bucket_of
from udfs.replay.shared.lanes import AS_CAPTURED


@kernel
def note_overtaken(sim: Sim, lane: int, reader: int) -> None:
    """Connections that wait see another served; one passed over as often as there are connections is starved."""
    if sim.usages[lane].waiting == 0:
        return
    work = sim.work
    for connection in range(len(work.head)):
        if connection != reader and work.waiting_since[connection] != NONE:
            work.overtaken[connection] += 1
            if work.overtaken[connection] >= len(work.head) and work.starved[connection] == 0:
                work.starved[connection] = 1
                sim.runs[lane].starved += 1


@kernel
def take(sim: Sim, lane: int, i: int, granted: bool) -> None:
    """Account for a message that is read, out of the pool or beside it."""
    run, usage, size = sim.runs[lane], sim.usages[lane], sim.trace.size[i]
    run.read += 1
    run.bytes += size
    run.records += sim.trace.records[i]
    if granted and size > 0:
        needed = usage.used + size if sim.bounds.strict[lane] else max(usage.used + 1, size)
        run.smallest = max(run.smallest, needed)
        sim.work.pooled[i] = size
        use(usage, sim.spent, lane, size)
    run.reckoned = max(run.reckoned, reckoned(sim, lane))


@kernel
def enqueue(sim: Sim, lane: int, i: int, time: int) -> None:
    """Put a message into the application's queue (the completed fetches)."""
    run, work = sim.runs[lane], sim.work
    work.left[i], work.queued_behind[i] = sim.trace.records[i], NONE
    if run.queue_first == NONE:
        run.queue_first = i
    else:
        work.queued_behind[run.queue_last] = i
    run.queue_last = i
    if run.busy == 0:
        run.busy = 1
        push(sim.heap, time, POLL)


@kernel
def is_paced(sim: Sim, lane: int, i: int) -> bool:
    """Whether the application's pace decides when the message is given back, not the capture."""
    return bool(sim.bounds.record_us[lane] != AS_CAPTURED and sim.trace.records[i] > 0)


@kernel
def go_on(sim: Sim, lane: int, i: int, time: int) -> None:
    """A message is there: say when its memory comes back, and when the connection's next request goes out."""
    trace = sim.trace
    connection, behind = trace.connection[i], trace.behind[i]
    sim.work.head[connection], sim.work.reading[connection] = behind, 0
    complete(sim, lane, i)
    if sim.trace.privileged[connection] == 0:
        sim.waits[lane, bucket_of(sim.work.waited[i])] += 1
    if is_paced(sim, lane, i):
        enqueue(sim, lane, i, time)
        return
    if trace.held[i] != NOT_GIVEN_BACK:
        push(sim.heap, time + trace.held[i], RELEASE | i)
    else:
        sim.runs[lane].pinned += 1
    if behind != NONE and trace.asked[behind] >= trace.came[i]:
        push(sim.heap, trace.asked[behind] + time - trace.came[i], REQUEST | behind)


@kernel
def read(sim: Sim, lane: int, i: int, time: int) -> bool:
    """Try to take a message's memory; whether it could, or the connection is closed.

    What is left of the message takes as long to come as it took.
    """
    connection = sim.trace.connection[i]
    outcome = try_allocate(sim.pools[lane], sim.trace.size[i], time) if sim.trace.size[i] > 0 else GRANTED
    if outcome == ILLEGAL:
        sim.runs[lane].larger += 1
        sim.runs[lane].smallest = max(sim.runs[lane].smallest, sim.trace.size[i])
        sim.work.head[connection] = NONE
        return True
    if outcome != GRANTED:
        if sim.trace.privileged[connection] == 0:
            return False
        sim.runs[lane].unpooled += 1
    take(sim, lane, i, outcome == GRANTED)
    note_overtaken(sim, lane, connection)
    left = sim.trace.came[i] - sim.trace.started[i]
    if left > 0:
        sim.work.reading[connection] = 1
        push(sim.heap, time + left, READ | i)
    else:
        go_on(sim, lane, i, time)
    return True


@kernel
def has_come(sim: Sim, connection: int) -> bool:
    """Whether the connection's next message waits to be read."""
    head = sim.work.head[connection]
    return bool(head != NONE and sim.work.here[head] == 1 and sim.work.reading[connection] == 0)


@kernel
def read_on(sim: Sim, lane: int, connection: int, time: int) -> None:
    """Read what has come on the connection, as far as there is memory."""
    while sim.work.waiting_since[connection] == NONE and has_come(sim, connection):
        if not read(sim, lane, sim.work.head[connection], time):
            start_waiting(sim, lane, connection, time)
    resume(sim, lane, time)


@kernel
def on_arrival(sim: Sim, lane: int, i: int, time: int) -> None:
    """The size of a message has come."""
    sim.work.here[i] = 1
    read_on(sim, lane, sim.trace.connection[i], time)


@kernel
def on_last_byte(sim: Sim, lane: int, i: int, time: int) -> None:
    """All of a message is there: what came behind it on the connection is read next."""
    go_on(sim, lane, i, time)
    read_on(sim, lane, sim.trace.connection[i], time)


@kernel
def draw(sim: Sim, lane: int, below: int) -> int:
    """A number from 0 to below - 1, the next of the lane's own (a linear congruential generator, Knuth's MMIX)."""
    run = sim.runs[lane]
    run.random = run.random * 6364136223846793005 + 1442695040888963407
    return int((run.random >> 33) & 0x7FFFFFFF) % below


@kernel
def line_up(sim: Sim, lane: int) -> int:
    """The muted connections in the order in which they are tried; how many there are."""
    racing, count = sim.work.racing, 0
    for connection in range(len(racing)):
        if sim.work.waiting_since[connection] != NONE and sim.work.parked[connection] == NONE:
            racing[count] = connection
            count += 1
    if sim.pools[lane].available < sim.pools[lane].total // 10:
        for at in range(count - 1, 0, -1):
            other = draw(sim, lane, at + 1)
            racing[at], racing[other] = racing[other], racing[at]
    return count


@kernel
def race(sim: Sim, lane: int, time: int) -> bool:
    """One poll after recovery: each muted connection reads at most one message. Whether any did."""
    any_read = False
    for place in range(line_up(sim, lane)):
        connection = sim.work.racing[place]
        i = sim.work.head[connection]
        sim.work.waited[i] = time - sim.work.waiting_since[connection]
        if read(sim, lane, i, time):
            any_read = True
            end_waiting(sim, lane, connection, i, time)
            if has_come(sim, connection):
                start_waiting(sim, lane, connection, time)
    return any_read


@kernel
def on_release(sim: Sim, lane: int, i: int, time: int) -> None:
    """A message's memory comes back: muted connections race for it, requests held back may go."""
    trace, run, pooled = sim.trace, sim.runs[lane], sim.work.pooled[i]
    if trace.max_bytes[i] > 0:
        run.completed -= trace.size[i]
        run.completed_max -= trace.max_bytes[i]
    if pooled > 0:
        release(sim.pools[lane], pooled, time)
        use(sim.usages[lane], sim.spent, lane, -pooled)
    behind = trace.behind[i]
    if is_paced(sim, lane, i) and behind != NONE and trace.asked[behind] >= trace.came[i]:
        push(sim.heap, time, REQUEST | behind)
    while sim.usages[lane].waiting > 0 and sim.pools[lane].available > 0:
        if not race(sim, lane, time):
            break
    resume(sim, lane, time)


@kernel
def on_poll(sim: Sim, lane: int, time: int) -> None:
    """The application takes max.poll.records; what it emptied is given back at the end of that poll, then it works."""
    run, work, taken = sim.runs[lane], sim.work, 0
    while run.queue_first != NONE and taken < sim.bounds.most_records[lane]:
        i = run.queue_first
        some = min(work.left[i], sim.bounds.most_records[lane] - taken)
        work.left[i] -= some
        taken += some
        if work.left[i] == 0:
            run.queue_first = work.queued_behind[i]
            push(sim.heap, time, RELEASE | i)
    run.busy = 1 if taken > 0 else 0
    if taken > 0:
        push(sim.heap, time + taken * sim.bounds.record_us[lane], POLL)


@kernel
def start_lane(sim: Sim, lane: int) -> None:
    """Forget the lane before; every connection's first request is due."""
    work, bounds, run = sim.work, sim.bounds, sim.runs[lane]
    for i in range(len(work.here)):
        work.here[i], work.pooled[i], work.waited[i] = 0, 0, 0
    run.queue_first, run.random = NONE, bounds.seed[lane]
    if bounds.variant[lane] == MEMORY_POOL:
        fill_pool(sim.pools[lane], bounds.size[lane], bounds.max_single[lane], bounds.strict[lane])
    else:
        fill_pool(sim.pools[lane], UNBOUNDED, UNBOUNDED, 0)
    for connection in range(len(work.head)):
        first = sim.trace.first[connection]
        work.head[connection], work.starved[connection] = first, 0
        work.waiting_since[connection], work.parked[connection], work.reading[connection] = NONE, NONE, 0
        push(sim.heap, sim.trace.asked[first], REQUEST | first)
    begin(sim.usages[lane], sim.heap.time[0])


@kernel
def replay_lane(sim: Sim, lane: int) -> None:
    """All events of a lane."""
    start_lane(sim, lane)
    while sim.heap.events[0] > 0:
        due, code = pop(sim.heap)
        time = max(due, sim.usages[lane].now)  # however the capture's clocks went
        advance(sim.usages[lane], sim.spent, lane, time)
        kind, i = code & ~INDEX, code & INDEX
        if kind == READ:
            on_last_byte(sim, lane, i, time)
        elif kind == RELEASE:
            on_release(sim, lane, i, time)
        elif kind == POLL:
            on_poll(sim, lane, time)
        elif kind == REQUEST:
            on_request(sim, lane, i, time)
        else:
            on_arrival(sim, lane, i, time)
    sim.runs[lane].stuck = sim.usages[lane].waiting
    sim.runs[lane].end = sim.usages[lane].now
    end_dry_spell(sim.pools[lane], sim.usages[lane].now)


@kernel
def replay_lanes(sim: Sim) -> None:
    """The unit's exchanges in every lane."""
    for lane in range(len(sim.bounds.size)):
        replay_lane(sim, lane)


def replay_unit(trace: Trace, bounds: Bounds) -> Sim:
    """Replay the exchanges of one unit in every lane; what it came to is in spent, waits, pools, usages and runs."""
    sim = new_sim(trace, bounds)
    replay_lanes(sim)
    return sim
