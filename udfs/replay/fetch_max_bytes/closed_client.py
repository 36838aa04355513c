"""The client of the closed loop: what it asks for, in which order, and when.

The rules are, of a Java consumer, those of AbstractFetch.prepareFetchRequests and FetchCollector of kafka-clients 4.3
(java-3.9: of 3.9), of a follower those of kafka.server.AbstractFetcherThread, Kafka 4.3. In a session the broker reads
in an order of its own (org.apache.kafka.server.FetchContext.IncrementalFetchContext, Kafka 4.3).
"""

from __future__ import annotations

import numpy as np

from udfs.columns.arrays import Ints, Record
from udfs.columns.time_units import NEVER
from udfs.kernels.kernel import kernel
from udfs.replay.fetch_max_bytes.client_order import (
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
from udfs.replay.fetch_max_bytes.client_pace import Curves, time_of
from udfs.replay.fetch_max_bytes.closed_changes import GO_ON, LEAVE, REOPEN, STOP
from udfs.replay.fetch_max_bytes.closed_unit import NO_BACKLOG, Rules, Unit, Work, first_above

STATE = np.dtype(
    [
        (name, np.int64)
        for name in (
            "now", "in_flight", "sent_at", "read_at", "resume", "changed", "opens", "known", "in_session", "turn",
            "asked", "sent", "bytes",
        )
    ]
)  # fmt: skip
"""A node's state, one record of all that is a single number.

now: when something happens next (us). in_flight: 1 where that is its response. resume: until when the reader stands
still. changed: how many of the unit's changes have come. opens: 1 where the next response opens the session. sent,
bytes: requests that were sent, and record bytes that were read.
"""
APP = np.dtype(
    [(name, np.int64) for name in ("busy_until", "poll_at", "room", "done", "held_from", "held_until", "held")]
)
"""An application, one record: when it has worked on all records (us), when it last calls poll(), how many records more
that poll() can return, how many it has had; and the bytes that it holds, from when and until when.
"""


@kernel
def change(unit: Unit, lane: int, work: Work, state: Record, time: int, at_change: Ints) -> None:
    """Have the client begin to want, give up and seek what it did in the capture up to that time.

    at_change: int64[changes], where each partition was then in lane 0.
    """
    while state.changed < len(unit.change_time) and unit.change_time[state.changed] <= time:
        p, to = unit.change_what[state.changed], unit.change_to[state.changed]
        if p == REOPEN:
            state.in_session, state.opens = 0, 1
        elif p == STOP:
            state.resume = to
        else:
            at_change[state.changed] = work.position[p] if lane == 0 else at_change[state.changed]
            turn_to(work, state, p, come_from(unit, work, p, to))
        state.changed += 1


@kernel
def come_from(unit: Unit, work: Work, p: int, to: int) -> int:
    """Where a partition's change leads to: if it comes from another broker, to where it had been read there.

    What is left of its backlog there is its backlog here.
    """
    if to >= 0 and unit.follows[p] >= 0 and work.assigned[p] == 0 and work.asked_at[p] == NEVER:
        to = min(max(work.everywhere[unit.follows[p]] + unit.shift[p], unit.first[p]), unit.end[p])
        work.catch_up[p] = NEVER if to < unit.backlog_end[p] else NO_BACKLOG
    return to


@kernel
def turn_to(work: Work, state: Record, p: int, to: int) -> None:
    """One partition's change: what is buffered or under way of it is dropped, as SubscriptionState and Fetcher do."""
    if to == LEAVE:
        work.assigned[p] = 0
        state.known = remove_absent(work.client, state.known, work.assigned)
    elif work.assigned[p] == 0:
        work.assigned[p] = 1
        work.client[state.known] = p
        state.known += 1
    if to != GO_ON:
        work.moved[p], work.taken_at[p] = 1, 0
        work.position[p] = work.position[p] if to == LEAVE else to


@kernel
def want(rules: Rules, lane: int, work: Work, state: Record) -> int:
    """Note which partitions the client asks for now; returns how many."""
    count = 0
    for p in range(len(work.wanted)):
        is_free = rules.profile[lane] != JAVA_3 or work.taken_at[p] <= state.now
        work.wanted[p] = 1 if work.assigned[p] == 1 and is_free else 0
        work.moved[p] = 0
        if work.wanted[p] == 1 and work.asked_at[p] == NEVER:
            work.asked_at[p] = state.now
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
def work_on(rules: Rules, lane: int, taking: Curves, which: int, app: Record, records: int) -> int:
    """How long the application works on the next `records` records (us)."""
    each = rules.record_us[lane]
    return round(each * records if each >= 0 else time_of(taking, which, app.done, records))


@kernel
def poll(rules: Rules, lane: int, taking: Curves, which: int, app: Record, records: int, ready: int) -> int:
    """Have the application take records that are in the buffer at `ready`; returns when they have left it.

    FetchCollector.collectFetch: one poll() returns at most max.poll.records of all that is buffered, of whatever node,
    in the order in which it came; the next poll() is called when those have been worked on. They leave the buffer in
    the poll() that looks for more behind the last of them: the one that returns it, unless that may return no more.
    Where work and fetching do not overlap, they leave it when they have been worked on.
    """
    if app.room == 0 or ready > app.poll_at:
        app.poll_at, app.room = max(ready, app.busy_until), rules.max_poll_records[lane]
    begin = max(app.busy_until, app.poll_at)
    if records > app.room:
        more = (records - app.room - 1) // rules.max_poll_records[lane] + 1
        before = app.room + (more - 1) * rules.max_poll_records[lane]
        app.poll_at = begin + work_on(rules, lane, taking, which, app, before)
        app.room += more * rules.max_poll_records[lane]
    app.room -= records
    app.busy_until = begin + work_on(rules, lane, taking, which, app, records)
    app.done += records
    return app.poll_at if rules.overlaps[lane] == 1 and app.room > 0 else app.busy_until


@kernel
def next_poll(rules: Rules, lane: int, taking: Curves, which: int, app: Record, time: int) -> int:
    """When poll() is called next, from `time` on: a Java client sends fetches in it alone (Fetcher.sendFetches).

    Up to the last poll() there is one whenever max.poll.records of what is buffered have been worked on.
    """
    at: int = app.poll_at
    if rules.overlaps[lane] == 0 or at < time:
        at = max(time, app.busy_until)
        return at
    most = rules.max_poll_records[lane]
    had = app.done - (most - app.room)
    while had >= most:
        each = rules.record_us[lane]
        before = at - round(each * most if each >= 0 else time_of(taking, which, had - most, most))
        if before < time:
            break
        at, had = before, had - most
    return at


@kernel
def take(
    unit: Unit, rules: Rules, lane: int, work: Work, state: Record, taking: Curves, which: int, app: Record, ready: int
) -> int:  # fmt: skip
    """Give the client what was read, to be taken from `ready` on; returns when it asks again."""
    served, last = 0, ready
    polled = next_poll(rules, lane, taking, which, app, ready)
    for i in range(state.asked):
        p = work.request[i]
        work.turn[p] = max(ready, app.busy_until)
        if work.moved[p] == 1:
            continue
        begin = work.position[p]
        work.position[p] = first_above(unit.starts, begin, unit.end[p] + 1, unit.starts[begin] + work.got[i]) - 1
        if work.got[i] == 0:
            continue
        work.served[served], work.held[p] = p, work.got[i]
        served += 1
        records = unit.records[work.position[p]] - unit.records[begin]
        work.taken_at[p] = poll(rules, lane, taking, which, app, records, ready) if records > 0 else ready
        last = max(last, work.taken_at[p])
    rotate(rules, lane, work, state, served)
    # Where work and fetching do not overlap, the captured pace has the work of any client before its next fetch.
    is_beside = rules.profile[lane] == JAVA_3 and rules.overlaps[lane] == 1
    return last if served > 0 and not is_beside else polled


@kernel
def rotate(rules: Rules, lane: int, work: Work, state: Record, served: int) -> None:
    """Change the order for the next request: of the partitions that were given records, or by KIP-74's suggestion.

    A full response opens the session, and moves nothing in it.
    """
    order = rules.order[lane]
    if order == CLIENT and rules.profile[lane] != LIBRDKAFKA:
        move_to_end(work.client, state.known, work.served, served, work.spare)
        if state.opens == 0:
            move_to_end(work.session, state.in_session, work.served, served, work.spare)
    elif order == FIRST_EMPTY:
        first = first_without(work, state.asked)
        for i in range(state.known):
            if first >= 0 and work.client[i] == first:
                begin_with(work.client, state.known, i, work.spare)
                break
    state.opens = 0


@kernel
def first_without(work: Work, asked: int) -> int:
    """The first partition behind one with records that came empty, -1 for none."""
    seen, first = False, -1
    for i in range(asked):
        seen |= work.got[i] > 0
        if seen and work.got[i] == 0 and first < 0:
            first = work.request[i]
    return first
