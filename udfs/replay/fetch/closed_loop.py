"""KIP-74 in closed loop: a client with Kafka's own rules fetches from a broker that reads as brokers do, in every lane.

What the client asks next follows from what it was given. One unit is one connection: a consumer or follower and one
broker. kafka-semantics 1.2, 1.3, 1.6, 1.7 and 3.5 have the rules; Kafka 4.3 and, for java-3.9, 3.9.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from udfs.replay.fetch import fairness
from udfs.replay.fetch.client_pace import Pace
from udfs.replay.fetch.closed_broker import answered_at, most_of, read
from udfs.replay.fetch.closed_client import STATE, ask, take, want
from udfs.replay.fetch.closed_responses import Kept, keep, keep_drained
from udfs.replay.fetch.closed_unit import Course, Rules, Unit, Work, first_above, readable_to
from udfs.replay.fetch.partition_log import NEVER
from udfs.replay.fetch.timeline import Timeline, add_up_held, advance, hold, mark
from udfs.wire.arrays import Ints, Record, Records, read_only
from udfs.wire.kernel import kernel


class CapturedLane(NamedTuple):
    """What lane 0 does, to be held against the capture.

    order: int64[n], the partitions that get records of the backlog, of which ordered, int64[1], are there. pieces:
    int64[pieces], bytes got in each piece of the captured time. requests: int64[1], sent in it. catch_up:
    int64[partitions], time until each backlog was read (us), NO_BACKLOG or NEVER.
    """

    order: Ints
    ordered: Ints
    pieces: Ints
    requests: Ints
    catch_up: Ints


class Outcome(NamedTuple):
    """What becomes of a unit, added to what its reader's other units came to.

    sent: int64[lanes] requests. finished: int64[lanes], 0 where something was left to be read. catch_up:
    int64[partitions, lanes] in us, NO_BACKLOG or NEVER.
    """

    sums: fairness.Sums
    responses: fairness.Responses
    timeline: Timeline
    sent: Ints
    finished: Ints
    catch_up: Ints
    captured: CapturedLane
    kept: Kept


NO_BACKLOG = -1


@kernel
def note(unit: Unit, rules: Rules, lane: int, work: Work, state: Record, read_at: int, time: int, out: Outcome) -> int:
    """Sum up a response that is there at `time`; returns the record bytes that the client holds of it."""
    size = overrides = unknown = 0
    limit = rules.limit[lane]
    for i in range(state.asked):
        p, got = work.request[i], work.got[i]
        begin, end = work.position[p], readable_to(unit, work, p, read_at)
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
            work.catch_up[p] = time - work.asked_at[p]
        if got > 0 and lane == 0 and begin < unit.backlog_end[p]:
            note_order(out.captured, p)
        limit = max(0, limit - got)
        size, overrides, unknown = size + got, overrides + over, unknown + unsure
    fairness.add_response(out.responses, lane, size, overrides, unknown)
    return size


@kernel
def note_order(captured: CapturedLane, partition: int) -> None:
    """Note whose turn it was in lane 0."""
    if captured.ordered[0] < len(captured.order):
        captured.order[captured.ordered[0]] = partition
        captured.ordered[0] += 1


@kernel
def note_time(captured: CapturedLane, course: Course, asked_at: int, time: int, size: int) -> None:
    """Note a request and the bytes of its response in lane 0, within the captured time."""
    captured.requests[0] += 1 if asked_at <= course.horizon else 0
    if time <= course.horizon:
        span = course.horizon - course.begin + 1
        captured.pieces[(time - course.begin) * len(captured.pieces) // span] += size


@kernel
def hold_buffered(line: Timeline, lane: int, work: Work, time: int) -> None:
    """Note what the client has got and not taken when a response comes, until all of it is taken."""
    level, until = 0, time
    for p in range(len(work.held)):
        if work.taken_at[p] > time:
            level += work.held[p]
            until = max(until, work.taken_at[p])
    hold(line, lane, time, until, level)


@kernel
def next_change(unit: Unit, work: Work, now: int) -> int:
    """When a partition joins, or its records are taken, next; NEVER where none does."""
    following = NEVER
    for p in range(len(unit.joins)):
        if unit.joins[p] > now:
            following = min(following, unit.joins[p])
        elif work.taken_at[p] > now and unit.leaves[p] > now:
            following = min(following, work.taken_at[p])
    return following


@kernel
def unread(unit: Unit, work: Work, now: int) -> bool:
    """Whether anything is left to be read of partitions that are still asked for."""
    left = False
    for p in range(len(unit.joins)):
        left |= work.position[p] < unit.end[p] and now <= unit.leaves[p]
    return left


@kernel
def fetch(
    unit: Unit, rules: Rules, lane: int, work: Work, state: Record, pace: Pace, course: Course, out: Outcome
) -> None:  # fmt: skip
    """One request and its response; moves the state's clock to the next request."""
    ask(rules, lane, work, state)
    found = read(unit, rules, lane, work, state.asked, state.now)
    read_at = answered_at(unit, rules, lane, work, state.asked, found, state.now)
    if read_at > state.now:
        found = read(unit, rules, lane, work, state.asked, read_at)
    late = pace.late if found == 0 else 0.0
    time = read_at + round(pace.answer + pace.byte * found + late)
    advance(unit, work, out.sums, out.timeline, lane, time)
    size = note(unit, rules, lane, work, state, read_at, time, out)
    keep(out.kept, unit, lane, work, state.asked, state.now, time)
    following = take(unit, rules, lane, work, state, course, time + round(pace.gap))
    if size > 0:
        hold_buffered(out.timeline, lane, work, time)
    keep_drained(out.kept, unit, lane, work, state.asked, following)
    if lane == 0:
        note_time(out.captured, course, state.now, time, size)
    state.sent += 1
    state.now = max(following, state.now + 1)


