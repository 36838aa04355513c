"""KIP-74 in closed loop: a client with Kafka's own rules fetches from a broker that reads as brokers do, in every lane.

What the client asks next follows from what it received. One unit is a reader with all its connections, its nodes:
one fetch is under way of each, and of a Java consumer one application takes the records of all, by poll(), in the
order in which they come. closed_client.py and closed_broker.py name the classes of Kafka whose rules these are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from udfs.columns.arrays import Ints, Record, Records, all_read_only, read_only
from udfs.columns.time_units import NEVER
from udfs.kernels.kernel import kernel
from udfs.replay.fetch_max_bytes import fairness
from udfs.replay.fetch_max_bytes.client_order import LIBRDKAFKA
from udfs.replay.fetch_max_bytes.client_pace import Curves, Pace, time_of
from udfs.replay.fetch_max_bytes.closed_broker import answered_at, most_of, read
from udfs.replay.fetch_max_bytes.closed_client import APP, STATE, ask, change, take, want
from udfs.replay.fetch_max_bytes.closed_responses import Kept, keep, keep_drained
from udfs.replay.fetch_max_bytes.closed_unit import (
    NO_BACKLOG,
    Course,
    Rules,
    Unit,
    Work,
    first_above,
    readable_to,
    rules_of_node,
    unit_of_node,
    work_of_node,
)
from udfs.replay.fetch_max_bytes.timeline import Timeline, advance, hold, mark, own_time


class CapturedLane(NamedTuple):
    """What lane 0 does, to be compared with the capture.

    order: int64[n], the partitions that get records of the backlog; those of node k from order_from[k] on, as numbered
    in it, of which ordered[k] are there. pieces: int64[nodes, pieces], bytes got in each piece of the captured time.
    requests: int64[nodes], sent in it. catch_up: int64[partitions], time until each backlog was read (us), NO_BACKLOG
    or NEVER. at_change: int64[changes], where the partition was.
    """

    order: Ints
    order_from: Ints
    ordered: Ints
    pieces: Ints
    requests: Ints
    catch_up: Ints
    at_change: Ints


class Outcome(NamedTuple):
    """The outcome of a unit, in the sums of its reader.

    sent: int64[lanes] requests. finished: int64[lanes], 0 where something was left to be read. catch_up:
    int64[partitions, lanes] in us, NO_BACKLOG or NEVER. given_up: int64[partitions], 1 where the reader leaves a
    backlog that lane 0 had not read, for good or to go on behind it.
    """

    sums: fairness.Sums
    responses: fairness.Responses
    timeline: Timeline
    sent: Ints
    finished: Ints
    catch_up: Ints
    given_up: Ints
    captured: CapturedLane
    kept: Kept


class Whole(NamedTuple):
    """The unit as a whole, beside one node's part of it."""

    unit: Unit
    work: Work
    course: Course
    pace: Pace
    out: Outcome


@kernel
def note(
    unit: Unit, rules: Rules, lane: int, work: Work, state: Record, out: Outcome, order: Ints, ordered: Ints
) -> int:  # fmt: skip
    """Sum up a response that has come; returns its record bytes. order, ordered: the node's, of CapturedLane."""
    size = overrides = unknown = 0
    limit, time = rules.limit[lane], state.now
    for i in range(state.asked):
        p, got = work.request[i], work.got[i]
        begin, end = work.position[p], readable_to(unit, work, p, state.read_at)
        whole = first_above(unit.starts, begin, unit.end[p] + 1, unit.starts[begin] + got) - 1
        over = 1 if got > min(most_of(unit, rules, lane, p), limit) else 0
        unsure = (
            1 if end == unit.end[p] and unit.is_known[p] == 0 and unit.starts[end] == unit.starts[begin] + got else 0
        )
        fairness.add_read(
            out.sums, unit.number[p], lane, time, unit.starts[end] - unit.starts[begin], got, over,
            unit.starts[begin] + got - unit.starts[whole], unsure,
        )  # fmt: skip
        mark(out.timeline, unit.number[p], lane, time, got)
        if begin < unit.backlog_end[p] <= whole:
            work.catch_up[p] = min(work.catch_up[p], time - work.asked_at[p])
        if got > 0 and lane == 0 and begin < unit.backlog_end[p] and ordered[0] < len(order):
            order[ordered[0]] = p
            ordered[0] += 1
        limit = max(0, limit - got)
        size, overrides, unknown = size + got, overrides + over, unknown + unsure
    fairness.add_response(out.responses, lane, size, overrides, unknown)
    return size


