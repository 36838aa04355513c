"""How far the pace of a replication is from that of the captured run."""

from __future__ import annotations

import numpy as np
import pytest

from udfs.replay.shared.pace_of_runs import (
    LEAST_TIMES,
    PACE_DIFFERS,
    PACE_DIFFERS_AT_MOST,
    pace_differs,
    variance_of_stretches,
)
from udfs.replay.shared.replications import factors

LEAST = float(np.sqrt(PACE_DIFFERS**2 / 2))
"""How much runs differ if all stretches of a capture are alike: the lab's variance is averaged with 0."""
MANY = 1000


def differs(*times: int, amount: int = 100) -> float:
    """How much runs differ if a node takes these times for equal amounts."""
    return pace_differs(np.zeros(len(times), np.int64), np.full(len(times), amount), np.array(times, np.int64))


def test_runs_differ_as_the_labs_do_where_a_captures_times_say_nothing() -> None:
    assert differs(*[0] * MANY) == pytest.approx(PACE_DIFFERS, abs=0.01)


def test_runs_differ_more_where_a_capture_shows_few_times() -> None:
    none, few, more = (differs(*range(1, count + 1)) for count in (0, LEAST_TIMES - 3, LEAST_TIMES - 1))
    assert PACE_DIFFERS_AT_MOST == none > few > more > PACE_DIFFERS


def test_stretches_differ_by_the_variance_of_the_logarithms_of_their_times() -> None:
    times = np.array([1, 1, 2, 2, 4, 4])
    assert len(times) == LEAST_TIMES
    assert variance_of_stretches(np.zeros(6, np.int64), times) == pytest.approx(np.log(2) ** 2)
    assert variance_of_stretches(np.zeros(5, np.int64), times[:5]) is None
    assert variance_of_stretches(np.zeros(6, np.int64), 0 * times) is None


def test_runs_differ_less_where_a_captures_stretches_are_alike() -> None:
    assert differs(*[40, 60] * MANY) == pytest.approx(LEAST, abs=0.01)


def test_runs_differ_more_where_a_stretch_is_slow_but_not_without_end() -> None:
    little, much = (differs(*[50] * MANY, *[slow] * (MANY // 2)) for slow in (80, 50_000))
    assert LEAST + 0.01 < little < much == PACE_DIFFERS_AT_MOST


def test_longer_times_for_larger_amounts_hardly_count_as_a_difference() -> None:
    times = [50] * MANY + [500] * (MANY // 2)
    by_amount = pace_differs(
        np.zeros(len(times), np.int64), np.array([100] * MANY + [1000] * (MANY // 2)), np.array(times)
    )
    assert LEAST < by_amount < PACE_DIFFERS < differs(*times)


@pytest.mark.parametrize("count", [5, 20])
def test_even_a_few_runs_have_the_whole_spread(count: int) -> None:
    of_runs = factors(np.random.default_rng(1), 0.5, count)
    assert np.exp(np.mean(np.log(of_runs))) == pytest.approx(1.0)
    assert np.std(np.log(of_runs)) == pytest.approx(0.5, abs=0.1)
