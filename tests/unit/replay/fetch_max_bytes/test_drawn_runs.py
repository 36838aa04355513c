"""How far a replication of a lane is from the captured run, in pace and in batches."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.replay.fetch_max_bytes.captured_reader import MS
from tests.unit.replay.fetch_max_bytes.closed_units import PACE, Part, unit_of
from udfs.columns.time_units import ALWAYS, NEVER
from udfs.replay.fetch_max_bytes.closed_loop.drawn_runs import (
    BATCH_OVERHEAD,
    LEAST_TIMES,
    PACE_DIFFERS,
    PACE_DIFFERS_AT_MOST,
    factors,
    in_other_batches,
    pace_differs,
)
from udfs.replay.fetch_max_bytes.closed_loop.pace import PacedFetches, observed_pace
from udfs.replay.fetch_max_bytes.closed_loop.pace_fits import Timings

LEAST = float(np.sqrt(PACE_DIFFERS**2 / 2))
"""How much runs differ if all stretches of a capture are alike: the lab's variance is averaged with 0."""
MANY = 1000


def timings(*times: int, amount: int = 100) -> Timings:
    """How long a node took for equal amounts."""
    count = len(times)
    return Timings(np.zeros(count, np.int64), np.full(count, amount), np.array(times), np.zeros(count, np.bool_))


def test_runs_differ_as_the_labs_do_where_a_captures_times_say_nothing() -> None:
    assert pace_differs(timings(*[0] * MANY)) == pytest.approx(PACE_DIFFERS, abs=0.01)


def test_runs_differ_more_where_a_capture_shows_few_times() -> None:
    none, few, more = (pace_differs(timings(*range(1, count + 1))) for count in (0, LEAST_TIMES - 3, LEAST_TIMES - 1))
    assert PACE_DIFFERS_AT_MOST == none > few > more > PACE_DIFFERS


def test_runs_differ_less_where_a_captures_stretches_are_alike() -> None:
    assert pace_differs(timings(*[40, 60] * MANY)) == pytest.approx(LEAST, abs=0.01)


def test_runs_differ_more_where_a_stretch_is_slow_but_not_without_end() -> None:
    little, much = (pace_differs(timings(*[50] * MANY, *[slow] * (MANY // 2))) for slow in (80, 50_000))
    assert LEAST + 0.01 < little < much == PACE_DIFFERS_AT_MOST


def test_longer_times_for_larger_amounts_hardly_count_as_a_difference() -> None:
    small, large = timings(*[50] * MANY), timings(*[500] * (MANY // 2), amount=1000)
    both = Timings(*(np.concatenate(of) for of in zip(small, large, strict=True)))
    assert LEAST < pace_differs(both) < PACE_DIFFERS < pace_differs(timings(*both.time.tolist()))


@pytest.mark.parametrize("count", [5, 20])
def test_even_a_few_runs_have_the_whole_spread(count: int) -> None:
    of_runs = factors(np.random.default_rng(1), 0.5, count)
    assert np.exp(np.mean(np.log(of_runs))) == pytest.approx(1.0)
    assert np.std(np.log(of_runs)) == pytest.approx(0.5, abs=0.1)


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
