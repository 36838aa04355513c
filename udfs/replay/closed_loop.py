"""KIP-74 in closed loop: a client with Kafka's own rules fetches from a broker that reads as brokers do, in every lane.

What the client asks next follows from what it was given. One unit is one connection: a consumer or follower and one
broker. kafka-semantics 1.2, 1.3, 1.6, 1.7 and 3.5 have the rules; Kafka 4.3 and, for java-3.9, 3.9.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from udfs.replay import fairness
from udfs.replay.client_order import (
    CLIENT,
    FIRST_EMPTY,
    JAVA_3,
    LIBRDKAFKA,
    SHUFFLE,
    begin_with,
    move_to_end,
    remove_absent,
    shuffle,
)
from udfs.replay.client_pace import Pace
from udfs.replay.closed_unit import Unit, Work, first_above, readable_to
from udfs.replay.fetch_read import AS_CAPTURED, read_partition
from udfs.replay.partition_log import NEVER
from udfs.replay.timeline import Timeline, add_up_held, advance, hold, mark
from udfs.wire.arrays import Floats, Ints, Record, Records, read_only
from udfs.wire.kernel import kernel


class Rules(NamedTuple):
    """What each lane makes of the settings, int64[lanes] (record_us: float64[lanes])."""

    limit: Ints  # record bytes of a response
    partition_max_bytes: Ints  # AS_CAPTURED leaves the partition's own
    only_first: Ints
    min_bytes: Ints
    max_wait_us: Ints
    max_poll_records: Ints
    overlaps: Ints  # 1: the records of the last poll() are worked on while the next fetch is under way
    profile: Ints
    order: Ints
    in_session: Ints
    seed: Ints
    record_us: Floats


class Course(NamedTuple):
    """Begin and end of the unit's capture (us), 1 where its first fetch opens a session, and a lane's most requests."""

    begin: int
    horizon: int
    opens: int
    most_requests: int


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


NO_BACKLOG = -1
STATE = np.dtype([(name, np.int64) for name in ("now", "busy_until", "known", "in_session", "turn", "asked", "sent")])


@kernel
def most_of(unit: Unit, rules: Rules, lane: int, partition: int) -> int:
    """The partition's limit in the lane."""
    most: int = rules.partition_max_bytes[lane]
    captured: int = unit.partition_max_bytes[partition]
    return captured if most == AS_CAPTURED else most


@kernel
def want(unit: Unit, rules: Rules, lane: int, work: Work, state: Record) -> int:
    """Note which partitions the client asks for now; returns how many."""
    count = 0
    for p in range(len(unit.joins)):
        if work.asked_at[p] == NEVER and unit.joins[p] <= state.now:
            work.asked_at[p] = state.now
            work.client[state.known] = p
            state.known += 1
        is_free = rules.profile[lane] != JAVA_3 or work.taken_at[p] <= state.now
        work.wanted[p] = 1 if work.asked_at[p] != NEVER and state.now <= unit.leaves[p] and is_free else 0
        count += work.wanted[p]
    return count


@kernel
def ask_by_session(work: Work, state: Record) -> None:
    """The session's order (FetchSession): what is new comes last; what the client does not want is forgotten."""
    state.in_session = remove_absent(work.session, state.in_session, work.wanted)
    for i in range(state.in_session):
        work.spare[work.session[i]] = 1
    for i in range(state.known):
        p = work.client[i]
        if work.wanted[p] == 1 and work.spare[p] == 0:
            work.session[state.in_session] = p
            state.in_session += 1
    for i in range(state.in_session):
        work.spare[work.session[i]] = 0
        work.request[i] = work.session[i]
    state.asked = state.in_session


@kernel
def ask_by_client(rules: Rules, lane: int, work: Work, state: Record) -> None:
    """The client's order, as the request names the partitions."""
    turns = rules.order[lane] == CLIENT and rules.profile[lane] == LIBRDKAFKA
    state.asked = 0
    for i in range(state.known):
        p = work.client[(state.turn + i) % state.known if turns else i]
        if work.wanted[p] == 1:
            work.request[state.asked] = p
            state.asked += 1
    state.turn = (state.turn + 1) % state.known if turns else 0
    if rules.order[lane] == SHUFFLE:
        shuffle(work.request, state.asked, work.random)


