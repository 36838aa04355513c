"""The orders in which a broker reads a reader's partitions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from udfs.replay.fetch_max_bytes.closed_loop.order import (
    begin_order_with,
    move_partitions_to_end,
    remove_unwanted,
    shuffle_order,
)


def moved(order: Sequence[int], *served: int) -> list[int]:
    found, spare = np.array(order, np.int64), np.zeros(max(order, default=0) + 1, np.int64)
    move_partitions_to_end(found, len(order), np.array(served, np.int64), len(served), spare)
    assert not spare.any()
    return found.tolist()


def test_a_session_moves_only_partitions_with_records_to_the_end() -> None:
    """FetchSessionTest: tp1 (only a high watermark), tp2 (records), tp3 (nothing) are tp1, tp3, tp2 the next time."""
    assert moved([1, 2, 3], 2) == [1, 3, 2]


@settings(derandomize=True, deadline=None)
@given(st.permutations(range(8)), st.lists(st.integers(0, 7), unique=True))
def test_moving_partitions_to_the_end_keeps_their_order_and_that_of_the_others(
    order: list[int], served: list[int]
) -> None:
    assert moved(order, *served) == [p for p in order if p not in served] + served


def test_an_order_can_begin_with_any_of_its_partitions() -> None:
    order = np.array([5, 6, 7, 8], np.int64)
    begin_order_with(order, 3, 2, np.zeros(4, np.int64))
    assert order.tolist() == [7, 5, 6, 8]


def test_a_shuffle_gives_every_order_about_as_often() -> None:
    random, seen = np.array([42], np.int64), dict[tuple[int, ...], int]()
    for _ in range(6000):
        order = np.arange(3)
        shuffle_order(order, 3, random)
        seen[tuple(order.tolist())] = seen.get(tuple(order.tolist()), 0) + 1
    assert len(seen) == 6
    assert min(seen.values()) > 850


def test_partitions_that_are_not_wanted_are_removed_from_the_order() -> None:
    order = np.array([3, 1, 2, 0], np.int64)
    assert remove_unwanted(order, 4, np.array([1, 0, 1, 0], np.int64)) == 2
    assert order[:2].tolist() == [2, 0]
