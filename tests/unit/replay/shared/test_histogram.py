"""Quantiles of byte counts are right to within the width of a bucket."""

from __future__ import annotations

import numpy as np
import pytest

from udfs.replay.shared.histogram import (
    BUCKETS,
    STEPS,
    bucket_floor,
    bucket_of_value,
    quantile,
    quantile_of,
    quantile_within,
)

VALUES = sorted({value for bit in range(40) for value in ((1 << bit) - 1, 1 << bit, (1 << bit) + 1, 3 << bit)})


def counted(values: list[int]) -> np.ndarray:
    return np.bincount([bucket_of_value(value) for value in values], minlength=BUCKETS)


def test_a_value_is_in_a_bucket_whose_width_is_at_most_a_128th_of_it() -> None:
    for value in VALUES:
        bucket = bucket_of_value(value)
        low, end = bucket_floor(bucket), bucket_floor(bucket + 1)
        assert low <= value < end
        assert end - low <= max(low // STEPS, 1)


def test_values_below_256_have_a_bucket_each() -> None:
    assert [bucket_of_value(value) for value in range(2 * STEPS + 3)] == [
        *range(2 * STEPS + 1),
        2 * STEPS,
        2 * STEPS + 1,
    ]


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.75, 0.95, 1.0])
@pytest.mark.parametrize("values", [[5], [1, 2, 3, 4], [7, 7, 7, 200], list(range(100))])
def test_a_quantile_of_small_values_is_exact(values: list[int], share: float) -> None:
    counts = counted(values)
    expected = int(np.quantile(values, share, method="inverted_cdf"))
    assert quantile(counts, share) == quantile_within(counts, share, 1000) == expected
    assert quantile_of(counts, len(values), share, 1000) == expected


def test_a_quantile_of_large_values_is_the_middle_of_its_bucket_but_no_more_than_the_largest_value() -> None:
    low, end = bucket_floor(2000), bucket_floor(2001)
    counts, middle = counted([low] * 3), low + (end - low) // 2
    assert quantile(counts, 0.5) == middle > low
    for largest in (low, middle, end):
        assert quantile_within(counts, 0.5, largest) == quantile_of(counts, 3, 0.5, largest) == min(middle, largest)


def test_without_values_there_is_no_quantile() -> None:
    counts = counted([])
    assert (quantile(counts, 0.5), quantile_within(counts, 0.5, 9)) == (None, None)
    assert quantile_of(counts, 0, 0.5, 9) == 0