@kernel
def ask(rules: Rules, lane: int, work: Work, state: Record) -> None:
    """Put the wanted partitions into the order in which the broker reads them."""
    if rules.order[lane] == CLIENT and rules.in_session[lane] == 1:
        ask_by_session(work, state)
    else:
        ask_by_client(rules, lane, work, state)


@kernel
def read(unit: Unit, rules: Rules, lane: int, work: Work, asked: int, time: int) -> int:
    """ReplicaManager.readFromLog for the request at that time, into work.got; returns record bytes in all."""
    limit, total, min_one = rules.limit[lane], 0, True
    for i in range(asked):
        p = work.request[i]
        begin, end = work.position[p], readable_to(unit, work, p, time)
        first_batch = unit.starts[begin + 1] - unit.starts[begin] if end > begin else 0
        adjusted = min(most_of(unit, rules, lane, p), limit)
        got = read_partition(adjusted, first_batch, unit.starts[end] - unit.starts[begin], min_one)
        work.got[i] = got
        total += got
        limit = max(0, limit - got)
        min_one = min_one and got == 0 and rules.only_first[lane] == 0
    return total


@kernel
def answered_at(unit: Unit, rules: Rules, lane: int, work: Work, asked: int, total: int, now: int) -> int:
    """When the broker answers a fetch that came now and found `total` bytes: DelayedFetch.tryComplete.

    A parked fetch counts what is there up to each partition's limit, without the request's.
    """
    least, deadline = min(rules.min_bytes[lane], rules.limit[lane]), now + rules.max_wait_us[lane]
    time = now
    while total < least and time < deadline:
        total, following = 0, deadline
        for i in range(asked):
            p = work.request[i]
            begin, end = work.position[p], readable_to(unit, work, p, time)
            total += min(unit.starts[end] - unit.starts[begin], most_of(unit, rules, lane, p))
            if end < unit.end[p]:
                following = min(following, unit.visible[end])
        if total < least:
            time = following
    return time


@kernel
def take(unit: Unit, rules: Rules, lane: int, work: Work, state: Record, course: Course, ready: int) -> int:
    """Give the client what was read, which it can turn to when it is `ready`; returns when it asks again."""
    start = max(ready, state.busy_until)
    served = records = 0
    last = start
    for i in range(state.asked):
        p = work.request[i]
        begin = work.position[p]
        work.position[p] = first_above(unit.starts, begin, unit.end[p] + 1, unit.starts[begin] + work.got[i]) - 1
        if work.got[i] == 0:
            continue
        work.served[served], work.held[p] = p, work.got[i]
        served += 1
        records += unit.records[work.position[p]] - unit.records[begin]
        polls = (records - 1) // rules.max_poll_records[lane] * rules.max_poll_records[lane]
        work.taken_at[p] = start + round(rules.record_us[lane] * (polls if rules.overlaps[lane] == 1 else records))
        last = max(last, work.taken_at[p])
    if served > 0:
        state.busy_until = start + round(rules.record_us[lane] * records)
    rotate(rules, lane, work, state, served, course.opens == 1 and state.sent == 0)
    return ready if rules.profile[lane] == JAVA_3 else last


@kernel
def rotate(rules: Rules, lane: int, work: Work, state: Record, served: int, opens: bool) -> None:
    """Change the order for the next request: of the partitions that were given records, or by KIP-74's suggestion.

    opens: a full response opens the session, and moves nothing in it.
    """
    order = rules.order[lane]
    if order == CLIENT and rules.profile[lane] != LIBRDKAFKA:
        move_to_end(work.client, state.known, work.served, served, work.spare)
        if not opens:
            move_to_end(work.session, state.in_session, work.served, served, work.spare)
    elif order == FIRST_EMPTY:
        first = first_without(work, state.asked)
        for i in range(state.known):
            if first >= 0 and work.client[i] == first:
                begin_with(work.client, state.known, i, work.spare)
                break


@kernel
def first_without(work: Work, asked: int) -> int:
    """The first partition behind one with records that came empty, -1 for none."""
    seen, first = False, -1
    for i in range(asked):
        seen |= work.got[i] > 0
        if seen and work.got[i] == 0 and first < 0:
            first = work.request[i]
    return first


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
    following = take(unit, rules, lane, work, state, course, time + round(pace.gap))
    if size > 0:
        hold_buffered(out.timeline, lane, work, time)
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