@kernel
def run_lane(
    unit: Unit, rules: Rules, lane: int, work: Work, state: Record, pace: Pace, course: Course, out: Outcome
) -> None:  # fmt: skip
    """From the first captured fetch until the capture's end, and on until all that it shows is read."""
    while state.now <= course.horizon or unread(unit, work, state.now):
        if state.sent >= course.most_requests:
            out.finished[lane] = 0
            return
        if want(unit, rules, lane, work, state) > 0:
            fetch(unit, rules, lane, work, state, pace, course, out)
        else:
            state.now = next_change(unit, work, state.now)
            if state.now == NEVER:
                return


@kernel
def begin_lane(unit: Unit, rules: Rules, lane: int, work: Work, state: Record, course: Course, out: Outcome) -> None:
    """Set the lane's memory to what is captured first."""
    state.now, state.busy_until, state.sent = course.begin, course.begin, 0
    state.known, state.in_session, state.turn = 0, 0, 0
    work.random[0] = rules.seed[lane]
    out.timeline.bucket[lane] = (course.begin - out.timeline.begin[0]) // out.timeline.width[lane]
    for p in range(len(unit.joins)):
        work.position[p] = unit.first[p]
        work.asked_at[p] = NEVER
        work.taken_at[p] = work.spare[p] = 0
        work.catch_up[p] = NEVER if unit.backlog_end[p] > unit.first[p] else NO_BACKLOG
        out.sums.waiting[unit.number[p], lane] = 0
        out.sums.waiting_since[unit.number[p], lane] = fairness.SERVED


@kernel
def end_lane(unit: Unit, lane: int, work: Work, state: Record, course: Course, out: Outcome) -> None:
    """Sum up what the lane came to."""
    if state.now != NEVER:
        advance(unit, work, out.sums, out.timeline, lane, state.now)
    out.sent[lane] += state.sent
    add_up_held(out.timeline, lane)
    for p in range(len(unit.joins)):
        took = work.catch_up[p]
        if lane == 0:
            out.captured.catch_up[p] = took
        row = unit.number[p]
        out.catch_up[row, lane] = max(out.catch_up[row, lane], took)


@kernel
def run_lanes(unit: Unit, rules: Rules, work: Work, states: Records, pace: Pace, course: Course, out: Outcome) -> None:
    """Every lane, one after the other: none knows of another."""
    state = states[0]
    for lane in range(len(rules.limit)):
        begin_lane(unit, rules, lane, work, state, course, out)
        run_lane(unit, rules, lane, work, state, pace, course, out)
        end_lane(unit, lane, work, state, course, out)


def simulate(unit: Unit, rules: Rules, pace: Pace, course: Course, out: Outcome) -> None:
    """Replay one unit in every lane, into the sums of its reader."""
    partitions = len(unit.joins)
    arrays = [np.zeros(partitions, np.int64) for _ in Work._fields[:-1]]
    work = Work._make([*arrays, np.zeros(1, np.int64)])
    state = np.zeros(1, STATE)
    fixed: list[Any] = [*map(read_only, rules[:-1]), read_only(rules.record_us)]
    run_lanes(Unit(*map(read_only, unit)), Rules._make(fixed), work, state, pace, course, out)
