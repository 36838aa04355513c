"""Sums over a reader's fetches: who had to wait, how fair it was, how large responses were."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from udfs.columns.arrays import stretch_edges
from udfs.columns.records import new_records
from udfs.replay.fetch_max_bytes.events import Reads
from udfs.replay.fetch_max_bytes.fairness import jain_index, sums_with_fetches
from udfs.replay.fetch_max_bytes.state import ANSWER, READ, Sums, no_sums
from udfs.replay.shared.histogram import BUCKETS, bucket_of_value, quantile

Fetch = tuple[int, list[tuple[int, int, int]]]  # time, and (partition, available, returned) of each read


def summed(*calls: list[Fetch]) -> Sums:
    """Sums of one lane over fetches, call by call."""
    sums = no_sums(0, 1)
    for fetches in calls:
        rows = [(time, *read) for time, partitions in fetches for read in partitions]
        time, partition, available, returned = np.array(rows, np.int64).T.copy()
        reads = new_records(READ, len(rows), request_time=time, number=partition)
        answers = new_records(ANSWER, len(rows), returned=returned).reshape((1, -1))
        first_read = stretch_edges([len(partitions) for _, partitions in fetches])
        sums = sums_with_fetches(sums, Reads(reads, first_read, np.zeros(0, np.int64)), available, answers)
    return sums


STARVING: list[Fetch] = [
    (1000, [(0, 50, 50), (1, 50, 0)]),
    (2000, [(0, 50, 50), (1, 50, 0)]),
    (5000, [(0, 0, 0), (1, 50, 0)]),
    (9000, [(0, 50, 50), (1, 50, 50)]),
    (9500, [(0, 50, 50), (1, 50, 0)]),
]


def test_the_longest_wait_lasts_from_the_first_empty_answer_to_the_next_with_records() -> None:
    sums = summed(STARVING).partitions
    assert sums["longest_us"][:2, 0].tolist() == [0, 8000]
    assert sums["longest_requests"][:2, 0].tolist() == [0, 3]
    assert sums["empty"][:2, 0].tolist() == [0, 4]
    assert (sums["returned"][:2, 0].tolist(), sums["available"][:2, 0].tolist()) == ([200, 50], [200, 250])


def test_a_partition_that_is_never_served_waits_to_the_last_fetch() -> None:
    assert summed([(t, [(0, 10, 0)]) for t in (100, 400, 900)]).partitions["longest_us"][0, 0] == 800


def test_a_partition_with_nothing_to_read_does_not_wait() -> None:
    sums = summed([(100, [(0, 10, 0)]), (200, [(0, 0, 0)]), (900, [(0, 10, 10)])]).partitions
    assert (sums["longest_us"][0, 0], sums["longest_requests"][0, 0], sums["empty"][0, 0]) == (100, 1, 1)


def test_sums_do_not_depend_on_how_fetches_are_handed_over() -> None:
    whole = summed(STARVING)
    by_one = summed(*([fetch] for fetch in STARVING))
    assert whole.partitions[:2].tolist() == by_one.partitions[:2].tolist()
    assert whole.sizes.tolist() == by_one.sizes.tolist()


def test_only_responses_with_records_count_as_responses() -> None:
    sums = summed([(1, [(0, 9, 0), (1, 9, 0)]), (2, [(0, 9, 5), (1, 9, 6)])])
    assert (sums.sizes.sum(), sums.sizes[0, 11], sums.responses["largest"][0]) == (1, 1, 11)


@pytest.mark.parametrize(
    ("served", "index"), [([0.3, 0.3, 0.3], 1.0), ([1.0, 0.0, 0.0, 0.0], 0.25), ([0.0, 0.0], None), ([], None)]
)
def test_jains_index_is_1_when_all_are_served_alike_and_1_over_n_when_only_one_is(
    served: list[float], index: float | None
) -> None:
    found = jain_index(np.array(served))
    assert found is None if index is None else math.isclose(found or 0, index)


@settings(derandomize=True, max_examples=300, deadline=None)
@given(st.lists(st.integers(1, 2**40), min_size=1, max_size=40), st.sampled_from([0.5, 0.95, 0.99, 1.0]))
def test_a_quantile_is_within_0_4_percent_of_the_exact_one(values: list[int], share: float) -> None:
    counts = np.zeros(BUCKETS, np.int64)
    for value in values:
        counts[bucket_of_value(value)] += 1
    exact = sorted(values)[max(math.ceil(share * len(values)), 1) - 1]
    found = quantile(counts, share)
    assert found is not None
    assert abs(found - exact) <= exact / 256


def test_buckets_rise_with_their_values_and_hold_the_largest() -> None:
    edges = [value for power in range(62) for value in ((1 << power) - 1, 1 << power, (1 << power) + 1) if value > 0]
    buckets = [bucket_of_value(value) for value in sorted(edges)]
    assert buckets == sorted(buckets)
    assert buckets[-1] < BUCKETS
    assert [bucket_of_value(value) for value in range(1, 257)] == list(range(1, 257))


def test_nothing_counted_has_no_quantile() -> None:
    assert quantile(np.zeros(BUCKETS, np.int64), 0.5) is None
