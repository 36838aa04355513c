"""StripedReplicaPlacer's placement as Kafka's own tests expect it."""

from __future__ import annotations

import numpy as np
import pytest

from schemas.wire.errors import INVALID_REPLICATION_FACTOR
from tests.unit.replay.partition_limits.placers import cluster, mock_random, placement, striped
from udfs.replay.partition_limits.placement.brokers import hash_map_order
from udfs.replay.partition_limits.placement.striped import new_stripes, place_striped


def test_striped_placement_over_a_fenced_broker() -> None:
    """StripedReplicaPlacerTest, with MockRandom."""
    brokers = cluster(dict.fromkeys(range(5)), fenced=[1])
    assert striped(brokers, 5, 4) == [[3, 4, 0, 2], [4, 0, 2, 3], [0, 2, 3, 4], [2, 3, 4, 0], [0, 4, 3, 2]]


def test_striped_placement_over_racks() -> None:
    racks: dict[int, str | None] = {10: "1", 11: "1", 20: "2", 21: "2", 30: "3", 31: "3"}
    assert striped(cluster(racks, fenced=[20]), 3, 4) == [[11, 21, 31, 10], [21, 30, 10, 20], [31, 11, 21, 30]]


@pytest.mark.parametrize("seed", range(4))
def test_as_many_replicas_as_brokers_use_each_broker_and_no_leader_is_on_a_fenced_one(seed: int) -> None:
    racks: dict[int, str | None] = {10: "1", 11: "1", 20: "2", 21: "2", 30: "3", 31: "3"}
    for replicas in striped(cluster(racks, fenced=[11, 21, 31]), 5, 6, seed):
        assert sorted(replicas) == [*racks]
        assert replicas[0] in (10, 20, 30)


@pytest.mark.parametrize("replicas", [0, 3])
def test_no_replicas_and_more_replicas_than_brokers_are_refused(replicas: int) -> None:
    brokers = cluster(dict.fromkeys(range(2)))
    stripes, slots = new_stripes(brokers, mock_random()), np.zeros(3, np.int64)
    assert place_striped(brokers, stripes, placement(1, replicas)[0], slots) == INVALID_REPLICATION_FACTOR


def test_racks_are_in_the_order_of_javas_hash_map() -> None:
    """They are ordered by the low bits of their hashes; no rack has 0. Of equal ones, the one put first comes first."""
    assert hash_map_order(["b", "a", None]) == [None, "a", "b"]
    assert hash_map_order(["BB", "c", "Aa"]) == ["BB", "Aa", "c"]


def test_a_leader_goes_to_the_next_rack_whose_brokers_are_not_all_fenced() -> None:
    """Brokers 4 and 5 are alone in their racks and fenced, so that the racks of 0 and 1 get all leaders in turn."""
    racks: dict[int, str | None] = {node: str(node) for node in range(6)}
    leaders = [nodes[0] for nodes in striped(cluster(racks, fenced=(2, 3, 4, 5)), 40, 1, seed=3)]
    assert {*leaders} == {0, 1}
    assert 10 <= leaders.count(0) <= 30
    one = [nodes[0] for nodes in striped(cluster(racks, fenced=(0, 1, 2, 4, 5)), 12, 1, seed=3)]
    assert one == [3] * 12
