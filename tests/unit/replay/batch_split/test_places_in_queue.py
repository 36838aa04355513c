"""Which batch leaves a partition's queue next, and when: a queue by itself, of one partition."""

from __future__ import annotations

import pytest

from udfs.replay.batch_split.partition_queue import IN_FLIGHT, NO_PART, TO_SEND, enqueue, leave_queue, waits
from udfs.replay.batch_split.sender import (
    CLOSED,
    FIRST,
    HELD,
    KIND,
    LINGERED,
    O_COUNT,
    O_FIRST,
    O_OVERDUE,
    O_PART,
    O_QUEUED,
    TIME,
    Working,
    pop,
    working_memory,
)
from udfs.replay.shared.resent_batches import NONE

NOW = 1_000


def partition(part: int = NO_PART) -> Working:
    """Nothing waits; `part` is what has become of the part that left last."""
    w = working_memory(records=64, partitions=1, topics=1)
    w.open[0, O_QUEUED], w.open[0, O_PART] = NONE, part
    return w


def hold(w: Working, first: int, is_split: bool = False, earliest: int = 0) -> None:
    """Have a batch of ten records wait."""
    enqueue(w, 0, first, first + 10, 1_000, int(is_split), earliest)


def left(w: Working) -> list[tuple[int, int, int]]:
    """Kind, first record and us of what has left, in the order of time."""
    leave_queue(w, NOW, 0)
    events = [pop(w) for _ in range(int(w.counters[HELD]))]
    return [(int(w.heap[at, KIND]), int(w.heap[at, FIRST]), int(w.heap[at, TIME])) for at in events]


def test_a_part_that_is_put_back_goes_before_what_waits_of_later_records() -> None:
    w = partition()
    for first in (20, 0, 10):
        hold(w, first, is_split=True)
    assert left(w) == [(CLOSED, 0, NOW)]


@pytest.mark.parametrize(("part", "is_kept"), [(NO_PART, False), (TO_SEND, True), (IN_FLIGHT, False)])
def test_an_empty_queue_keeps_a_batch_only_until_the_last_part_is_sent(part: int, is_kept: bool) -> None:
    assert waits(partition(part), 0) == is_kept


@pytest.mark.parametrize(("earliest", "at"), [(NOW - 400, NOW), (NOW + 400, NOW + 400)])
def test_a_batch_leaves_no_sooner_than_it_may(earliest: int, at: int) -> None:
    w = partition()
    hold(w, 0, earliest=earliest)
    assert left(w) == [(CLOSED, 0, at)]


@pytest.mark.parametrize(("part", "events"), [(TO_SEND, []), (IN_FLIGHT, [(LINGERED, 30, NOW)])])
def test_a_batch_that_lingered_behind_the_parts_is_closed_once_the_last_is_sent(
    part: int, events: list[tuple[int, int, int]]
) -> None:
    w = partition(part)
    w.open[0, O_OVERDUE], w.open[0, O_FIRST], w.open[0, O_COUNT] = 1, 30, 2
    assert left(w) == events
