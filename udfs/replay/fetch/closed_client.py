"""The client of the closed loop: what it asks for, in which order, and when (kafka-semantics 1.6, 1.7 and 3.5)."""

from __future__ import annotations

import numpy as np

from udfs.replay.fetch.client_order import (
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
from udfs.replay.fetch.closed_unit import Course, Rules, Unit, Work, first_above
from udfs.replay.fetch.partition_log import NEVER
from udfs.wire.arrays import Record
from udfs.wire.kernel import kernel

STATE = np.dtype([(name, np.int64) for name in ("now", "busy_until", "known", "in_session", "turn", "asked", "sent")])
"""A client's state, one record: its clock (us) and what else is one number."""


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
