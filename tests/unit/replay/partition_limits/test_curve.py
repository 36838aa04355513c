"""The curve of max.broker.partitions has the results of a lane for every limit, which take longer to compute."""

from __future__ import annotations

import random

import numpy as np
import pytest

from schemas.tables.event_kinds import TopicEvent
from tests.unit.replay.partition_limits.clusters import (
    BROKER_LIMIT,
    IN_FORCE,
    PROPOSAL,
    SEED,
    Rows,
    created,
    event_table,
    grown,
    requested,
    settings_of,
    shown,
)
from udfs.columns.arrays import read_only
from udfs.columns.sentinels import NONE
from udfs.replay.partition_limits.controller import replay_lanes
from udfs.replay.partition_limits.curve import limit_curves
from udfs.replay.partition_limits.curve_passes import full_brokers, new_passes
from udfs.replay.partition_limits.events import read_topic_events
from udfs.replay.partition_limits.history.changes import history_of
from udfs.replay.partition_limits.settings import unlimited_lane
from udfs.replay.partition_limits.state import MAX_BROKER_PARTITIONS, MAX_PARTITIONS, History, new_sim

CHANGES = 30


def history(rows: Rows, nodes: dict[int, str | None], release: str = "4.3") -> History:
    """The history of a cluster with these brokers and their racks."""
    brokers = [{"entry": TopicEvent.BROKER, "node_id": node, "rack": rack} for node, rack in nodes.items()]
    return history_of(
        read_topic_events(event_table([*brokers, *rows]).to_batches()),
        settings_of({}, {**IN_FORCE, "kafka": release}),
        SEED,
    )


def sometimes_shown(
    chance: random.Random, time: int, topic: str, partitions: int, factor: int, nodes: list[int]
) -> Rows:
    """In half of all cases, rows in which Metadata shows a topic just after its creation, on random brokers."""
    replicas = [chance.sample(nodes, min(factor, len(nodes))) for _ in range(partitions)]
    return [row | {"topic_id": f"{topic}-{time}"} for row in shown(topic, replicas, time + 1)] * chance.randint(0, 1)


def drawn(seed: int, names_brokers: bool, release: str) -> History:
    """Topics that are created, grown and deleted on up to six brokers, some of them by Metadata requests or outside the
    capture. names_brokers: whether requests also place and move replicas on named brokers.
    """
    chance = random.Random(seed)  # noqa: S311  (not for secrets)
    nodes = {node: chance.choice([None, "a", "b"]) for node in range(1, chance.randint(2, 7))}
    if chance.random() < 0.5:
        nodes = {node: rack or "c" for node, rack in nodes.items()}
    kinds = ["create", "create", "create", "beside", "grow", "delete", "internal", "checked", "auto"]
    kinds += ["place", "move"] * names_brokers
    rows = shown("old", [chance.sample(list(nodes), min(2, len(nodes))) for _ in range(chance.randint(0, 6))])
    for time in range(1, CHANGES):
        kind, topic = chance.choice(kinds), f"t{chance.randint(0, 9)}"
        partitions, factor = chance.randint(1, 9), chance.randint(1, 4)
        some = ",".join(map(str, chance.sample(list(nodes), chance.randint(1, len(nodes)))))
        if kind in ("create", "beside"):
            rows += sometimes_shown(chance, time, topic, partitions, factor, list(nodes))
        if kind == "beside":
            continue
        if kind == "auto":
            replicas = [chance.sample(list(nodes), min(factor, len(nodes))) for _ in range(partitions)]
            rows += [row | {"topic_id": f"a-{time}"} for row in shown(f"a{time}", replicas, time + 1)]
        rows.append({
            "create": created(time, topic, partitions, factor),
            "checked": created(time, topic, partitions, factor, validate_only=True),
            "internal": created(time, "__consumer_offsets", partitions, factor),
            "grow": grown(time, topic, partitions * 2),
            "delete": requested(time, "delete_topic", topic),
            "auto": requested(time, "auto_create", f"a{time}", error=3),
            "place": created(time, topic, -1, -1, assignments=[f"0:{some}", f"1:{some}"]),
            "move": requested(time, "reassign_partition", topic, partition=0, assignments=[f"0:{some}"]),
        }[kind])  # fmt: skip
    return history(rows, nodes, release)


