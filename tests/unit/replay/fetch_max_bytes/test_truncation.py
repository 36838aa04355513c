"""A new leader that was behind goes on from the end of its own log: batches that the old one had beyond it are gone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.unit.replay.fetch_max_bytes.captured_reader import BEGIN, MS, SIZE
from tests.unit.replay.fetch_max_bytes.test_compaction import APP, PRODUCED, batch, read, verdicts
from udfs.columns.records import new_records
from udfs.replay.fetch_max_bytes.partition_log.events import EPOCH_UNKNOWN, LOG_EVENT
from udfs.replay.fetch_max_bytes.partition_log.lost_batches import is_left

Batch = tuple[int, int, int, int]  # base offset, last offset, size, leader epoch


def kept(*batches: Batch) -> list[bool]:
    names = ("position", "last_offset", "size_bytes", "leader_epoch")
    columns = np.array(batches, np.int64).reshape(-1, 4).T
    found: list[bool] = is_left(new_records(LOG_EVENT, len(batches), **dict(zip(names, columns, strict=True)))).tolist()
    return found


def fetched(base: int, last: int, size: int, epoch: int) -> dict[str, Any]:
    return batch(base, last_offset=last, size_bytes=size, leader_epoch=epoch)


LATER_LEADER = [
    fetched(0, 9, SIZE, 0),
    fetched(10, 19, SIZE, 0),
    fetched(20, 24, 3 * SIZE, 1),
    fetched(25, 39, SIZE, 1),
]
"""The later leader had two of the four batches, and appended two with other offsets after them."""


def test_an_epoch_replaces_batches_of_earlier_ones_from_its_first_offset_on() -> None:
    assert kept((0, 9, 5, 0), (10, 19, 5, 0), (20, 29, 5, 0), (10, 14, 5, 1)) == [True, False, False, True]
    assert kept((0, 9, 5, 0), (10, 19, 5, 1), (20, 29, 5, 1), (15, 24, 5, 3)) == [True, False, False, True]


def test_a_batch_that_ends_with_the_first_offset_of_a_later_epoch_is_replaced() -> None:
    assert kept((0, 9, 5, 0), (9, 19, 5, 1)) == [False, True]
    assert kept((0, 9, 5, 0), (10, 19, 5, 1)) == [True, True]


def test_a_produced_batch_is_the_fetched_one_with_its_offsets_and_size() -> None:
    assert kept((10, 19, 5, EPOCH_UNKNOWN), (10, 19, 5, 0), (10, 19, 6, 1)) == [False, False, True]


def test_a_batch_that_was_sent_again_to_the_later_leader_is_in_the_log_from_then_on() -> None:
    """A follower got it under epoch 0, and became leader before it had appended it."""
    assert kept((0, 9, 5, 0), (10, 19, 5, 0), (10, 19, 5, 1), (10, 19, 5, EPOCH_UNKNOWN)) == [True, False, True, True]


@pytest.mark.parametrize(("epoch", "told"), [(0, (1, 0, {"fewer_bytes": 1})), (1, (0, 0, {"append_read_order": 1}))])
def test_a_read_before_a_batch_was_sent_again_may_not_find_it(
    epoch: int, told: tuple[int, int, dict[str, int]]
) -> None:
    """The response that shows the batch under epoch 0 had come at 1 ms. A follower's read at 10 ms did not find it."""
    times = {"append_after": BEGIN, "append_before": BEGIN + MS}
    later = {"append_after": BEGIN + 5 * MS, "append_before": BEGIN + 50 * MS}
    both = [fetched(10, 19, SIZE, 0) | times, fetched(10, 19, SIZE, epoch) | later]
    follower = {"reader": "follower", "bound_low": None, "bound_high": None, "response_bound": 10}
    assert verdicts(fetched(0, 9, SIZE, 0), *both, read(1, 0, SIZE, **follower)) == told


def test_a_produced_batch_that_nobody_fetched_is_gone_if_another_partly_overlaps_it() -> None:
    told = (0, 9, 5, 0), (10, 14, 5, 1), (15, 24, 5, 1)
    assert kept(*told, (10, 19, 5, EPOCH_UNKNOWN), (20, 20, 5, EPOCH_UNKNOWN)) == [True, True, True, False, False]
    assert kept(*told, (25, 29, 5, EPOCH_UNKNOWN), (15, 24, 9, EPOCH_UNKNOWN)) == [True] * 5


def test_without_a_later_leader_nothing_is_truncated() -> None:
    assert kept((0, 9, 5, 0), (5, 14, 5, 0), (5, 6, 5, EPOCH_UNKNOWN)) == [True] * 3
    assert kept() == []


@pytest.mark.parametrize("rows", [1, 7, 10_000])
def test_a_read_of_the_later_leader_is_compared_with_its_log_alone(rows: int) -> None:
    assert verdicts(*PRODUCED, *LATER_LEADER, read(1, 20, 4 * SIZE), rows=rows) == (1, 1, {})


def test_a_read_of_batches_that_were_truncated_later_is_not_compared_with_the_log_that_is_left() -> None:
    seen = {"append_before": BEGIN + 5 * MS}
    produced = [row | seen for row in PRODUCED]
    assert verdicts(*produced, *LATER_LEADER, read(0, 0, 4 * SIZE)) == (0, 0, {"truncated": 1})
    below = {"bound_low": 20, "bound_high": 20, "response_bound": 20}
    assert verdicts(*produced, *LATER_LEADER, read(0, 0, SIZE, **below)) == (1, 0, {"fewer_bytes": 1})
    assert verdicts(*produced, *LATER_LEADER, read(1, 0, 4 * SIZE)) == (1, 0, {"fewer_bytes": 1})


@pytest.mark.parametrize("epoch", [1, 2])
def test_of_two_batches_with_the_same_offsets_the_later_leaders_is_in_the_log(epoch: int) -> None:
    both = [fetched(30, 39, 2 * SIZE, epoch), fetched(30, 39, SIZE, 0)]
    told = fetched(0, 9, SIZE, 0)
    assert verdicts(*PRODUCED[:3], told, *both, read(1, 30, 2 * SIZE, connection_id=APP)) == (1, 1, {})
