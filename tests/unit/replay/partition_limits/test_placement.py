"""Where replicas go: the vectors of Kafka's own tests, and full brokers that are left out (KIP-578, a proposal)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.wire.errors import INVALID_REPLICATION_FACTOR
from udfs.columns.arrays import Ints
from udfs.replay.partition_limits.placement.brokers import Brokers, brokers_of, hash_map_order
from udfs.replay.partition_limits.placement.java_random import java_random
from udfs.replay.partition_limits.placement.limited import DRAWN, arranged_for, place_limited
from udfs.replay.partition_limits.placement.possible_draws import can_tell, possible_rounds
from udfs.replay.partition_limits.placement.striped import place_striped, stripes_for
from udfs.replay.partition_limits.schedule import UNLIMITED

RACKS_OF_ADMIN_RACK_AWARE_TEST = {0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2", 4: "rack2", 5: "rack1"}
Placed = list[list[int]]


def mock_random() -> Ints:
    """`org.apache.kafka.server.util.MockRandom`, as a generator of `placement.java_random`."""
    return np.array([17, 2862933555777941757, 3037000493, -1, 64], np.int64)


def cluster(racks: dict[int, str | None], fenced: Sequence[int] = ()) -> Brokers:
    nodes = sorted(racks)
    return brokers_of(nodes, [racks[node] for node in nodes], [node not in fenced for node in nodes])


def striped(brokers: Brokers, partitions: int, factor: int, seed: int | None = None) -> Placed:
    out = np.zeros(partitions * factor, np.int64)
    rng = mock_random() if seed is None else java_random(seed)
    assert place_striped(brokers, stripes_for(brokers), rng, partitions, factor, out, 0) == 0
    return brokers.node_id[out].reshape(-1, factor).tolist()


def limited(
    brokers: Brokers, partitions: int, factor: int, start: int = 0, limit: int = UNLIMITED, counts: Sequence[int] = ()
) -> Placed:
    """What was placed before there was no room."""
    there = np.array(counts or [0] * len(brokers.node_id), np.int64)
    out = np.zeros(partitions * factor, np.int64)
    placed = place_limited(
        brokers, there, limit, arranged_for(brokers), java_random(7), start, 0, partitions, factor, out, 0
    )
    return brokers.node_id[out[: placed * factor]].reshape(-1, factor).tolist()


def test_striped_placement_over_a_fenced_broker() -> None:
    """StripedReplicaPlacerTest, with MockRandom."""
    brokers = cluster(dict.fromkeys(range(5)), fenced=[1])
    assert striped(brokers, 5, 4) == [[3, 4, 0, 2], [4, 0, 2, 3], [0, 2, 3, 4], [2, 3, 4, 0], [0, 4, 3, 2]]


def test_striped_placement_over_racks() -> None:
    racks: dict[int, str | None] = {10: "1", 11: "1", 20: "2", 21: "2", 30: "3", 31: "3"}
    assert striped(cluster(racks, fenced=[20]), 3, 4) == [[11, 21, 31, 10], [21, 30, 10, 20], [31, 11, 21, 30]]


def test_more_replicas_than_brokers_are_refused() -> None:
    brokers = cluster(dict.fromkeys(range(2)))
    out = np.zeros(3, np.int64)
    assert place_striped(brokers, stripes_for(brokers), mock_random(), 1, 3, out, 0) == INVALID_REPLICATION_FACTOR


def test_admin_placement_without_racks() -> None:
    """AdminRackAwareTest.testAssignmentWithoutRackInformation's vector."""
    assert limited(cluster(dict.fromkeys(range(5))), 10, 3) == [
        [0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, 0], [4, 0, 1], [0, 2, 3], [1, 3, 4], [2, 4, 0], [3, 0, 1], [4, 1, 2],
    ]  # fmt: skip


def test_admin_placement_over_racks() -> None:
    """AdminUtils' own comment."""
    assert limited(cluster(dict(RACKS_OF_ADMIN_RACK_AWARE_TEST)), 7, 3) == [
        [0, 3, 1], [3, 1, 5], [1, 5, 4], [5, 4, 2], [4, 2, 0], [2, 0, 3], [0, 4, 2],
    ]  # fmt: skip


def test_racks_that_only_some_brokers_have_are_left_out_of_account() -> None:
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
def test_no_broker_gets_above_its_limit_nor_a_partition_twice(
    case: tuple[Brokers, int, int, int, list[int], int],
) -> None:
    brokers, partitions, factor, limit, counts, start = case
    placed = limited(brokers, partitions, factor, start if start >= 0 else DRAWN, limit, counts)
    added = np.bincount(np.array(placed, np.int64).reshape(-1), minlength=len(counts))
    assert all(new == 0 or there + new <= limit for there, new in zip(counts, added.tolist(), strict=True))
    assert all(len(set(replicas)) == factor for replicas in placed)
    with_room = sum(there + new < limit for there, new in zip(counts, added.tolist(), strict=True))
    assert len(placed) == partitions or with_room < factor


