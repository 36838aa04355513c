"""Times are drawn anew near their own place in the capture, and results are reported as quantiles."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from udfs.replay.shared.range_rows import range_columns
from udfs.replay.shared.replications import (
    FEWEST,
    NEAR_BLOCKS,
    REPLICATIONS,
    near_places,
    normal_draws,
    normal_middles,
    quantiles,
    replications_within,
)


@given(st.integers(0, 40), st.integers(1, 12), st.integers(0, 9))
def test_each_block_of_times_is_drawn_as_a_whole_from_within_the_capture(count: int, length: int, seed: int) -> None:
    places = near_places(count, length, np.random.default_rng(seed))
    assert len(places) == count
    assert places[:length].tolist() == list(range(min(count, length))), "the first block stays"
    for first in range(length, count, length):
        block = places[first : first + length]
        assert (np.diff(block) == 1).all()
        assert block[0] >= min(length, count - length), "nobody draws the first block"
        assert block[0] + length <= count


def test_a_block_is_drawn_from_every_place_up_to_four_blocks_away() -> None:
    count, length, draws = 60, 3, np.random.default_rng(1)
    drawn = np.array([near_places(count, length, draws)[::length] for _ in range(500)])
    for place, starts in zip(range(length, count, length), drawn.T[1:], strict=True):
        reach = NEAR_BLOCKS * length
        allowed = range(max(place - reach, length), min(place + reach, count - length) + 1)
        assert np.unique(starts).tolist() == list(allowed)


@pytest.mark.parametrize(
    ("most", "work", "count"),
    [(100, 5, REPLICATIONS), (100, 6, 16), (100, 20, FEWEST), (100, 17, 5), (100, 0, REPLICATIONS), (10, 100, FEWEST)],
)
def test_a_lane_is_replayed_as_often_as_the_work_allows(most: int, work: int, count: int) -> None:
    assert replications_within(most, work) == count


def test_runs_have_the_middles_of_equally_likely_parts_of_the_normal_distribution() -> None:
    of = NormalDist().inv_cdf
    assert normal_middles(1).tolist() == [0.0]
    assert normal_middles(4).tolist() == [of(0.125), of(0.375), of(0.625), of(0.875)]


@given(st.integers(FEWEST, REPLICATIONS), st.integers(0, 9))
def test_the_first_few_runs_cover_the_distribution_and_all_of_them_cover_it_evenly(count: int, seed: int) -> None:
    drawn = normal_draws(np.random.default_rng(seed), count)
    assert sorted(drawn.tolist()) == normal_middles(count).tolist()
    place = np.searchsorted(normal_middles(count), drawn[:FEWEST])
    assert sorted((place * FEWEST // count).tolist()) == list(range(FEWEST))


def test_runs_come_in_a_drawn_order() -> None:
    drawn = np.array([normal_draws(np.random.default_rng(seed), REPLICATIONS) for seed in range(200)])
    assert (np.abs(drawn.mean(axis=0)) < 0.25).all()
    assert {len(np.unique(of)) for of in drawn.T} == {REPLICATIONS}


def test_a_quantile_is_one_of_the_results_of_as_many_replications_as_there_were() -> None:
    results = np.array([[float(10 * number + of) for of in range(2)] for number in range(20)])
    assert quantiles(results, np.array([20, 5])).tolist() == [[10.0, 1.0], [90.0, 21.0], [170.0, 41.0]]


def test_a_result_is_exact_if_its_quantiles_agree_and_null_if_it_has_no_end() -> None:
    shares = np.array([[1.0, 2.0, np.inf], [1.0, 3.0, np.inf], [1.0, 4.0, np.inf]])
    columns = range_columns(np.array([1.0, 3.0, np.inf]), shares, np.array([20, 20, 5]))
    ends = [list(columns[name].tolist()) for name in ("value", "p10", "p50", "p90")]
    assert ends == [[1.0, 3.0, None], [1.0, 2.0, None], [1.0, 3.0, None], [1.0, 4.0, None]]
    assert columns["is_exact"].tolist() == [True, False, True]
