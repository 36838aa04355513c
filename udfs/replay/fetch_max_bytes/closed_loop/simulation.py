"""KIP-74 in closed loop: in every lane, a client with Kafka's own rules fetches from a broker with Kafka's own rules.

What the client asks for next follows from what it received. Each node has one fetch under way. In a Java consumer one
application takes the records of all nodes, by poll(), in the order in which they come. client.py and broker.py name
the classes of Kafka whose rules these are.
"""

from __future__ import annotations

from udfs.columns.time_units import NEVER
from udfs.kernels.kernel import kernel
from udfs.replay.fetch_max_bytes.closed_loop.broker import (
    answered_at,
    partition_limit,
    read_from_log,
    throttle_response,
)
from udfs.replay.fetch_max_bytes.closed_loop.client import (
    make_changes,
    note_wanted_partitions,
    order_request,
    take_response,
    time_of_next_poll,
)
from udfs.replay.fetch_max_bytes.closed_loop.pace_fits import time_for_more
from udfs.replay.fetch_max_bytes.closed_loop.responses import keep_drained, keep_response
from udfs.replay.fetch_max_bytes.closed_loop.state import (
    ReaderSim,
    bytes_of_batches,
    position_behind,
    readable_to,
)
from udfs.replay.fetch_max_bytes.closed_loop.timeline import advance_timeline, note_bytes, note_held
from udfs.replay.fetch_max_bytes.fairness import add_read, add_response

ENDLESS_US = 31_536_000_000_000
"""The replay of a client that a quota holds back ends a year after the captured time: it may never get its records."""


@kernel
def add_answer(sim: ReaderSim, lane: int, node: int, place: int, limit: int) -> None:
    """Add what has come of one partition to the sums: the partition at index `place` of the requested order.

    limit: how many bytes of the response's limit the partitions before it have left over.
    """
    p, answer, now = sim.state.orders.requested[place], sim.state.answers[place], sim.state.nodes[node].now
    partition, state = sim.unit.partitions[p], sim.state.partitions[p]
    begin, end = state.position, readable_to(sim, p, sim.state.nodes[node].read_at)
    available, whole = bytes_of_batches(sim, begin, end), position_behind(sim, p, answer.returned)
    answer.cut_tail = answer.returned - bytes_of_batches(sim, begin, whole)
    answer.overrides = 1 if answer.returned > min(partition_limit(partition, sim.rules[node, lane]), limit) else 0
    is_all_known = end == partition.end_batch and answer.returned == available
    answer.unknown = 1 if is_all_known and partition.is_known == 0 else 0
    add_read(sim.outcome.sums.partitions[partition.number, lane], now, available, answer)
    note_bytes(sim.outcome.timeline, lane, partition.number, now, answer.returned)
    if begin < partition.backlog_end <= whole:
        state.catch_up_us = min(state.catch_up_us, now - state.requested_at)
    if lane == 0 and answer.returned > 0 and begin < partition.backlog_end:
        note_turn(sim, node, p)


@kernel
def note_turn(sim: ReaderSim, node: int, partition: int) -> None:
    """Note, in lane 0 and if there is room, that records of a partition's backlog have come."""
    captured, unit_node = sim.outcome.captured, sim.unit.nodes[node]
    turn = unit_node.first_turn + captured.nodes[node].turns
    if turn < unit_node.end_turn:
        captured.turns[turn] = partition
        captured.nodes[node].turns += 1


@kernel
def add_answers(sim: ReaderSim, lane: int, node: int) -> int:
    """Add a response that has come to the sums; returns its record bytes."""
    size = overrides = unknown = 0
    limit, first = sim.rules[node, lane].limit, sim.unit.nodes[node].first_partition
    for i in range(first, first + sim.state.nodes[node].requested):
        answer = sim.state.answers[i]
        add_answer(sim, lane, node, i, limit)
        limit = max(0, limit - answer.returned)
        size, overrides, unknown = size + answer.returned, overrides + answer.overrides, unknown + answer.unknown
    add_response(sim.outcome.sums, lane, size, overrides, unknown)
    return size