def first_refusals(cluster: History, limits: int) -> list[int]:
    """The first change that a lane with max.broker.partitions = 1, 2, ... refuses, NONE where it refuses none."""
    lanes = {str(limit): {**PROPOSAL, BROKER_LIMIT: limit} for limit in range(1, limits + 1)}
    settings = settings_of(lanes)
    sim = new_sim(cluster, settings, limits + 1)
    samples = np.zeros((limits + 1, 1, len(sim.broker_replicas)), np.int64)
    replay_lanes(sim, read_only(np.zeros(0, np.int64)), samples)
    is_refused = sim.outcomes["decided_by"][1:] == MAX_BROKER_PARTITIONS
    return np.where(is_refused.any(axis=1), is_refused.argmax(axis=1), NONE).tolist()


def growing(seed: int) -> History:
    """A cluster of seven brokers in three racks that gets more and more topics. Sometimes one grows or is deleted."""
    chance = random.Random(seed)  # noqa: S311  (not for secrets)
    rows = []
    for time in range(1, 400):
        kind, old = chance.choice(["create"] * 8 + ["grow", "delete"]), f"t{chance.randint(1, time)}"
        partitions, factor = chance.randint(1, 9), chance.randint(1, 3)
        rows.append({
            "create": created(time, f"t{time}", partitions, factor),
            "grow": grown(time, old, partitions * 2),
            "delete": requested(time, "delete_topic", old),
        }[kind])  # fmt: skip
        if kind == "create":
            rows += sometimes_shown(chance, time, f"t{time}", partitions, factor, list(range(7)))
    return history(rows, {node: "abc"[node % 3] for node in range(7)})


def checked_steps(cluster: History) -> int:
    """Compare each limit of the curve with a lane of its own. Returns how many steps the curve has."""
    steps = limit_curves(cluster)[MAX_BROKER_PARTITIONS]
    limits = np.arange(1, int(steps["limit_from"][-1]) + 3)
    of_curve = steps["change"][np.searchsorted(steps["limit_from"], limits, side="right") - 1]
    assert of_curve.tolist() == first_refusals(cluster, len(limits))
    return len(steps) - 1


@pytest.mark.parametrize("names_brokers", [False, True])
@pytest.mark.parametrize("release", ["4.3", "2.7"])
def test_every_limit_first_refuses_the_change_that_a_lane_of_its_own_does(names_brokers: bool, release: str) -> None:
    assert sum(checked_steps(drawn(seed, names_brokers, release)) for seed in range(60)) > 300


@pytest.mark.parametrize("seed", [*range(100, 106)])
def test_a_few_changes_are_first_refused_by_the_limits_by_which_lanes_refuse_them(seed: int) -> None:
    """So few that there is also time for them without compiled kernels (`tests.mutation`)."""
    assert checked_steps(drawn(seed, names_brokers=seed % 2 == 0, release="4.3")) > 0


def test_a_broker_is_full_when_it_has_as_many_replicas_as_the_limit_allows() -> None:
    sim = new_sim(history([], {1: None, 2: None, 3: None}), unlimited_lane())
    passes = new_passes(np.zeros(0, np.int64), 3, 1)
    passes.state["limit"] = 5
    sim.broker_replicas[:] = [4, 5, 6]
    assert full_brokers(sim, passes) == passes.keys[1] ^ passes.keys[2]


@pytest.mark.parametrize("seed", range(4))
def test_every_limit_first_refuses_the_change_that_a_lane_of_its_own_does_as_a_cluster_grows(seed: int) -> None:
    assert checked_steps(growing(seed)) > 100


def test_without_known_brokers_there_is_no_curve_of_the_limit_per_broker() -> None:
    named = requested(3, "create_topic", "v", num_partitions=-1, replication_factor=-1, assignments=["0:1,2"])
    curves = limit_curves(history([created(1, "t", 6, 3), created(2, "u", 4, 3), named], {}))
    assert list(curves) == [MAX_PARTITIONS]
    assert curves[MAX_PARTITIONS]["limit_from"].tolist() == [1, 18, 30, 32]
