"""When a captured response had enough to return, as the batches of the logs and the fetch's min_bytes show."""

from __future__ import annotations

import numpy as np

from udfs.columns.records import new_records
from udfs.columns.time_units import ALWAYS, NEVER
from udfs.replay.fetch_max_bytes.closed_loop.placing import ReaderLogs, Servings, times_of_enough
from udfs.replay.fetch_max_bytes.closed_loop.state import LOG_BATCH, READ_PARTITION
from udfs.replay.fetch_max_bytes.state import READABLE_BATCH

VISIBLE_AT = [1, 30, 40, 20, 25]
"""Batches of 100 bytes: three of the first partition, two of the second."""


def enough_at(needed: int, *servings: tuple[int, int, int], fetches: int = 1) -> list[int]:
    """When the responses of fetches had `needed` bytes. servings: partition, first batch and size of each."""
    first, end = np.array([0, 3, 5]), np.array([3, 5, 5])
    batches = new_records(LOG_BATCH, 6, bytes_before=100 * np.arange(6), visible_at=[*VISIBLE_AT, 0])
    logs = ReaderLogs(
        new_records(READ_PARTITION, 3, first_batch=first, end_batch=end), batches, new_records(READABLE_BATCH, 5)
    )
    partition, begin, size = (np.array(values, np.int64) for values in zip(*servings, strict=True))
    none, fetch = np.zeros(len(size), np.int64), np.arange(len(size)) * fetches // len(size)
    of = Servings(partition, none, fetch, none, size, begin, begin + size // 100)
    return times_of_enough(logs, of, np.full(fetches, needed)).tolist()


def test_a_fetch_waits_until_as_many_bytes_as_it_wants_have_come_to_all_its_partitions() -> None:
    both = (0, 0, 300), (1, 3, 200)
    assert [enough_at(needed, *both) for needed in (1, 100, 101, 200, 201, 400, 500)] == [
        [1], [1], [20], [20], [25], [30], [40],
    ]  # fmt: skip


def test_each_fetch_waits_for_its_own_bytes() -> None:
    assert enough_at(150, (0, 0, 200), (1, 3, 200), fetches=2) == [30, 25]


def test_a_response_with_less_than_its_fetch_wants_never_had_enough() -> None:
    assert enough_at(301, (0, 0, 300)) == [NEVER]


def test_a_batch_that_was_cut_off_counts() -> None:
    assert enough_at(150, (0, 0, 150)) == [1]
    assert enough_at(50, (0, 1, 50)) == [30]


def test_batches_that_the_capture_does_not_show_count_as_there() -> None:
    assert enough_at(50, (2, 5, 60)) == [ALWAYS]


def test_a_reader_that_got_nothing_has_no_times() -> None:
    logs = ReaderLogs(new_records(READ_PARTITION, 0), new_records(LOG_BATCH, 1), new_records(READABLE_BATCH, 0))
    none = np.zeros(0, np.int64)
    assert (
        times_of_enough(logs, Servings(none, none, none, none, none, none, none), np.ones(2, np.int64)).tolist()
        == [NEVER] * 2
    )