@kernel
def note_captured_time(sim: ReaderSim, node: int, size: int) -> None:
    """Count a request of lane 0, and the bytes of its response, if they come within the captured time.

    A request whose response a quota emptied does not count.
    """
    captured, unit_node, state = sim.outcome.captured, sim.unit.nodes[node], sim.state.nodes[node]
    captured.nodes[node].requests += 1 if state.sent_at <= unit_node.horizon and state.throttle_us == 0 else 0
    if state.now <= unit_node.horizon:
        pieces, span = captured.pieces[node], unit_node.horizon - unit_node.begin + 1
        pieces[(state.now - unit_node.begin) * len(pieces) // span] += size


@kernel
def hold_buffered(sim: ReaderSim, lane: int, time: int) -> None:
    """Note how many bytes the client has received and its application has not yet taken.

    They count from one response to the next, or until they are taken. The first application keeps the figure for all
    nodes.
    """
    holder = sim.state.applications[0]
    if holder.held > 0:
        until = max(holder.held_from, min(holder.held_until, time))
        note_held(sim.outcome.timeline, lane, holder.held_from, until, holder.held)
    holder.held, holder.held_from, holder.held_until = 0, time, time
    for p in range(len(sim.state.partitions)):
        partition = sim.state.partitions[p]
        if partition.taken_at > time:
            holder.held += partition.held
            holder.held_until = max(holder.held_until, partition.taken_at)


@kernel
def next_change(sim: ReaderSim, node: int) -> int:
    """The next time (us) at which a change comes, or the client has taken records; NEVER if there is none."""
    unit_node, state, following = sim.unit.nodes[node], sim.state.nodes[node], NEVER
    if unit_node.first_change + state.changes < unit_node.end_change:
        following = sim.unit.changes[unit_node.first_change + state.changes].time
    for p in range(unit_node.first_partition, unit_node.end_partition):
        partition = sim.state.partitions[p]
        if partition.taken_at > state.now and partition.is_assigned == 1:
            following = min(following, partition.taken_at)
    return following


@kernel
def is_unread(sim: ReaderSim, node: int) -> bool:
    """Whether anything is left to be read in the partitions that are asked for."""
    left = False
    for p in range(sim.unit.nodes[node].first_partition, sim.unit.nodes[node].end_partition):
        partition = sim.state.partitions[p]
        left |= partition.position < sim.unit.partitions[p].end_batch and partition.is_assigned == 1
    return left


@kernel
def until_response(sim: ReaderSim, lane: int, node: int, returned: int, waited_us: int) -> float:
    """How long a response of `returned` bytes is still on its way (us), counted from the time at which the broker reads
    it: answer_us after the request, or `waited_us` later.

    waited_us: how long the broker waited, beyond answer_us, for something to return. A batch can be read from the time
    at which a captured response showed it (logs.py), so a wait for a batch already contains the time of one answer. By
    the capture's clock an answer takes `speed` times as long.
    """
    unit_node, rules = sim.unit.nodes[node], sim.rules[node, lane]
    speed, has_waited = rules.speed, waited_us > 0
    if has_waited and waited_us + round(speed * unit_node.answer_us) >= rules.max_wait_us:
        return speed * unit_node.late_us
    if has_waited and speed <= 1.0:
        return 0.0
    sending = sim.unit.sending[unit_node.first_sending : unit_node.end_sending]
    bytes_us: float = time_for_more(sending, sim.state.nodes[node].bytes, returned)
    return (speed - 1.0) * (unit_node.answer_us + bytes_us) if has_waited else speed * bytes_us


@kernel
def send_fetch(sim: ReaderSim, lane: int, node: int) -> None:
    """Send one request; the node's clock moves on to its response.

    A response comes no sooner than answer_us after the request, and returns what can be read by the time at which the
    broker answers.
    """
    state = sim.state.nodes[node]
    order_request(sim, lane, node)
    earliest = state.now + round(sim.rules[node, lane].speed * sim.unit.nodes[node].answer_us)
    returned = read_from_log(sim, lane, node, earliest)
    read_at = answered_at(sim, lane, node, returned, earliest)
    waited_us = read_at - earliest
    if waited_us > 0:
        returned = read_from_log(sim, lane, node, read_at)
    state.sent_at, state.read_at, state.in_flight, state.throttle_us = state.now, read_at, 1, 0
    if sim.rules[node, lane].byte_rate > 0 and throttle_response(sim, lane, node, returned):
        returned, waited_us = 0, 0
    state.now = read_at + round(until_response(sim, lane, node, returned, waited_us))
    state.bytes += returned
    state.requests += 1


@kernel
def receive_response(sim: ReaderSim, lane: int, node: int) -> None:
    """Take a response; the node's clock moves on to the next request."""
    state = sim.state.nodes[node]
    size = add_answers(sim, lane, node)
    keep_response(sim, lane, node)
    make_changes(sim, lane, node)
    if state.throttle_us > 0:
        following = time_of_next_poll(sim, lane, node, state.now + state.throttle_us)
    else:
        following = take_response(sim, lane, node)
    if state.sent_at < state.beyond_until:
        following = max(following, state.sent_at + round(sim.rules[node, lane].speed * state.beyond_every_us))
    if size > 0:
        hold_buffered(sim, lane, state.now)
    keep_drained(sim, lane, node, following)
    if lane == 0:
        note_captured_time(sim, node, size)
    state.in_flight = 0
    state.now = max(following, state.sent_at + 1)


@kernel
def step_node(sim: ReaderSim, lane: int, node: int) -> None:
    """Let a node that waits for no response take its next step.

    A node goes on until the end of its captured time, and then until it has read all that the capture shows.
    """
    unit_node, state = sim.unit.nodes[node], sim.state.nodes[node]
    make_changes(sim, lane, node)
    waits_endlessly = state.throttle_us > 0 and state.now > unit_node.horizon + ENDLESS_US
    if state.now > unit_node.horizon and not is_unread(sim, node):
        state.now = NEVER
    elif state.requests >= unit_node.request_cap or waits_endlessly:
        sim.outcome.lanes[lane].is_finished = 0
        state.now = NEVER
    elif state.now < state.stopped_until:
        state.now = state.stopped_until
    elif state.now < state.throttled_until and state.bytes >= state.throttled_bytes:
        state.now = state.throttled_until
    elif note_wanted_partitions(sim, lane, node) > 0:
        send_fetch(sim, lane, node)
    else:
        state.now = next_change(sim, node)


@kernel
def note_left_unread(sim: ReaderSim, lane: int, node: int) -> None:
    """Note, once, how many bytes of its partitions a node has not read by the end of its captured time."""
    unit_node, state = sim.unit.nodes[node], sim.state.nodes[node]
    if state.is_over == 1 or state.now <= unit_node.horizon:
        return
    state.is_over = 1
    for p in range(unit_node.first_partition, unit_node.end_partition):
        partition = sim.state.partitions[p]
        if partition.is_assigned == 1:
            unread = bytes_of_batches(sim, partition.position, readable_to(sim, p, unit_node.horizon))
            sim.outcome.lanes[lane].end_lag += unread


@kernel
def first_node(sim: ReaderSim) -> int:
    """The node at which something happens next."""
    first, nodes = 0, sim.state.nodes
    for node in range(1, len(nodes)):
        if nodes[node].now < nodes[first].now:
            first = node
    return first


@kernel
def run_until(sim: ReaderSim, lane: int, until: int) -> int:
    """Run all nodes of the reader in a lane, one event after the other, through `until` (us).

    Returns when something happens next (us), NEVER if nothing does.
    """
    node, nodes = first_node(sim), sim.state.nodes
    while nodes[node].now != NEVER and nodes[node].now <= until:
        advance_timeline(sim, lane, nodes[node].now)
        note_left_unread(sim, lane, node)
        if nodes[node].in_flight == 1:
            receive_response(sim, lane, node)
        else:
            step_node(sim, lane, node)
        node = first_node(sim)
    return int(nodes[node].now)


@kernel
def note_rest(sim: ReaderSim, lane: int) -> None:
    """Note, at the end, what is left unread and what is still held."""
    for node in range(len(sim.state.nodes)):
        note_left_unread(sim, lane, node)
    hold_buffered(sim, lane, NEVER)
