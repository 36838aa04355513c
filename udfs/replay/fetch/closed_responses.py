"""The responses that a reader of the closed loop gets, kept one by one for replays that go on from them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.replay.fetch.closed_changes import GO_ON
from udfs.replay.fetch.closed_unit import Unit, Work, first_above
from udfs.time_units import ALWAYS
from udfs.wire.arrays import Ints, Record
from udfs.wire.kernel import kernel


class Kept(NamedTuple):
    """Responses by lane, int64[lanes, room] each, those of a connection in time order.

    connection: its number. asked, came: when the fetch was sent and its response was there (us). drained: when the
    client had taken all of it and could ask again for the last of its partitions, or what it gave up of it was gone;
    NEVER where nothing tells that. bytes: of records. records: that the client got on by. partitions: with records.
    total: int64[lanes], responses, also those that there was no room for.
    """

    connection: Ints
    asked: Ints
    came: Ints
    drained: Ints
    bytes: Ints
    records: Ints
    partitions: Ints
    total: Ints


def no_responses(lanes: int, room: int = 0) -> Kept:
    """Before any response has come."""
    columns = [np.zeros((lanes, room), np.int64) for _ in Kept._fields[:-1]]
    return Kept._make([*columns, np.zeros(lanes, np.int64)])


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
def gone_by(unit: Unit, work: Work, state: Record, partition: int, time: int) -> int:
    """When what came of the partition is gone by which the client gives it up, or seeks elsewhere, before it has taken
    that; ALWAYS where it does not by the time.
    """
    if work.moved[partition] == 1:
        for at in range(state.changed - 1, -1, -1):
            if unit.change_what[at] == partition and unit.change_to[at] != GO_ON:
                return int(unit.change_until[at])
    for at in range(state.changed, len(unit.change_time)):
        if unit.change_time[at] >= time:
            break
        if unit.change_what[at] == partition and unit.change_to[at] != GO_ON:
            return int(unit.change_until[at])
    return ALWAYS


@kernel
def keep_drained(kept: Kept, unit: Unit, lane: int, work: Work, state: Record, following: int) -> None:
    """Note when the response that was kept last is drained; the client asks again at `following`."""
    at = kept.total[lane] - 1
    if at >= kept.asked.shape[1]:
        return
    drained = following if kept.partitions[lane, at] > 0 else kept.came[lane, at]
    for i in range(state.asked):
        p = work.request[i]
        if work.got[i] > 0:
            gone = gone_by(unit, work, state, p, work.taken_at[p])
            drained = max(drained, work.taken_at[p] if gone == ALWAYS else gone)
    kept.drained[lane, at] = drained