@given(limited_cases())
def test_a_limit_that_no_broker_comes_near_changes_nothing(case: tuple[Brokers, int, int, int, list[int], int]) -> None:
    brokers, partitions, factor, _, counts, start = case
    far = max(counts) + partitions * factor + 1
    assert limited(brokers, partitions, factor, max(start, 0), far, counts) == limited(
        brokers, partitions, factor, max(start, 0)
    )


def rounds_of(placed: Placed, brokers: Brokers) -> tuple[int, int]:
    """Rounds of a placement, by numbers of brokers, and possible ones."""
    flat, n = np.array(placed, np.int64).reshape(-1), len(placed)
    rounds, possible = possible_rounds(flat, np.zeros(1, np.int64), np.array([n]), np.array([len(placed[0])]), brokers)
    return int(rounds[0]), int(possible[0])


NO_RACKS = dict.fromkeys(range(5))
UNEVEN_RACKS: dict[int, str | None] = {0: "b", 1: "a", 2: "c", 3: "b", 4: "b"}
MANY: dict[int, str | None] = {node: "abb"[node % 3] + "xy"[node % 2] for node in range(11)}


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(
    ("racks", "factor"),
    [
        (NO_RACKS, 1),
        (NO_RACKS, 2),
        (NO_RACKS, 3),
        (NO_RACKS, 5),
        (UNEVEN_RACKS, 2),
        (UNEVEN_RACKS, 3),
        (MANY, 1),
        (MANY, 2),
        (MANY, 3),
    ],
)
def test_every_draw_of_the_striped_placer_is_a_possible_one(
    seed: int, racks: dict[int, str | None], factor: int
) -> None:
    brokers = cluster(racks)
    n = -(-31 // len(racks))
    assert can_tell(np.array([factor]), brokers).all()
    assert rounds_of(striped(brokers, 31, factor, seed), brokers) == (n, n)


def test_placements_of_too_many_draws_are_not_judged() -> None:
    """A rack that waits for a partition as long as a round takes is passed over: a draw that goes round no ring."""
    assert can_tell(np.array([1, 2, 3, 4]), cluster(UNEVEN_RACKS)).tolist() == [False, True, True, False]
    assert not can_tell(np.array([1]), cluster(NO_RACKS, fenced=[2])).any()
    drawn = [rounds_of(striped(cluster(UNEVEN_RACKS), 13, 1, seed), cluster(UNEVEN_RACKS)) for seed in range(20)]
    assert (3, 1) in drawn


def test_three_racks_with_replication_factor_2_need_a_fourth_broker_to_be_judged() -> None:
    """With three a round is so short that the rack which its partitions leave out is passed over in the next."""
    three: dict[int, str | None] = {0: "a", 1: "b", 2: "c"}
    assert [can_tell(np.array([2]), cluster(racks)).item() for racks in (three, three | {3: "c"})] == [False, True]
    rounds = [rounds_of(striped(cluster(three), 12, 2, seed), cluster(three)) for seed in range(20)]
    assert min(possible for _, possible in rounds) < 4
    more = [rounds_of(striped(cluster(three | {3: "c"}), 16, 2, seed), cluster(three | {3: "c"})) for seed in range(20)]
    assert set(more) == {(4, 4)}


@pytest.mark.parametrize(
    "replicas",
    [
        [[0, 1], [0, 1]],  # a leader twice in a round
        [[0, 1], [2, 0]],  # the second begins where the first ends not
        [[1, 0], [0, 2]],  # the first round is in the order of node ids
    ],
)
def test_what_the_striped_placer_cannot_draw_is_told(replicas: Placed) -> None:
    assert rounds_of(replicas, cluster(dict.fromkeys(range(3)))) == (1, 0)


@pytest.mark.parametrize(
    "replicas",
    [
        [[0, 1], [2, 3]],  # two replicas of a partition in a rack
        [[0, 2], [3, 1]],  # the second begins where the first ends not
        [[0, 2], [2, 4]],  # a broker again while its rack has another
        [[0, 4], [5, 2], [3, 1]],  # the first round is in the order of racks
    ],
)
def test_what_it_cannot_draw_with_racks_is_told(replicas: Placed) -> None:
    racks: dict[int, str | None] = {0: "a", 1: "a", 2: "b", 3: "b", 4: "c", 5: "c"}
    assert rounds_of([[0, 2], [3, 4], [5, 1]], cluster(racks)) == (1, 1)
    assert rounds_of(replicas, cluster(racks)) == (1, 0)


def test_racks_are_gone_through_in_the_order_of_javas_hash_map() -> None:
    """By the low bits of their hashes, of which none is 0; of equal ones the one put first comes first."""
    assert hash_map_order(["b", "a", None]) == [None, "a", "b"]
    assert hash_map_order(["BB", "c", "Aa"]) == ["BB", "Aa", "c"]
