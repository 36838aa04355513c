"""The client of the closed loop: what it asks for, in which order, and when.

The rules are, of a Java consumer, those of AbstractFetch.prepareFetchRequests and FetchCollector of kafka-clients 4.3
(java-3.9: of 3.9), of a follower those of kafka.server.AbstractFetcherThread, Kafka 4.3. In a session the broker reads
in an order of its own (org.apache.kafka.server.FetchContext.IncrementalFetchContext, Kafka 4.3).
"""

from __future__ import annotations

from udfs.columns.time_units import NEVER
from udfs.kernels.kernel import kernel
from udfs.replay.fetch_max_bytes.closed_loop.order import begin_with, move_to_end, remove_unwanted, shuffle
from udfs.replay.fetch_max_bytes.closed_loop.pace import time_of
from udfs.replay.fetch_max_bytes.closed_loop.state import (
    GO_ON,
    LEAVE,
    NO_BACKLOG,
    NONE,
    REOPEN,
    STOP,
    THROTTLED,
    Simulation,
    position_behind,
)
from udfs.replay.fetch_max_bytes.settings import (
    CLIENT_ORDER,
    FIRST_EMPTY_ORDER,
    JAVA_3,
    LIBRDKAFKA,
    SHUFFLED_ORDER,
)


@kernel
def change(sim: Simulation, lane: int, node: int) -> None:
    """Have the client begin to want, give up and seek what it did in the capture up to now."""
    unit, state = sim.unit, sim.state.nodes[node]
    first, end = unit.nodes[node].first_change, unit.nodes[node].end_change
    while first + state.changes < end and unit.changes[first + state.changes].time <= state.now:
        at = first + state.changes
        p, to = unit.changes[at].partition, unit.changes[at].to
        if p == REOPEN:
            state.in_session, state.opens_session = 0, 1
        elif p == STOP:
            state.stopped_until = to
        elif p == THROTTLED:
            # Where the quota is known, that alone says when the client waits.
            state.stopped_until = to if sim.rules[node, lane].quota_is_known == 0 else state.stopped_until
        else:
            if lane == 0:
                sim.outcome.captured.positions[at] = sim.state.partitions[p].position
            turn_to(sim, node, p, destination(sim, p, to))
        state.changes += 1


@kernel
def destination(sim: Simulation, p: int, to: int) -> int:
    """Where a partition's change leads to: if it comes from another broker, to where it had been read there.

    What is left of its backlog there is its backlog here.
    """
    partition, state = sim.unit.partitions[p], sim.state.partitions[p]
    if to >= 0 and partition.previous != NONE and state.is_assigned == 0 and state.requested_at == NEVER:
        there = sim.state.partitions[partition.previous].position + partition.batch_shift
        to = min(max(there, partition.first_batch), partition.end_batch)
        state.catch_up_us = NEVER if to < partition.backlog_end else NO_BACKLOG
    return to


@kernel
def turn_to(sim: Simulation, node: int, p: int, to: int) -> None:
    """One partition's change: what is buffered or under way of it is dropped, as SubscriptionState and Fetcher do."""
    state, client = sim.state.nodes[node], sim.state.orders.client[sim.unit.nodes[node].first_partition :]
    partition = sim.state.partitions[p]
    if to == LEAVE:
        partition.is_assigned = 0
        state.known = remove_unwanted(client, state.known, sim.state.partitions["is_assigned"])
    elif partition.is_assigned == 0:
        partition.is_assigned = 1
        client[state.known] = p
        state.known += 1
    if to != GO_ON:
        partition.has_moved, partition.taken_at = 1, 0
        partition.position = partition.position if to == LEAVE else to


@kernel
def want(sim: Simulation, lane: int, node: int) -> int:
    """Note which partitions the client asks for now; returns how many."""
    now, count = sim.state.nodes[node].now, 0
    skips_buffered = sim.rules[node, lane].profile == JAVA_3
    for p in range(sim.unit.nodes[node].first_partition, sim.unit.nodes[node].end_partition):
        partition = sim.state.partitions[p]
        is_free = not skips_buffered or partition.taken_at <= now
        partition.is_wanted = 1 if partition.is_assigned == 1 and is_free else 0
        partition.has_moved = 0
        if partition.is_wanted == 1 and partition.requested_at == NEVER:
            partition.requested_at = now
        count += partition.is_wanted
    return count


