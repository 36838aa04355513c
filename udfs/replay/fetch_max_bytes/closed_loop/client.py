"""The client of the closed loop: which partitions it asks for, in which order, and when.

A Java consumer follows AbstractFetch.prepareFetchRequests and FetchCollector of kafka-clients 4.3, or of 3.9 where its
profile is java-3.9. A follower follows kafka.server.AbstractFetcherThread, Kafka 4.3. In a session, the broker reads
the partitions in the session's order (org.apache.kafka.server.FetchContext.IncrementalFetchContext, Kafka 4.3).
"""

from __future__ import annotations

from udfs.columns.sentinels import NONE
from udfs.columns.time_units import NEVER
from udfs.kernels.kernel import kernel
from udfs.replay.fetch_max_bytes.closed_loop.order import (
    begin_order_with,
    move_partitions_to_end,
    remove_unwanted,
    shuffle_order,
)
from udfs.replay.fetch_max_bytes.closed_loop.pace_fits import time_for_more
from udfs.replay.fetch_max_bytes.closed_loop.state import (
    BEYOND_BOUND,
    GO_ON,
    LEAVE,
    NO_BACKLOG,
    REOPEN,
    STOP,
    THROTTLED,
    ReaderSim,
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
def make_changes(sim: ReaderSim, lane: int, node: int) -> None:
    """Make the captured changes up to now: the client begins to want partitions, gives them up, or seeks."""
    unit, state = sim.unit, sim.state.nodes[node]
    first, end = unit.nodes[node].first_change, unit.nodes[node].end_change
    while first + state.changes < end and unit.changes[first + state.changes].time <= state.now:
        index = first + state.changes
        p, to = unit.changes[index].partition, unit.changes[index].to
        if p == REOPEN:
            state.in_session, state.opens_session = 0, 1
        elif p == STOP:
            state.stopped_until = to
        elif p == THROTTLED:
            # Where the lane's quota is known, quota_meter.py alone says how long the client waits.
            if sim.rules[node, lane].quota_is_known == 0:
                state.throttled_until, state.throttled_bytes = to, unit.changes[index].bytes
        elif p == BEYOND_BOUND:
            state.beyond_until, state.beyond_every_us = to, unit.changes[index].every_us
        else:
            if lane == 0:
                sim.outcome.captured.positions[index] = sim.state.partitions[p].position
            make_change(sim, node, p, destination_of_change(sim, p, to))
        state.changes += 1


@kernel
def destination_of_change(sim: ReaderSim, p: int, to: int) -> int:
    """The batch that a change leads to. A partition that comes from another broker goes on from its position there.

    What was left of its backlog at that broker is its backlog at this one.
    """
    partition, state = sim.unit.partitions[p], sim.state.partitions[p]
    if to >= 0 and partition.previous != NONE and state.is_assigned == 0 and state.requested_at == NEVER:
        position = sim.state.partitions[partition.previous].position + partition.batch_shift
        to = min(max(position, partition.first_batch), partition.end_batch)
        state.catch_up_us = NEVER if to < partition.backlog_end else NO_BACKLOG
    return to


@kernel
def make_change(sim: ReaderSim, node: int, p: int, to: int) -> None:
    """Make one partition's change. Its records that are buffered or under way are dropped, unless it is read on from
    where it was (SubscriptionState and Fetcher of kafka-clients).
    """
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
def note_wanted_partitions(sim: ReaderSim, lane: int, node: int) -> int:
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
def order_in_session(sim: ReaderSim, node: int) -> None:
    """Request in the session's order (FetchSession): new partitions come last, unwanted partitions are removed."""
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
def order_without_session(sim: ReaderSim, lane: int, node: int) -> None:
    """Request in the client's order, or in the order that the lane sets instead."""
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
        shuffle_order(requested, state.requested, sim.state.random)


@kernel
def order_request(sim: ReaderSim, lane: int, node: int) -> None:
    """Put the wanted partitions into the order in which the broker reads them."""
    if sim.rules[node, lane].order == CLIENT_ORDER and sim.rules[node, lane].in_session == 1:
        order_in_session(sim, node)
    else:
        order_without_session(sim, lane, node)


@kernel
def time_to_work_on(sim: ReaderSim, lane: int, node: int, done: int, records: int) -> int:
    """How long the application works on `records` records, after the `done` records that it took before (us)."""
    rules, unit_node = sim.rules[node, lane], sim.unit.nodes[node]
    if rules.us_per_record >= 0:
        return round(rules.speed * rules.us_per_record * records)
    taking = sim.unit.taking[unit_node.first_taking : unit_node.end_taking]
    return round(rules.speed * time_for_more(taking, done, records))


@kernel
def time_of_polls(sim: ReaderSim, lane: int, node: int, polls: int) -> int:
    """How long `polls` calls of poll() take the application, besides its work on records (us)."""
    rules = sim.rules[node, lane]
    return round(rules.speed * polls * sim.unit.nodes[node].poll_us) if rules.us_per_record < 0 else 0


@kernel
def poll_records(sim: ReaderSim, lane: int, node: int, records: int, ready: int) -> int:
    """Let the application take records that are in the buffer at `ready`; returns when they have left the buffer (us).

    FetchCollector.collectFetch: one poll() returns at most max.poll.records of the buffered records of all nodes, in
    the order in which they came. The application calls the next poll() when it has worked on those. A response's
    records leave the buffer in the poll() that looks behind the last of them: the poll() that returns the last record,
    or the next one if that poll() is full. If work and fetching do not overlap, records leave the buffer when the
    application has worked on them.
    """
    rules = sim.rules[node, lane]
    application = sim.state.applications[rules.application]
    if application.poll_room == 0 or ready > application.poll_at:
        application.poll_at, application.poll_room = max(ready, application.busy_until), rules.max_poll_records
        application.busy_until = application.poll_at + time_of_polls(sim, lane, node, 1)
    begin = max(application.busy_until, application.poll_at)
    if records > application.poll_room:
        more = (records - application.poll_room - 1) // rules.max_poll_records + 1
        before = application.poll_room + (more - 1) * rules.max_poll_records
        worked = time_to_work_on(sim, lane, node, application.records, before)
        application.poll_at = begin + worked + time_of_polls(sim, lane, node, more - 1)
        application.poll_room += more * rules.max_poll_records
        begin += time_of_polls(sim, lane, node, more)
    application.poll_room -= records
    application.busy_until = begin + time_to_work_on(sim, lane, node, application.records, records)
    application.records += records
    leaves_in_poll = rules.overlaps == 1 and application.poll_room > 0
    return int(application.poll_at if leaves_in_poll else application.busy_until)


@kernel
def time_of_next_poll(sim: ReaderSim, lane: int, node: int, time: int) -> int:
    """When poll() is next called at or after `time` (us). A Java client sends fetches only in poll()
    (Fetcher.sendFetches).

    Only the last poll() is kept. The calls before it are found by going back from it: the application made one whenever
    it had worked on max.poll.records records.
    """
    rules = sim.rules[node, lane]
    application = sim.state.applications[rules.application]
    poll_at = int(application.poll_at)
    if rules.overlaps == 0 or poll_at < time:
        return int(max(time, application.busy_until))
    done = application.records - (rules.max_poll_records - application.poll_room)
    while done >= rules.max_poll_records:
        done -= rules.max_poll_records
        poll_before = poll_at - time_to_work_on(sim, lane, node, done, rules.max_poll_records)
        poll_before -= time_of_polls(sim, lane, node, 1)
        if poll_before < time:
            break
        poll_at = poll_before
    return poll_at


@kernel
def take_response(sim: ReaderSim, lane: int, node: int) -> int:
    """Let the client take the records of a response, at the earliest `gap_us` after the response came.

    Returns when the client fetches again (us).
    """
    rules, state, first = sim.rules[node, lane], sim.state.nodes[node], sim.unit.nodes[node].first_partition
    application = sim.state.applications[rules.application]
    gap_us = sim.unit.nodes[node].gap_us + (sim.unit.nodes[node].start_us if state.requests == 1 else 0.0)
    ready = state.now + round(rules.speed * gap_us)
    if rules.overlaps == 0:  # the pace was measured from the end of the work on earlier records (pace.busy_before)
        ready = max(ready, application.busy_until)
    served, last = 0, ready
    polled_at = time_of_next_poll(sim, lane, node, ready)
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
        partition.taken_at = poll_records(sim, lane, node, records, ready) if records > 0 else ready
        last = max(last, partition.taken_at)
    rotate_order(sim, lane, node, served)
    # If work and fetching do not overlap, the captured pace puts the work before the next fetch, whatever the client.
    is_beside = rules.profile == JAVA_3 and rules.overlaps == 1
    return last if served > 0 and not is_beside else polled_at


@kernel
def rotate_order(sim: ReaderSim, lane: int, node: int, served: int) -> None:
    """Change the order for the next request. In a Java consumer and a follower, partitions that got records move to the
    end. In the order `first_empty`, which KIP-74 suggests, the next request begins with the first partition that came
    empty after one with records.

    A response that opens the session moves nothing in the session's order.
    """
    rules, state, first = sim.rules[node, lane], sim.state.nodes[node], sim.unit.nodes[node].first_partition
    orders, marks = sim.state.orders, sim.state.marks
    if rules.order == CLIENT_ORDER and rules.profile != LIBRDKAFKA:
        move_partitions_to_end(orders.client[first:], state.known, orders.served[first:], served, marks)
        if state.opens_session == 0:
            move_partitions_to_end(orders.session[first:], state.in_session, orders.served[first:], served, marks)
    elif rules.order == FIRST_EMPTY_ORDER:
        empty = first_empty_partition(sim, node)
        for i in range(state.known):
            if empty != NONE and orders.client[first + i] == empty:
                begin_order_with(orders.client[first:], state.known, i, marks)
                break
    state.opens_session = 0


@kernel
def first_empty_partition(sim: ReaderSim, node: int) -> int:
    """The first partition that came empty after one with records; NONE if there is none."""
    first, has_records, earliest = sim.unit.nodes[node].first_partition, False, NONE
    for i in range(first, first + sim.state.nodes[node].requested):
        has_records |= sim.state.answers[i].returned > 0
        if has_records and sim.state.answers[i].returned == 0 and earliest == NONE:
            earliest = sim.state.orders.requested[i]
    return earliest
