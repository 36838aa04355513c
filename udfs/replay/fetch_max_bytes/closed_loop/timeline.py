"""What a replayed reader got, lacked and held over its time, in memory that does not grow with the time.

A reader's time goes by while the reader is there. A gap between two of its stays, which may be hours, counts for at
most as long as the stay before it lasted: in a slower lane the reader still reads after the captured one has gone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints, Records, stretch_edges
from udfs.columns.records import new_records
from udfs.columns.time_units import NEVER
from udfs.kernels.kernel import kernel
from udfs.replay.fetch_max_bytes.closed_loop.state import (
    LINE,
    PARTITION_BUCKET,
    STAY,
    ReaderSim,
    Timeline,
    bytes_of_batches,
    first_above,
    readable_to,
)

BUCKETS, LEAST_BUCKETS = 256, 4
TICKS = 4096
"""The number of ticks of a timeline, for held bytes. A bucket has several ticks."""
CELLS = 1 << 22
"""The most buckets of a timeline over all lanes and partitions. With more, each partition has fewer buckets, down to
LEAST_BUCKETS."""


class Stays(NamedTuple):
    """A reader's stays: STAY[n]. whole: the reader's whole time as captured, us."""

    stays: Records
    whole: int


def buckets_within_cells(lanes: int, partitions: int, buckets: int) -> int:
    """How many buckets a timeline has for each partition: at most `buckets`, and within CELLS."""
    while buckets > LEAST_BUCKETS and lanes * partitions * buckets > CELLS:
        buckets //= 2
    return buckets


def new_timeline(lanes: int, partitions: int, stays: Stays, buckets: int = BUCKETS) -> Timeline:
    """A timeline whose buckets cover a reader's time as captured."""
    buckets = buckets_within_cells(lanes, partitions, buckets)
    ticks = TICKS // buckets
    return Timeline(
        buckets=np.zeros((lanes, partitions, buckets), PARTITION_BUCKET),
        held=np.zeros((lanes, TICKS), np.int64),
        lanes=new_records(LINE, lanes, width=(stays.whole // buckets // ticks + 1) * ticks),
        stays=stays.stays,
    )


def stays_of(begins: Ints, ends: Ints) -> Stays:
    """A reader's stays, from the begins and ends of its connections. Connections that overlap are one stay.

    begins, ends: int64[connections], us.
    """
    order = np.argsort(begins, kind="stable")
    opened, over = begins[order], np.maximum.accumulate(ends[order])
    first = np.flatnonzero(np.append(True, opened[1:] > over[:-1]))
    begin = opened[first]
    lasted = over[np.append(first[1:], len(over)) - 1] - begin
    counted = np.minimum(np.maximum(2 * lasted[:-1], 1), np.diff(begin))
    before = stretch_edges(counted)
    return Stays(new_records(STAY, len(begin), begin=begin, before=before), int(before[-1] + lasted[-1]))


def stays_of_timeline(line: Timeline, lane: int) -> Stays:
    """The stays from which a timeline was made. lane: one that has not been replayed."""
    return Stays(line.stays, int(line.lanes["width"][lane]) * line.buckets.shape[2] - 1)


@kernel
def reader_time(line: Timeline, time: int) -> int:
    """How much of the reader's time has gone by at `time` (us). In a gap between two stays, it stops at the part of the
    gap that counts.
    """
    number = max(first_above(line.stays["begin"], 0, len(line.stays), time) - 1, 0)
    stay = line.stays[number]
    gone: int = stay.before + time - stay.begin
    return gone if number + 1 == len(line.stays) else min(gone, line.stays[number + 1].before - 1)


@kernel
def moment_of(line: Timeline, gone: int) -> int:
    """The moment (us) at which `gone` us of the reader's time have gone by."""
    stay = line.stays[first_above(line.stays["before"], 0, len(line.stays), gone) - 1]
    return stay.begin + gone - stay.before


@kernel
def halve_buckets(line: Timeline, lane: int) -> None:
    """Merge each two neighbouring buckets of a lane into one that is twice as wide."""
    partitions, buckets = line.buckets.shape[1:]
    for p in range(partitions):
        for b in range(buckets):
            bucket = line.buckets[lane, p, b]
            if 2 * b < buckets:
                one, two = line.buckets[lane, p, 2 * b], line.buckets[lane, p, 2 * b + 1]
                bucket.bytes, bucket.lag, bucket.wait = one.bytes + two.bytes, two.lag, max(one.wait, two.wait)
            else:
                bucket.bytes, bucket.lag, bucket.wait = 0, 0, 0
    halve_ticks(line.held[lane])
    line.lanes[lane].bucket //= 2
    line.lanes[lane].width *= 2


@kernel
def halve_ticks(ticks: Ints) -> None:
    """Merge each two neighbouring ticks into one, with the greater of the two values. ticks: int64[TICKS]."""
    half = len(ticks) // 2
    for i in range(half):
        ticks[i] = max(ticks[2 * i], ticks[2 * i + 1])
    ticks[half:] = 0


@kernel
def make_room_for_buckets(line: Timeline, lane: int, gone: int) -> None:
    """Widen the lane's buckets until they cover `gone` us of the reader's time."""
    while gone >= line.lanes[lane].width * line.buckets.shape[2]:
        halve_buckets(line, lane)


@kernel
def note_bytes(line: Timeline, lane: int, number: int, time: int, size: int) -> None:
    """Add bytes of a partition that came at `time` (us). number: the partition's number."""
    gone = reader_time(line, time)
    make_room_for_buckets(line, lane, gone)
    line.buckets[lane, number, gone // line.lanes[lane].width].bytes += size


@kernel
def note_held(line: Timeline, lane: int, time: int, until: int, size: int) -> None:
    """Note `size` bytes that the client holds from `time` to `until` (us)."""
    begin, end = reader_time(line, time), reader_time(line, until)
    make_room_for_buckets(line, lane, end)
    tick = line.lanes[lane].width * line.buckets.shape[2] // line.held.shape[1]
    for i in range(begin // tick, end // tick + 1):
        line.held[lane, i] = max(line.held[lane, i], size)


@kernel
def advance_timeline(sim: ReaderSim, lane: int, time: int) -> None:
    """Note lags and waits at the end of each bucket that is over at `time` (us)."""
    line, state = sim.outcome.timeline, sim.state
    gone = reader_time(line, time)
    make_room_for_buckets(line, lane, gone)
    of_lane = line.lanes[lane]
    while (of_lane.bucket + 1) * of_lane.width <= gone:
        end = moment_of(line, (of_lane.bucket + 1) * of_lane.width)
        for p in range(len(state.partitions)):
            if state.partitions[p].requested_at <= end and state.partitions[p].is_assigned == 1:
                note_lag(sim, lane, p, end)
        of_lane.bucket += 1


@kernel
def note_lag(sim: ReaderSim, lane: int, partition: int, end: int) -> None:
    """Note a partition's lag and wait at `end` (us), the end of the lane's current bucket."""
    line, number = sim.outcome.timeline, sim.unit.partitions[partition].number
    bucket = line.buckets[lane, number, line.lanes[lane].bucket]
    bucket.lag += bytes_of_batches(sim, sim.state.partitions[partition].position, readable_to(sim, partition, end))
    since = sim.outcome.sums.partitions[number, lane].waiting_since
    if since != NEVER:
        bucket.wait = max(bucket.wait, end - since)


@kernel
def align_lanes(line: Timeline) -> None:
    """Give all lanes buckets of the same width: the greatest of any lane."""
    longest = 0
    for lane in range(len(line.lanes)):
        longest = max(longest, line.lanes[lane].width)
    for lane in range(len(line.lanes)):
        while line.lanes[lane].width < longest:
            halve_buckets(line, lane)
