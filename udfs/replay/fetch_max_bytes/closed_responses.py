"""The responses that a reader of the closed loop gets, kept one by one for replays that go on from them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints, Record
from udfs.kernels.kernel import kernel
from udfs.replay.fetch_max_bytes.closed_changes import GO_ON
from udfs.replay.fetch_max_bytes.closed_unit import Unit, Work, first_above


class GivenUp(NamedTuple):
    """What came of partitions that the client left or sought elsewhere before it had taken it: int64[lanes, room] each.

    response: its place in Kept. partition: its number. since, until: when the capture last asked for the partition
    before, and asks for it again, or NEVER. turn: when the application comes to what it got of it, to drop it if it has
    lost the partition. total: int64[lanes].
    """

    response: Ints
    partition: Ints
    since: Ints
    until: Ints
    turn: Ints
    total: Ints


class Kept(NamedTuple):
    """Responses by lane, int64[lanes, room] each, those of a connection in time order.

    connection: its number. asked, came: when the fetch was sent and its response was there (us). drained: when the
    client had taken all of it that is not in `given_up`, and could ask again for the last of those partitions. bytes:
    of records. records: that the client got on by. partitions: with records. total: int64[lanes], responses, also those
    that there was no room for.
    """

    connection: Ints
    asked: Ints
    came: Ints
    drained: Ints
    bytes: Ints
    records: Ints
    partitions: Ints
    total: Ints
    given_up: GivenUp


def no_responses(lanes: int, room: int = 0, changes: int = 0) -> Kept:
    """Before any response has come. changes: of what the reader wants; of each something may be given up twice, what
    is buffered and what is under way.
    """
    columns, given_up = (
        [np.zeros((lanes, most), np.int64) for _ in names]
        for names, most in ((Kept._fields[:-2], room), (GivenUp._fields[:-1], 2 * changes if room else 0))
    )
    totals = np.zeros((2, lanes), np.int64)
    return Kept._make([*columns, totals[0], GivenUp._make([*given_up, totals[1]])])


@kernel
def keep(kept: Kept, unit: Unit, lane: int, work: Work, state: Record, connection: int) -> None:
    """Keep a response that has come, before the client takes it. state: the connection's, with the request's times."""
    at = kept.total[lane]
    kept.total[lane] += 1
    if at >= kept.asked.shape[1]:
        return
    size = records = partitions = 0
    for i in range(state.asked):
        p, got = work.request[i], work.got[i]
        if got > 0:
            begin = work.position[p]
            end = first_above(unit.starts, begin, unit.end[p] + 1, unit.starts[begin] + got) - 1
            size, partitions = size + got, partitions + 1
            records += unit.records[end] - unit.records[begin]
    kept.connection[lane, at], kept.asked[lane, at], kept.came[lane, at] = connection, state.sent_at, state.now
    kept.bytes[lane, at], kept.records[lane, at], kept.partitions[lane, at] = size, records, partitions


@kernel
def given_up_by(unit: Unit, work: Work, state: Record, partition: int, time: int) -> int:
    """The change by which the client gives up what came of the partition, or seeks elsewhere, before it has taken that;
    -1 where it does not by the time.
    """
    if work.moved[partition] == 1:
        for at in range(state.changed - 1, -1, -1):
            if unit.change_what[at] == partition and unit.change_to[at] != GO_ON:
                return at
    for at in range(state.changed, len(unit.change_time)):
        if unit.change_time[at] >= time:
            break
        if unit.change_what[at] == partition and unit.change_to[at] != GO_ON:
            return at
    return -1


@kernel
def keep_given_up(found: GivenUp, unit: Unit, lane: int, work: Work, response: int, partition: int, by: int) -> bool:
    """Note what is given up of a response by a change; returns whether there was room."""
    at = found.total[lane]
    if at >= found.response.shape[1]:
        return False
    found.response[lane, at], found.partition[lane, at] = response, unit.number[partition]
    found.since[lane, at], found.until[lane, at] = unit.change_since[by], unit.change_until[by]
    found.turn[lane, at] = work.turn[partition]
    found.total[lane] += 1
    return True


@kernel
def keep_drained(kept: Kept, unit: Unit, lane: int, work: Work, state: Record, following: int) -> None:
    """Note when the response that was kept last is drained; the client asks again at `following`."""
    at = kept.total[lane] - 1
    if at >= kept.asked.shape[1]:
        return
    drained, taken = kept.came[lane, at], 0
    for i in range(state.asked):
        p = work.request[i]
        if work.got[i] > 0:
            by = given_up_by(unit, work, state, p, work.taken_at[p])
            if by < 0:
                drained, taken = max(drained, work.taken_at[p]), taken + 1
            elif not keep_given_up(kept.given_up, unit, lane, work, at, p, by):
                drained = max(drained, unit.change_until[by])
    is_whole = taken > 0 and taken == kept.partitions[lane, at]
    kept.drained[lane, at] = max(drained, following) if is_whole else drained
