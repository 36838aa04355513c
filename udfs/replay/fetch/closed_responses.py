"""The responses that a reader of the closed loop gets, kept one by one for replays that go on from them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.replay.fetch.closed_unit import Unit, Work
from udfs.replay.fetch.partition_log import NEVER
from udfs.wire.arrays import Ints, Record
from udfs.wire.kernel import kernel


class Kept(NamedTuple):
    """Responses by lane in time order, int64[lanes, room] each; what there is no room for is counted alone.

    asked, came: when the fetch was sent and its response was there (us). drained: when the client had taken all of it
    and could ask again for the last of its partitions, or NEVER where it gave one of them up. bytes: of records.
    records: that the client got on by. partitions: with records. total, read: int64[lanes], responses so far, and
    records.
    """

    asked: Ints
    came: Ints
    drained: Ints
    bytes: Ints
    records: Ints
    partitions: Ints
    total: Ints
    read: Ints


def no_responses(lanes: int, room: int = 0) -> Kept:
    """Before any response has come."""
    columns = [np.zeros((lanes, room), np.int64) for _ in Kept._fields[:-2]]
    return Kept._make([*columns, np.zeros(lanes, np.int64), np.zeros(lanes, np.int64)])


@kernel
def keep(kept: Kept, unit: Unit, lane: int, work: Work, state: Record, came: int, size: int, following: int) -> None:
    """Keep a response that the client has just been given; it asks again at `following`."""
    at = kept.total[lane]
    if at >= kept.asked.shape[1]:
        kept.total[lane] += 1
        return
    drained, partitions, given_up = following if size > 0 else came, 0, False
    for i in range(state.asked):
        p = work.request[i]
        if work.got[i] > 0:
            partitions += 1
            drained = max(drained, work.taken_at[p])
            given_up |= work.taken_at[p] > unit.leaves[p]
    read = 0
    for p in range(len(unit.joins)):
        read += unit.records[work.position[p]] - unit.records[unit.first[p]]
    kept.asked[lane, at], kept.came[lane, at], kept.bytes[lane, at] = state.now, came, size
    kept.drained[lane, at] = NEVER if given_up else drained
    kept.records[lane, at], kept.partitions[lane, at] = max(read - kept.read[lane], 0), partitions
    kept.read[lane] = read
    kept.total[lane] += 1
