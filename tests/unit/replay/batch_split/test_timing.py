"""By which times a captured producer is taken to have gone, as its requests and records tell them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from schemas.tables.steps import SENT
from tests.unit.replay.batch_split.test_replay import sent
from udfs.columns.time_units import NEVER
from udfs.facts.arrow_tables import arrow_schema
from udfs.replay.batch_split.events import Sent, read_sent
from udfs.replay.batch_split.possible_estimates.events import split_of
from udfs.replay.batch_split.possible_estimates.order import Order, no_order, times_in
from udfs.replay.batch_split.timing import batches_of
from udfs.replay.shared.resent_batches import NONE

LINGER = 100_000  # us


def read(*rows: dict[str, Any]) -> Sent:
    return read_sent(pa.RecordBatch.from_pylist(list(rows), schema=arrow_schema(SENT)), {}, {})


def test_a_batch_is_told_by_which_split_it_was_made() -> None:
    """A refused batch comes back whole, for batch.size has room for it, then in halves, one of them in halves again."""
    rows = [(0, 8, 9, 10), (0, 8, 11, 10), (0, 4, 13, 10), (0, 2, 15, 0), (2, 2, 17, 0), (4, 4, 19, 0), (8, 8, 21, 0)]
    told = read(*(sent(first, n, 250 * n, request, error) for first, n, request, error in rows))
    assert split_of(told).tolist() == [NONE, 0, 1, 2, 2, 1, NONE]


def test_what_comes_back_whole_of_a_split_is_no_retry() -> None:
    rows = (0, 9, 10), (0, 11, 0), (8, 18, 7), (8, 20, 0)
    told = read(*(sent(first, 8, 2000, request, error) for first, request, error in rows))
    assert batches_of(told, times_in(no_order(4), told), LINGER).retries.tolist() == [0, 1]


def test_a_split_of_which_no_part_was_captured_brings_no_batch_forward() -> None:
    """Told to come behind the second batch's close, it may have been any time after its answer, at 9.5 ms."""
    told = read(sent(0, 8, 2000, 9, 10), sent(8, 8, 800, 18, 0))
    order = Order(np.full(4, NEVER), np.array([0, 1, 2, NEVER]))
    assert times_in(order, told).close.tolist() == [9000, 18_000]


@pytest.mark.parametrize(("request_us", "filled_by"), [(7900, NONE), (8300, 8)], ids=["before its ms", "in its ms"])
def test_a_batch_was_sent_before_it_was_full_if_its_request_is_before_the_ms_of_the_next_record(
    request_us: int, filled_by: int
) -> None:
    """Though an order of closes has it closed before that record: it is not what was, but what can have been."""
    told = read(sent(0, 8, 800, 9, 0, request_time=request_us), sent(8, 8, 800, 18, 0))
    order = Order(np.array([8, NEVER, NEVER, NEVER]), np.array([0, NEVER, NEVER, NEVER]))
    assert batches_of(told, times_in(order, told), LINGER).filled_by[0] == filled_by


def test_a_batch_that_waited_for_the_parts_before_it_was_late_only_since_they_were_sent() -> None:
    """It was full at 16 ms; the last part was sent at 49 ms, and it at 50."""
    rows = [(0, 8, 9, 10), (0, 4, 30, 0), (4, 4, 49, 0), (8, 8, 50, 0), (16, 8, 60, 0)]
    told = read(*(sent(first, n, 250 * n, request, error) for first, n, request, error in rows))
    made = batches_of(told, times_in(no_order(5), told), LINGER)
    assert (made.delay[1], bool(made.was_queued[1])) == (1000, True)