@kernel
def note_time(captured: CapturedLane, course: Course, node: int, state: Record, size: int) -> None:
    """Note a request and the bytes of its response in lane 0, within the captured time."""
    begin, horizon = course.begin[node], course.horizon[node]
    captured.requests[node] += 1 if state.sent_at <= horizon else 0
    if state.now <= horizon:
        span = horizon - begin + 1
        captured.pieces[node, (state.now - begin) * captured.pieces.shape[1] // span] += size


@kernel
def hold_buffered(line: Timeline, lane: int, work: Work, app: Record, time: int) -> None:
    """Note what the client holds that it has got and not taken, from one response until the next or until it is taken.

    app: of the first node, which keeps it for all.
    """
    if app.held > 0:
        hold(line, lane, app.held_from, max(app.held_from, min(app.held_until, time)), app.held)
    app.held, app.held_from, app.held_until = 0, time, time
    for p in range(len(work.held)):
        if work.taken_at[p] > time:
            app.held += work.held[p]
            app.held_until = max(app.held_until, work.taken_at[p])


@kernel
def next_change(unit: Unit, work: Work, state: Record) -> int:
    """The next time that the client wants something else, or has taken records; NEVER for none."""
    following = NEVER
    if state.changed < len(unit.change_time):
        following = unit.change_time[state.changed]
    for p in range(len(unit.number)):
        if work.taken_at[p] > state.now and work.assigned[p] == 1:
            following = min(following, work.taken_at[p])
    return following


@kernel
def unread(unit: Unit, work: Work) -> bool:
    """Whether anything is left to be read of partitions that are asked for."""
    left = False
    for p in range(len(unit.number)):
        left |= work.position[p] < unit.end[p] and work.assigned[p] == 1
    return left


@kernel
def until_response(pace: Pace, node: int, sent: int, found: int, has_waited: bool) -> float:
    """From when a broker answers a fetch with so many bytes until the response is there (us).

    What a fetch has waited for can be read when a response showed it (closed_logs), which has the answer's time in it.
    """
    if not has_waited:
        return pace.answer[node] + time_of(pace.sending, node, sent, found)
    return pace.late[node] if found == 0 else 0.0


@kernel
def send(unit: Unit, rules: Rules, lane: int, work: Work, state: Record, pace: Pace, node: int) -> None:
    """Send one request; the node's clock moves on to its response."""
    ask(rules, lane, work, state)
    found = read(unit, rules, lane, work, state.asked, state.now)
    read_at = answered_at(unit, rules, lane, work, state.asked, found, state.now)
    if read_at > state.now:
        found = read(unit, rules, lane, work, state.asked, read_at)
    has_waited = read_at > state.now
    state.sent_at, state.read_at, state.in_flight = state.now, read_at, 1
    state.now = read_at + round(until_response(pace, node, state.bytes, found, has_waited))
    state.bytes += found
    state.sent += 1


@kernel
def receive(
    whole: Whole, unit: Unit, rules: Rules, lane: int, work: Work, state: Record, apps: Records, node: int
) -> None:  # fmt: skip
    """Take a response; the node's clock moves on to the next request."""
    out, course, pace = whole.out, whole.course, whole.pace
    captured, time = out.captured, state.now
    a, b = captured.order_from[node], captured.order_from[node + 1]
    size = note(unit, rules, lane, work, state, out, captured.order[a:b], captured.ordered[node : node + 1])
    keep(out.kept, unit, lane, work, state, node)
    change(unit, lane, work, state, time, captured.at_change[course.changes_from[node] : course.changes_from[node + 1]])
    which = node if len(pace.taking.begin) > 2 else 0
    app = apps[0] if course.shares[0] == 1 and rules.profile[lane] < LIBRDKAFKA else apps[node]
    following = take(unit, rules, lane, work, state, pace.taking, which, app, time + round(pace.gap[node]))
    if size > 0:
        hold_buffered(out.timeline, lane, whole.work, apps[0], time)
    keep_drained(out.kept, unit, lane, work, state, following)
    if lane == 0:
        note_time(captured, course, node, state, size)
    state.in_flight = 0
    state.now = max(following, state.sent_at + 1)


@kernel
def go_on(whole: Whole, unit: Unit, rules: Rules, lane: int, work: Work, state: Record, node: int) -> None:
    """What a node does while it waits for no response: from the first captured fetch until the capture's end, and on
    until all that the capture shows is read.
    """
    course, time = whole.course, state.now
    at_change = whole.out.captured.at_change
    change(unit, lane, work, state, time, at_change[course.changes_from[node] : course.changes_from[node + 1]])
    if time > course.horizon[node] and not unread(unit, work):
        state.now = NEVER
    elif state.sent >= course.most_requests[node]:
        whole.out.finished[lane] = 0
        state.now = NEVER
    elif time < state.resume:
        state.now = state.resume
    elif want(rules, lane, work, state) > 0:
        send(unit, rules, lane, work, state, whole.pace, node)
    else:
        state.now = next_change(unit, work, state)


@kernel
def first_node(states: Records) -> int:
    """The node at which something happens first."""
    found = 0
    for node in range(1, len(states)):
        if states[node].now < states[found].now:
            found = node
    return found


@kernel
def run_lane(whole: Whole, rules: Rules, lane: int, states: Records, apps: Records) -> None:
    """All nodes of the reader, one event after the other."""
    node, course, out = first_node(states), whole.course, whole.out
    while states[node].now != NEVER:
        advance(whole.unit, whole.work, out.sums, out.timeline, lane, states[node].now)
        unit, work = unit_of_node(whole.unit, course, node), work_of_node(whole.work, course, node)
        if states[node].in_flight == 1:
            receive(whole, unit, rules_of_node(rules, node), lane, work, states[node], apps, node)
        else:
            go_on(whole, unit, rules_of_node(rules, node), lane, work, states[node], node)
        node = first_node(states)
    hold_buffered(out.timeline, lane, whole.work, apps[0], NEVER)


def begin_lane(whole: Whole, rules: Rules, lane: int, states: Records, apps: Records) -> None:
    """Set the lane's memory to what is captured first."""
    unit, work, sums, line = whole.unit, whole.work, whole.out.sums, whole.out.timeline
    for memory in (states, apps, *work):
        memory[...] = 0
    states["now"] = whole.course.begin
    line.bucket[lane] = own_time(line, whole.course.begin.min()) // line.width[lane]
    work.random[0] = rules.seed[0, lane]
    work.position[:] = unit.start
    work.asked_at[:] = NEVER
    work.catch_up[:] = np.where(unit.backlog_end > unit.start, NEVER, NO_BACKLOG)
    sums.waiting[unit.number, lane] = 0
    sums.waiting_since[unit.number, lane] = fairness.SERVED


def end_lane(whole: Whole, lane: int, states: Records) -> None:
    """Sum up the lane's outcome."""
    catch_up, out = whole.work.catch_up, whole.out
    out.sent[lane] += states["sent"].sum()
    if lane == 0:
        out.captured.catch_up[:] = catch_up
    hand_on(whole.unit, whole.work)
    if lane == 0:
        leaves = (whole.work.assigned == 0) | (whole.work.position >= whole.unit.backlog_end)
        np.maximum.at(out.given_up, whole.unit.number, (catch_up == NEVER) & leaves)
    np.maximum.at(out.catch_up[:, lane], whole.unit.number, catch_up)


def hand_on(unit: Unit, work: Work) -> None:
    """Hand a backlog that was not read on to the broker that its partition went to, timed from its beginning."""
    moved = np.flatnonzero(unit.follows >= 0)
    for p in moved[np.argsort(work.asked_at[moved], kind="stable")].tolist():
        before = unit.follows[p]
        if work.catch_up[before] == NEVER and work.asked_at[p] != NEVER:
            work.catch_up[p] += work.asked_at[p] - work.asked_at[before] if work.catch_up[p] != NEVER else 0
            work.asked_at[p], work.catch_up[before] = work.asked_at[before], NO_BACKLOG


def unwritable(pace: Pace) -> Pace:
    """The pace with arrays that cannot be written."""
    taking, sending = (Curves(*all_read_only(curves)) for curves in (pace.taking, pace.sending))
    return Pace(read_only(pace.gap), read_only(pace.answer), read_only(pace.late), taking, sending)


def simulate(unit: Unit, rules: Rules, pace: Pace, course: Course, out: Outcome) -> None:
    """Replay one unit in every lane, into the sums of its reader."""
    partitions, nodes = len(unit.number), len(course.begin)
    arrays = [np.zeros(partitions, np.int64) for _ in Work._fields[:-2]]
    work = Work._make([*arrays, arrays[0], np.zeros(1, np.int64)])
    fixed: list[Any] = [*map(read_only, rules[:-1]), read_only(rules.record_us)]
    whole = Whole(
        Unit(*map(read_only, unit)), work, Course(*map(read_only, course)), unwritable(pace), out
    )  # fmt: skip
    lanes = Rules._make(fixed)
    states, apps = np.zeros(nodes, STATE), np.zeros(nodes, APP)
    for lane in range(rules.limit.shape[1]):  # lanes do not affect one another
        begin_lane(whole, lanes, lane, states, apps)
        run_lane(whole, lanes, lane, states, apps)
        end_lane(whole, lane, states)
