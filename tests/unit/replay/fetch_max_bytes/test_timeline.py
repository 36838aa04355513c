"""A timeline covers any time in the same memory, and loses no byte."""

from __future__ import annotations

import numpy as np
import pytest

from udfs.replay.fetch_max_bytes.closed_loop.state import Timeline
from udfs.replay.fetch_max_bytes.closed_loop.timeline import (
    BUCKETS,
    CELLS,
    TICKS,
    align_lanes,
    make_room_for_buckets,
    moment_of,
    new_timeline,
    note_bytes,
    note_held,
    reader_time,
    stays_of,
)

HOUR = 3_600_000_000


def timeline(lanes: int, partitions: int, *connections: tuple[int, int]) -> Timeline:
    begins, ends = np.array(connections, np.int64).T
    return new_timeline(lanes, partitions, stays_of(begins, ends))


def marked(times: list[int]) -> Timeline:
    line = timeline(2, 1, (0, 1000))
    for time in times:
        note_bytes(line, 0, 0, time, 10)
    return line


@pytest.mark.parametrize("last", [10, 10_000, 10**9])
def test_buckets_double_until_the_last_time_is_in_one(last: int) -> None:
    line = marked([0, last // 2, last])
    assert line.buckets["bytes"][0].sum() == 30
    assert line.buckets["bytes"][0, 0, last // int(line.lanes["width"][0])] >= 10
    assert line.lanes["width"][0] % (TICKS // BUCKETS) == 0
    assert line.buckets.shape[2] == BUCKETS


def test_lanes_end_with_buckets_of_one_length() -> None:
    line = marked([0, 10**6])
    note_bytes(line, 1, 0, 5, 7)
    align_lanes(line)
    assert line.lanes["width"][0] == line.lanes["width"][1]
    assert line.buckets["bytes"].sum(axis=(1, 2)).tolist() == [20, 7]


def test_two_buckets_that_become_one_keep_the_sum_the_last_lag_and_the_longest_wait() -> None:
    line = timeline(1, 1, (0, 1000))
    line.buckets[0, 0, :4] = [(1, 9, 1), (2, 8, 5), (3, 7, 2), (4, 6, 0)]
    make_room_for_buckets(line, 0, int(line.lanes["width"][0]) * BUCKETS)
    assert line.buckets[0, 0, :3].tolist() == [(3, 8, 5), (7, 6, 2), (0, 0, 0)]


def test_a_tick_has_the_most_bytes_that_are_held_in_it() -> None:
    line = timeline(1, 1, (0, 64_000))
    tick = int(line.lanes["width"][0]) * BUCKETS // TICKS
    for time, until, size in ((0, 4, 10), (2, 6, 15), (6, 6, 5), (8, 9, 1)):
        note_held(line, 0, time * tick, until * tick, size)
    assert line.held[0, :11].tolist() == [10, 10, 15, 15, 15, 15, 15, 0, 1, 1, 0]


def test_many_lanes_and_partitions_have_fewer_buckets() -> None:
    line = timeline(64, 4096, (0, 1000))
    assert line.buckets.size <= CELLS
    assert np.prod(line.buckets.shape[:2]) == 64 * 4096


def test_hours_between_two_stays_take_no_buckets() -> None:
    line = timeline(1, 1, (0, 1000), (HOUR, HOUR + 1000))
    together = timeline(1, 1, (0, 1000), (1001, 3000))
    assert line.lanes["width"][0] <= together.lanes["width"][0]
    assert [reader_time(line, time) for time in (0, 999, HOUR, HOUR + 5)] == [0, 999, 2000, 2005]


def test_times_of_a_lane_that_reads_on_after_a_stay_come_before_the_next_stay() -> None:
    """They differ for as long again as the captured stay lasted. All later times are the same as the last of these."""
    line = timeline(1, 1, (0, 1000), (HOUR, HOUR + 1000))
    assert [reader_time(line, time) for time in (1500, 5000, HOUR - 1)] == [1500, 1999, 1999]


def test_a_connection_that_begins_during_a_stay_begins_no_new_one() -> None:
    line = timeline(1, 1, (0, 1000), (900, 2000), (500, 600))
    assert line.stays["begin"].tolist() == [0]
    assert reader_time(line, 1999) == 1999


@pytest.mark.parametrize("time", [0, 700, HOUR, 2 * HOUR, 2 * HOUR + 10**9])
def test_a_moment_of_a_stay_is_found_again(time: int) -> None:
    line = timeline(1, 1, (0, 1000), (HOUR, HOUR), (2 * HOUR, 2 * HOUR + 1))
    assert moment_of(line, reader_time(line, time)) == time