@kernel
def request_in_session(sim: Simulation, node: int) -> None:
    """The session's order (FetchSession): what is new comes last; what the client does not want is forgotten."""
    state, first, marks = sim.state.nodes[node], sim.unit.nodes[node].first_partition, sim.state.marks
    client, session, requested = (
        sim.state.orders.client[first:], sim.state.orders.session[first:], sim.state.orders.requested[first:]
    )  # fmt: skip
    state.in_session = remove_unwanted(session, state.in_session, sim.state.partitions["is_wanted"])
    for i in range(state.in_session):
        marks[session[i]] = 1
    for i in range(state.known):
        p = client[i]
        if sim.state.partitions[p].is_wanted == 1 and marks[p] == 0:
            session[state.in_session] = p
            state.in_session += 1
    for i in range(state.in_session):
        marks[session[i]] = 0
        requested[i] = session[i]
    state.requested = state.in_session


@kernel
def request_without_session(sim: Simulation, lane: int, node: int) -> None:
    """The client's order, as the request names the partitions."""
    rules, state, first = sim.rules[node, lane], sim.state.nodes[node], sim.unit.nodes[node].first_partition
    client, requested = sim.state.orders.client[first:], sim.state.orders.requested[first:]
    turns = rules.order == CLIENT_ORDER and rules.profile == LIBRDKAFKA
    state.requested = 0
    for i in range(state.known):
        p = client[(state.turn + i) % state.known if turns else i]
        if sim.state.partitions[p].is_wanted == 1:
            requested[state.requested] = p
            state.requested += 1
    state.turn = (state.turn + 1) % state.known if turns else 0
    if rules.order == SHUFFLED_ORDER:
        shuffle(requested, state.requested, sim.state.random)


@kernel
def request(sim: Simulation, lane: int, node: int) -> None:
    """Put the wanted partitions into the order in which the broker reads them."""
    if sim.rules[node, lane].order == CLIENT_ORDER and sim.rules[node, lane].in_session == 1:
        request_in_session(sim, node)
    else:
        request_without_session(sim, lane, node)


@kernel
def work_on(sim: Simulation, lane: int, node: int, done: int, records: int) -> int:
    """How long the application works on so many records after those that it has done (us)."""
    rules, of = sim.rules[node, lane], sim.unit.nodes[node]
    if rules.us_per_record >= 0:
        return round(rules.speed * rules.us_per_record * records)
    return round(rules.speed * time_of(sim.unit.taking[of.first_taking : of.end_taking], done, records))


@kernel
def poll(sim: Simulation, lane: int, node: int, records: int, ready: int) -> int:
    """Have the application take records that are in the buffer at `ready`; returns when they have left it.

    FetchCollector.collectFetch: one poll() returns at most max.poll.records of all that is buffered, of whatever node,
    in the order in which it came; the next poll() is called when those have been worked on. They leave the buffer in
    the poll() that looks for more behind the last of them: the one that returns it, unless that may return no more.
    Where work and fetching do not overlap, they leave it when they have been worked on.
    """
    rules = sim.rules[node, lane]
    application = sim.state.applications[rules.application]
    if application.poll_room == 0 or ready > application.poll_at:
        application.poll_at, application.poll_room = max(ready, application.busy_until), rules.max_poll_records
    begin = max(application.busy_until, application.poll_at)
    if records > application.poll_room:
        more = (records - application.poll_room - 1) // rules.max_poll_records + 1
        before = application.poll_room + (more - 1) * rules.max_poll_records
        application.poll_at = begin + work_on(sim, lane, node, application.records, before)
        application.poll_room += more * rules.max_poll_records
    application.poll_room -= records
    application.busy_until = begin + work_on(sim, lane, node, application.records, records)
    application.records += records
    leaves_in_poll = rules.overlaps == 1 and application.poll_room > 0
    return int(application.poll_at if leaves_in_poll else application.busy_until)


