"""Clusters for the tests of placers, and how the placers place replicas on them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from udfs.columns.arrays import Ints, Records
from udfs.replay.partition_limits.placement.brokers import PLACEMENT, Brokers, brokers_of
from udfs.replay.partition_limits.placement.java_random import GENERATOR, java_random
from udfs.replay.partition_limits.placement.limited import new_arrangement, place_limited
from udfs.replay.partition_limits.placement.possible_draws import checked_placements
from udfs.replay.partition_limits.placement.striped import new_stripes, place_striped
from udfs.replay.partition_limits.schedule import UNLIMITED

Placed = list[list[int]]
"""The node ids of the replicas of each partition."""


def mock_random() -> Records:
    """`org.apache.kafka.server.util.MockRandom`."""
    return np.array([(17, 2862933555777941757, 3037000493, -1, 64)], GENERATOR)


def cluster(racks: dict[int, str | None], fenced: Sequence[int] = ()) -> Brokers:
    """Brokers by node id, with their racks."""
    nodes = sorted(racks)
    return brokers_of(nodes, [racks[node] for node in nodes], [node not in fenced for node in nodes])


def placement(partitions: int, factor: int, **more: int) -> Records:
    """The placement that a placer has to make: PLACEMENT[1], from partition 0 on unless `more` says otherwise."""
    wanted = np.zeros(1, PLACEMENT)
    wanted["partitions"], wanted["replication_factor"], wanted["limit"] = partitions, factor, UNLIMITED
    for name, value in more.items():
        wanted[name] = value
    return wanted


def node_ids(brokers: Brokers, slots: Ints, factor: int) -> Placed:
    """The node ids in slots, partition by partition."""
    return brokers.table["node_id"][slots].reshape(-1, factor).tolist()


def striped(brokers: Brokers, partitions: int, factor: int, seed: int | None = None) -> Placed:
    """The replicas that StripedReplicaPlacer places, with MockRandom unless there is a seed."""
    slots = np.zeros(partitions * factor, np.int64)
    stripes = new_stripes(brokers, mock_random() if seed is None else java_random(seed))
    assert place_striped(brokers, stripes, placement(partitions, factor)[0], slots) == 0
    return node_ids(brokers, slots, factor)


def limited(
    brokers: Brokers, partitions: int, factor: int, *, start: int = 0, limit: int = UNLIMITED,
    counts: Sequence[int] = (),
) -> Placed:  # fmt: skip
    """The replicas that the proposal's placer places while there is room. counts: replicas already on each broker."""
    present = np.array(counts or [0] * len(brokers.table), np.int64)
    slots, wanted = np.zeros(partitions * factor, np.int64), placement(partitions, factor, start=start, limit=limit)
    placed = place_limited(brokers, new_arrangement(brokers, java_random(7)), wanted[0], present, slots)
    return node_ids(brokers, slots[: placed * factor], factor)


def rounds_of(placed: Placed, brokers: Brokers) -> tuple[int, int]:
    """(rounds of a placement, those of them that can have been drawn). placed: numbers of brokers."""
    replicas, first = np.array(placed, np.int64).reshape(-1), np.zeros(1, np.int64)
    sizes = np.array([len(placed)]), np.array([len(placed[0])])
    (checked,) = checked_placements(replicas, first, *sizes, brokers)
    return int(checked["rounds"]), int(checked["possible"])
