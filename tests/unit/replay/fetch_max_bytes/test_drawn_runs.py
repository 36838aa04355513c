"""How far the batches of a replication are from the captured ones, and which readers are at the log's end."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.replay.fetch_max_bytes.captured_reader import MS
from tests.unit.replay.fetch_max_bytes.closed_units import PACE, Part, unit_of
from udfs.columns.time_units import ALWAYS, NEVER
from udfs.replay.fetch_max_bytes.closed_loop.drawn_runs import (
    BATCH_OVERHEAD,
    in_other_batches,
)
from udfs.replay.fetch_max_bytes.closed_loop.pace import PacedFetches, observed_pace


def test_records_produced_in_more_batches_take_more_bytes() -> None:
    sizes = [1000, 1000, 1000]
    unit = unit_of([Part(sizes, visible=[ALWAYS, 5 * MS, 6 * MS])], [], NEVER, PACE)
    more = in_other_batches(unit, 1.5).batches["bytes_before"]
    assert np.diff(more).tolist() == [1000, *[1000 + BATCH_OVERHEAD // 2] * 2]
    assert in_other_batches(unit, 1.0).batches.tolist() == unit.batches.tolist()


def test_records_produced_in_fewer_batches_take_at_least_half() -> None:
    unit = unit_of([Part([80, 1000], visible=[5 * MS, 6 * MS])], [], NEVER, PACE)
    assert np.diff(in_other_batches(unit, 0.01).batches["bytes_before"]).tolist() == [40, 1000 - BATCH_OVERHEAD + 1]


@pytest.mark.parametrize(("found_at_once", "is_at_end"), [(0, True), (1, True), (2, False), (20, False)])
def test_a_reader_is_at_the_logs_end_if_its_fetches_wait_for_their_records(found_at_once: int, is_at_end: bool) -> None:
    sent = np.arange(20) * 100 * MS
    was_there = np.arange(20) < found_at_once
    fetches = PacedFetches(
        node=np.zeros(20, np.int64),
        request=sent,
        response=sent + 10 * MS,
        records=np.ones(20, np.int64),
        size=np.full(20, 100),
        ready_at=np.where(was_there, 0, sent + 9 * MS),
        is_stopped=np.zeros(20, np.bool_),
        max_wait_us=np.full(20, 500 * MS),
    )
    assert observed_pace(fetches, 1, is_one_process=True).is_at_log_end == is_at_end