@kernel
def next_poll(sim: Simulation, lane: int, node: int, time: int) -> int:
    """When poll() is called next, from `time` on: a Java client sends fetches in it alone (Fetcher.sendFetches).

    Up to the last poll() there is one whenever max.poll.records of what is buffered have been worked on.
    """
    rules = sim.rules[node, lane]
    application = sim.state.applications[rules.application]
    at = int(application.poll_at)
    if rules.overlaps == 0 or at < time:
        return int(max(time, application.busy_until))
    had = application.records - (rules.max_poll_records - application.poll_room)
    while had >= rules.max_poll_records:
        had -= rules.max_poll_records
        before = at - work_on(sim, lane, node, had, rules.max_poll_records)
        if before < time:
            break
        at = before
    return at


@kernel
def take_response(sim: Simulation, lane: int, node: int) -> int:
    """Give the client what was read, from `gap_us` after now on; returns when it asks again."""
    rules, state, first = sim.rules[node, lane], sim.state.nodes[node], sim.unit.nodes[node].first_partition
    application = sim.state.applications[rules.application]
    # The pace was measured from when the application had done with earlier records (busy_before in pace.py).
    begin = state.now if rules.overlaps == 1 else max(state.now, application.busy_until)
    ready = begin + round(rules.speed * sim.unit.nodes[node].gap_us)
    served, last = 0, ready
    polled_at = next_poll(sim, lane, node, ready)
    for i in range(first, first + state.requested):
        p, returned = sim.state.orders.requested[i], sim.state.answers[i].returned
        partition = sim.state.partitions[p]
        partition.turn_at = max(ready, application.busy_until)
        if partition.has_moved == 1:
            continue
        first_batch = partition.position
        partition.position = position_behind(sim, p, returned)
        if returned == 0:
            continue
        sim.state.orders.served[first + served], partition.held = p, returned
        served += 1
        batches = sim.unit.batches
        records = batches[partition.position].records_before - batches[first_batch].records_before
        partition.taken_at = poll(sim, lane, node, records, ready) if records > 0 else ready
        last = max(last, partition.taken_at)
    rotate(sim, lane, node, served)
    # Where work and fetching do not overlap, the captured pace has the work of any client before its next fetch.
    is_beside = rules.profile == JAVA_3 and rules.overlaps == 1
    return last if served > 0 and not is_beside else polled_at


@kernel
def rotate(sim: Simulation, lane: int, node: int, served: int) -> None:
    """Change the order for the next request: of the partitions that were given records, or by KIP-74's suggestion.

    A full response opens the session, and moves nothing in it.
    """
    rules, state, first = sim.rules[node, lane], sim.state.nodes[node], sim.unit.nodes[node].first_partition
    orders, marks = sim.state.orders, sim.state.marks
    if rules.order == CLIENT_ORDER and rules.profile != LIBRDKAFKA:
        move_to_end(orders.client[first:], state.known, orders.served[first:], served, marks)
        if state.opens_session == 0:
            move_to_end(orders.session[first:], state.in_session, orders.served[first:], served, marks)
    elif rules.order == FIRST_EMPTY_ORDER:
        empty = first_empty(sim, node)
        for i in range(state.known):
            if empty != NONE and orders.client[first + i] == empty:
                begin_with(orders.client[first:], state.known, i, marks)
                break
    state.opens_session = 0


@kernel
def first_empty(sim: Simulation, node: int) -> int:
    """The first partition behind one with records that came empty, NONE where there is none."""
    first, has_records, earliest = sim.unit.nodes[node].first_partition, False, NONE
    for i in range(first, first + sim.state.nodes[node].requested):
        has_records |= sim.state.answers[i].returned > 0
        if has_records and sim.state.answers[i].returned == 0 and earliest == NONE:
            earliest = sim.state.orders.requested[i]
    return earliest
