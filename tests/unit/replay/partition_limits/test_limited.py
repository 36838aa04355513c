"""AdminUtils' placement as Kafka's own tests expect it, and without full brokers (KIP-578, a proposal)."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.replay.partition_limits.placers import cluster, limited
from udfs.replay.partition_limits.placement.brokers import Brokers

RACKS_OF_ADMIN_RACK_AWARE_TEST = {0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2", 4: "rack2", 5: "rack1"}


def test_admin_placement_without_racks() -> None:
    """The expected result is from AdminRackAwareTest.testAssignmentWithoutRackInformation."""
    assert limited(cluster(dict.fromkeys(range(5))), 10, 3) == [
        [0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, 0], [4, 0, 1], [0, 2, 3], [1, 3, 4], [2, 4, 0], [3, 0, 1], [4, 1, 2],
    ]  # fmt: skip


def test_admin_placement_over_racks() -> None:
    """The expected result is from a comment in AdminUtils."""
    assert limited(cluster(dict(RACKS_OF_ADMIN_RACK_AWARE_TEST)), 7, 3) == [
        [0, 3, 1], [3, 1, 5], [1, 5, 4], [5, 4, 2], [4, 2, 0], [2, 0, 3], [0, 4, 2],
    ]  # fmt: skip


def test_no_rack_has_a_second_replica_while_another_has_none() -> None:
    """AdminUtils.assignReplicasToBrokersRackAware, where one rack has three of four brokers."""
    brokers = cluster({0: "a", 1: "a", 2: "a", 3: "b"})
    assert all(3 in replicas for replicas in limited(brokers, 12, 2))
    for replicas in limited(brokers, 12, 3):
        assert 3 in replicas
        assert len(set(replicas)) == 3


def test_racks_are_ignored_if_only_some_brokers_have_one() -> None:
    some: dict[int, str | None] = {0: "a", 1: None, 2: "a"}
    assert limited(cluster(some), 3, 2) == limited(cluster(dict.fromkeys(range(3))), 3, 2)


def test_a_full_broker_is_left_out() -> None:
    placed = limited(cluster(dict.fromkeys(range(3))), 4, 2, limit=4, counts=[0, 4, 0])
    assert len(placed) == 4
    assert all(sorted(replicas) == [0, 2] for replicas in placed)


def test_placement_ends_when_fewer_brokers_have_room_than_replicas_are_wanted() -> None:
    assert len(limited(cluster(dict.fromkeys(range(3))), 9, 3, limit=4, counts=[1, 0, 0])) == 3
    assert limited(cluster(dict.fromkeys(range(3))), 1, 1, limit=1, counts=[1, 1, 5]) == []


@st.composite
def limited_cases(draw: st.DrawFn) -> tuple[Brokers, int, int, int, list[int], int]:
    n = draw(st.integers(1, 8))
    racks = draw(st.lists(st.sampled_from(["a", "b", "c"]), min_size=n, max_size=n))
    counts = draw(st.lists(st.integers(0, 6), min_size=n, max_size=n))
    brokers = cluster(dict(enumerate(racks)))
    return (
        brokers,
        draw(st.integers(1, 20)),
        draw(st.integers(1, n)),
        draw(st.integers(0, 12)),
        counts,
        draw(st.integers(-1, 9)),
    )


@given(limited_cases())
def test_no_broker_gets_above_its_limit_or_gets_a_partition_twice(
    case: tuple[Brokers, int, int, int, list[int], int],
) -> None:
    brokers, partitions, factor, limit, counts, start = case
    placed = limited(brokers, partitions, factor, start=start, limit=limit, counts=counts)
    added = np.bincount(np.array(placed, np.int64).reshape(-1), minlength=len(counts))
    assert all(new == 0 or there + new <= limit for there, new in zip(counts, added.tolist(), strict=True))
    assert all(len(set(replicas)) == factor for replicas in placed)
    with_room = sum(there + new < limit for there, new in zip(counts, added.tolist(), strict=True))
    assert len(placed) == partitions or with_room < factor


@given(limited_cases())
def test_a_limit_that_no_broker_comes_near_changes_nothing(case: tuple[Brokers, int, int, int, list[int], int]) -> None:
    brokers, partitions, factor, _, counts, start = case
    far = max(counts) + partitions * factor + 1
    start = max(start, 0)
    unlimited = limited(brokers, partitions, factor, start=start)
    assert limited(brokers, partitions, factor, start=start, limit=far, counts=counts) == unlimited
