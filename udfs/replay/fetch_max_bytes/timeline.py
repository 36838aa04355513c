"""What a replayed reader got, lacked and held over its time, in memory that does not grow with the time.

A reader's time goes by while it is there. Of what lies between two of its stays, hours maybe, only as much counts as
the stay before it lasted: in a slower lane the reader goes on reading when the captured one has gone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints, edges
from udfs.kernels.kernel import kernel
from udfs.replay.fetch_max_bytes import fairness
from udfs.replay.fetch_max_bytes.closed_unit import Unit, Work, first_above, readable_to

MOST_BUCKETS, LEAST_BUCKETS = 256, 4
TICKS = 4096
"""Pieces of a timeline, some to a bucket, for what a reader holds."""
CELLS = 1 << 22


class Timeline(NamedTuple):
    """Buckets of a reader's time by partition and lane; when they are full, two become one, and each is twice as long.

    served, lag, wait: int64[lanes, partitions, buckets]: bytes, bytes at the end, us. held: int64[lanes, TICKS], most
    bytes held at once. bucket, width: int64[lanes], the first bucket that is not over, and how long a bucket is (us).
    stays, before: int64[stays]: when each stay begins, and how much of the reader's time has gone by then (us).
    """

    served: Ints
    lag: Ints
    wait: Ints
    held: Ints
    bucket: Ints
    width: Ints
    stays: Ints
    before: Ints


def new_timeline(lanes: int, partitions: int, begins: Ints, ends: Ints) -> Timeline:
    """A timeline whose buckets at first cover a reader's time, from when its connections begin and end (us)."""
    buckets = MOST_BUCKETS
    while buckets > LEAST_BUCKETS and lanes * partitions * buckets > CELLS:
        buckets //= 2
    stays, before, whole = stays_of(begins, ends)
    ticks = TICKS // buckets
    width = (whole // buckets // ticks + 1) * ticks
    planes = (np.zeros((lanes, partitions, buckets), np.int64) for _ in range(3))
    held = np.zeros((lanes, TICKS), np.int64)
    return Timeline._make([*planes, held, np.zeros(lanes, np.int64), np.full(lanes, width), stays, before])


def stays_of(begins: Ints, ends: Ints) -> tuple[Ints, Ints, int]:
    """When a reader's stays begin, how much of its time has gone by then, and its time as captured (us).

    Connections that overlap are one stay.
    """
    order = np.argsort(begins, kind="stable")
    opened, over = begins[order], np.maximum.accumulate(ends[order])
    first = np.flatnonzero(np.append(True, opened[1:] > over[:-1]))
    stays = opened[first]
    lasted = over[np.append(first[1:], len(over)) - 1] - stays
    counted = np.minimum(np.maximum(2 * lasted[:-1], 1), np.diff(stays))
    before = edges(counted)
    return stays, before, int(before[-1] + lasted[-1])


@kernel
def own_time(line: Timeline, time: int) -> int:
    """How much of the reader's time has gone by (us); between two stays, no more than what counts of the gap."""
    stay = max(first_above(line.stays, 0, len(line.stays), time) - 1, 0)
    gone: int = line.before[stay] + time - line.stays[stay]
    return gone if stay + 1 == len(line.stays) else min(gone, line.before[stay + 1] - 1)


@kernel
def moment_of(line: Timeline, gone: int) -> int:
    """When so much of the reader's time has gone by (us)."""
    stay = first_above(line.before, 0, len(line.before), gone) - 1
    return line.stays[stay] + gone - line.before[stay]


@kernel
def halve(line: Timeline, lane: int) -> None:
    """Make one bucket of two."""
    partitions, buckets = line.served.shape[1:]
    for p in range(partitions):
        for b in range(buckets):
            one, two = (2 * b, 2 * b + 1) if 2 * b < buckets else (-1, -1)
            line.served[lane, p, b] = line.served[lane, p, one] + line.served[lane, p, two] if one >= 0 else 0
            line.lag[lane, p, b] = line.lag[lane, p, two] if one >= 0 else 0
            line.wait[lane, p, b] = max(line.wait[lane, p, one], line.wait[lane, p, two]) if one >= 0 else 0
    halve_ticks(line.held[lane])
    line.bucket[lane] //= 2
    line.width[lane] *= 2


@kernel
def halve_ticks(ticks: Ints) -> None:
    """Make one tick of two: the greater."""
    half = len(ticks) // 2
    for i in range(half):
        ticks[i] = max(ticks[2 * i], ticks[2 * i + 1])
    ticks[half:] = 0


@kernel
def make_room(line: Timeline, lane: int, gone: int) -> None:
    """Have a bucket for when so much of the reader's time has gone by."""
    while gone >= line.width[lane] * line.served.shape[2]:
        halve(line, lane)


@kernel
def mark(line: Timeline, partition: int, lane: int, time: int, got: int) -> None:
    """Note bytes that came of a partition."""
    gone = own_time(line, time)
    make_room(line, lane, gone)
    line.served[lane, partition, gone // line.width[lane]] += got


@kernel
def hold(line: Timeline, lane: int, time: int, until: int, size: int) -> None:
    """Note bytes that the client holds from one time to another."""
    begin, end = own_time(line, time), own_time(line, until)
    make_room(line, lane, end)
    tick = line.width[lane] * line.served.shape[2] // line.held.shape[1]
    for i in range(begin // tick, end // tick + 1):
        line.held[lane, i] = max(line.held[lane, i], size)


@kernel
def advance(unit: Unit, work: Work, sums: fairness.Sums, line: Timeline, lane: int, time: int) -> None:
    """Note lag and waits at the ends of the buckets that are over at that time."""
    gone = own_time(line, time)
    make_room(line, lane, gone)
    while (line.bucket[lane] + 1) * line.width[lane] <= gone:
        end = moment_of(line, (line.bucket[lane] + 1) * line.width[lane])
        for p in range(len(unit.number)):
            if work.asked_at[p] <= end and work.assigned[p] == 1:
                note_lag(unit, work, sums, line, lane, p, end)
        line.bucket[lane] += 1


@kernel
def note_lag(unit: Unit, work: Work, sums: fairness.Sums, line: Timeline, lane: int, partition: int, end: int) -> None:
    """Note a partition's lag and wait at the end of the bucket at hand."""
    row, begin = unit.number[partition], work.position[partition]
    behind = readable_to(unit, work, partition, end)
    line.lag[lane, row, line.bucket[lane]] += unit.starts[behind] - unit.starts[begin]
    since = sums.waiting_since[row, lane]
    if since != fairness.SERVED:
        line.wait[lane, row, line.bucket[lane]] = max(line.wait[lane, row, line.bucket[lane]], end - since)


def align(line: Timeline) -> None:
    """Give all lanes buckets of one length: that of the one whose are longest."""
    for lane in range(len(line.width)):
        while line.width[lane] < line.width.max():
            halve(line, lane)
