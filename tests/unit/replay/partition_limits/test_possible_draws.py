"""Which placements StripedReplicaPlacer can have drawn."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.replay.partition_limits.placers import Placed, cluster, rounds_of, striped
from udfs.replay.partition_limits.placement.possible_draws import can_be_checked

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
def test_every_draw_of_the_striped_placer_counts_as_possible(
    seed: int, racks: dict[int, str | None], factor: int
) -> None:
    brokers = cluster(racks)
    n = -(-31 // len(racks))
    assert can_be_checked(np.array([factor]), brokers).all()
    assert rounds_of(striped(brokers, 31, factor, seed), brokers) == (n, n)


def test_placements_in_which_a_rack_may_be_left_out_of_a_round_are_not_judged() -> None:
    """Such a draw does not go round the ring of racks. Placements that use a rack twice are not judged, either, nor are
    those on a cluster with a fenced broker.
    """
    assert can_be_checked(np.array([1, 2, 3, 4]), cluster(UNEVEN_RACKS)).tolist() == [False, True, True, False]
    assert not can_be_checked(np.array([1]), cluster(NO_RACKS, fenced=[2])).any()
    drawn = [rounds_of(striped(cluster(UNEVEN_RACKS), 13, 1, seed), cluster(UNEVEN_RACKS)) for seed in range(20)]
    assert (3, 1) in drawn


def test_three_racks_with_replication_factor_2_need_a_fourth_broker_to_be_judged() -> None:
    """With three brokers, a round is so short that a rack may be left out of the whole round."""
    three, four = cluster({0: "a", 1: "b", 2: "c"}), cluster({0: "a", 1: "b", 2: "c", 3: "c"})
    two_replicas = np.array([2])
    assert not can_be_checked(two_replicas, three).any()
    assert can_be_checked(two_replicas, four).all()
    rounds = [rounds_of(striped(three, 12, 2, seed), three) for seed in range(20)]
    assert min(possible for _, possible in rounds) < 4
    assert {rounds_of(striped(four, 16, 2, seed), four) for seed in range(20)} == {(4, 4)}


@pytest.mark.parametrize(
    "replicas",
    [
        [[0, 1], [0, 1]],  # a leader twice in a round
        [[0, 1], [2, 0]],  # the second partition does not begin where the first one ends
        [[1, 0], [0, 2]],  # the first round is in the order of node ids
    ],
)
def test_what_the_striped_placer_cannot_draw_is_impossible(replicas: Placed) -> None:
    assert rounds_of(replicas, cluster(dict.fromkeys(range(3)))) == (1, 0)


@pytest.mark.parametrize(
    "replicas",
    [
        [[0, 1], [2, 3]],  # two replicas of a partition in a rack
        [[0, 2], [3, 1]],  # the second partition does not begin where the first one ends
        [[0, 2], [2, 4]],  # a broker is used again while its rack has another
        [[0, 4], [5, 2], [3, 1]],  # the first round is in the order of racks
    ],
)
def test_what_the_striped_placer_cannot_draw_with_racks_is_impossible(replicas: Placed) -> None:
    racks: dict[int, str | None] = {0: "a", 1: "a", 2: "b", 3: "b", 4: "c", 5: "c"}
    assert rounds_of([[0, 2], [3, 4], [5, 1]], cluster(racks)) == (1, 1)
    assert rounds_of(replicas, cluster(racks)) == (1, 0)
