"""What a replayed reader got, lacked and held over time, in memory that does not grow with the time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.replay.fetch import fairness
from udfs.replay.fetch.closed_unit import Unit, Work, readable_to
from udfs.wire.arrays import Ints
from udfs.wire.kernel import kernel

MOST_BUCKETS, LEAST_BUCKETS = 64, 4
TICKS = 64
"""Pieces of a bucket, for what a reader holds."""
CELLS = 1 << 22


class Timeline(NamedTuple):
    """Buckets of time by partition and lane; when they are full, two become one, and each is twice as long.

    served, lag, wait: int64[lanes, partitions, buckets]: bytes, bytes at the end, us. held: int64[lanes, ticks], most
    bytes held at once. bucket, width: int64[lanes], the first bucket that is not over, and how long a bucket is (us).
    begin: int64[1] (us).
    """

    served: Ints
    lag: Ints
    wait: Ints
    held: Ints
    bucket: Ints
    width: Ints
    begin: Ints


def new_timeline(lanes: int, partitions: int, begin: int, end: int) -> Timeline:
    """A timeline whose buckets at first cover twice the time from begin to end (us)."""
    buckets = MOST_BUCKETS
    while buckets > LEAST_BUCKETS and lanes * partitions * buckets > CELLS:
        buckets //= 2
    width = max(-(-2 * (end - begin) // buckets), TICKS) // TICKS * TICKS + TICKS
    planes = (np.zeros((lanes, partitions, buckets), np.int64) for _ in range(3))
    held = np.zeros((lanes, buckets * TICKS), np.int64)
    flat = np.zeros(lanes, np.int64), np.full(lanes, width), np.full(1, begin)
    return Timeline._make([*planes, held, *flat])


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
def make_room(line: Timeline, lane: int, time: int) -> None:
    """Have a bucket for that time."""
    while time - line.begin[0] >= line.width[lane] * line.served.shape[2]:
        halve(line, lane)


@kernel
def mark(line: Timeline, partition: int, lane: int, time: int, got: int) -> None:
    """Note bytes that came of a partition."""
    make_room(line, lane, time)
    line.served[lane, partition, (time - line.begin[0]) // line.width[lane]] += got


@kernel
def hold(line: Timeline, lane: int, time: int, until: int, size: int) -> None:
    """Note bytes that the client holds from one time to another."""
    make_room(line, lane, until)
    tick = line.width[lane] // TICKS
    for i in range((time - line.begin[0]) // tick, (until - line.begin[0]) // tick + 1):
        line.held[lane, i] = max(line.held[lane, i], size)


@kernel
def advance(unit: Unit, work: Work, sums: fairness.Sums, line: Timeline, lane: int, time: int) -> None:
    """Note lag and waits at the ends of the buckets that are over at that time."""
    make_room(line, lane, time)
    while line.begin[0] + (line.bucket[lane] + 1) * line.width[lane] <= time:
        end = line.begin[0] + (line.bucket[lane] + 1) * line.width[lane]
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
