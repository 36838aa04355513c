"""The curve of max.broker.partitions is that of a lane for every limit, which is the slow way to it."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from schemas.tables.steps import TOPIC_EVENTS
from tests.unit.replay.partition_limits.test_replay import Rows, asked, created, grown, limit, seen
from udfs.facts.arrow_tables import arrow_schema
from udfs.replay.partition_limits.curve import limit_curves
from udfs.replay.partition_limits.first_refusal import NONE_FAILS
from udfs.replay.partition_limits.history.changes import BROKER, History, history_of
from udfs.replay.partition_limits.history.requested_changes import Defaults
from udfs.replay.partition_limits.replay import LimitLane, replayed
from udfs.replay.partition_limits.state import MAX_BROKER_PARTITIONS, MAX_PARTITIONS

CHANGES = 30
NO_TIMES = np.zeros(0, np.int64)


def history(rows: list[dict[str, Any]], nodes: dict[int, str | None]) -> History:
    brokers = [{"entry": BROKER, "node_id": node, "rack": rack} for node, rack in nodes.items()]
    listed = [{str(c): row.get(c) for c in TOPIC_EVENTS.columns} for row in (*brokers, *rows)]
    return history_of(pa.Table.from_pylist(listed, schema=arrow_schema(TOPIC_EVENTS)), Defaults(2, 1), 7, False)


def shown(chance: random.Random, time: int, topic: str, partitions: int, factor: int, nodes: list[int]) -> Rows:
    """One time in two, where Metadata shows a topic that was made just before: anywhere."""
    replicas = [chance.sample(nodes, min(factor, len(nodes))) for _ in range(partitions)]
    return [row | {"topic_id": f"{topic}-{time}"} for row in seen(topic, replicas, time + 1)] * chance.randint(0, 1)


def drawn(seed: int, names_brokers: bool) -> History:
    """Topics made, grown and deleted on up to six brokers, also beside the capture; with names of brokers, placed and
    moved by requests, too.
    """
    chance = random.Random(seed)  # noqa: S311  (not for secrets)
    nodes = {node: chance.choice([None, "a", "b"]) for node in range(1, chance.randint(2, 7))}
    if chance.random() < 0.5:
        nodes = {node: rack or "c" for node, rack in nodes.items()}
    kinds = ["create", "create", "create", "beside", "grow", "delete", "internal", "checked"]
    kinds += ["place", "move"] * names_brokers
    rows = seen("old", [chance.sample(list(nodes), min(2, len(nodes))) for _ in range(chance.randint(0, 6))])
    for time in range(1, CHANGES):
        kind, topic = chance.choice(kinds), f"t{chance.randint(0, 9)}"
        partitions, factor = chance.randint(1, 9), chance.randint(1, 4)
        some = ",".join(map(str, chance.sample(list(nodes), chance.randint(1, len(nodes)))))
        if kind in ("create", "beside"):
            rows += shown(chance, time, topic, partitions, factor, list(nodes))
        if kind == "beside":
            continue
        rows.append({
            "create": created(time, topic, partitions, factor),
            "checked": created(time, topic, partitions, factor, validate_only=True),
            "internal": created(time, "__consumer_offsets", partitions, factor),
            "grow": grown(time, topic, partitions * 2),
            "delete": asked(time, "delete_topic", topic),
            "place": created(time, topic, -1, -1, assignments=[f"0:{some}", f"1:{some}"]),
            "move": asked(time, "reassign_partition", topic, partition=0, assignments=[f"0:{some}"]),
        }[kind])  # fmt: skip
    return history(rows, nodes)


def first_refusal(found: History, most: int) -> int:
    """The first change that a lane with max.broker.partitions = most refuses."""
    lane = LimitLane("slow", broker=limit(most), release=None)
    refused = np.flatnonzero(replayed(found, lane, NO_TIMES).outcomes.reason == MAX_BROKER_PARTITIONS)
    return int(refused[0]) if len(refused) else NONE_FAILS


def growing(seed: int) -> History:
    """One topic after the other on seven brokers of three racks, now and then one that grows or goes."""
    chance = random.Random(seed)  # noqa: S311  (not for secrets)
    rows = []
    for time in range(1, 400):
        kind, old = chance.choice(["create"] * 8 + ["grow", "delete"]), f"t{chance.randint(1, time)}"
        partitions, factor = chance.randint(1, 9), chance.randint(1, 3)
        rows.append({
            "create": created(time, f"t{time}", partitions, factor),
            "grow": grown(time, old, partitions * 2),
            "delete": asked(time, "delete_topic", old),
        }[kind])  # fmt: skip
        if kind == "create":
            rows += shown(chance, time, f"t{time}", partitions, factor, list(range(7)))
    return history(rows, {node: "abc"[node % 3] for node in range(7)})


def refusals_in_curve(found: History) -> int:
    """Hold each limit of the curve against a lane of its own; how many steps the curve has."""
    steps = limit_curves(found.changes, found.brokers, len(found.topics))[MAX_BROKER_PARTITIONS]
    for most in range(1, int(steps.limit_from[-1]) + 3):
        step = int(np.searchsorted(steps.limit_from, most, side="right")) - 1
        assert steps.change[step] == first_refusal(found, most), most
    return len(steps.change) - 1


@pytest.mark.parametrize("names_brokers", [False, True])
def test_every_limit_refuses_first_what_a_lane_of_its_own_does(names_brokers: bool) -> None:
    assert sum(refusals_in_curve(drawn(seed, names_brokers)) for seed in range(60)) > 300


@pytest.mark.parametrize("seed", range(4))
def test_so_it_does_while_a_cluster_grows(seed: int) -> None:
    assert refusals_in_curve(growing(seed)) > 100


def test_of_brokers_that_are_not_known_no_limit_is_said_to_refuse_nothing() -> None:
    named = asked(3, "create_topic", "v", num_partitions=-1, replication_factor=-1, assignments=["0:1,2"])
    found = history([created(1, "t", 6, 3), created(2, "u", 4, 3), named], {})
    curves = limit_curves(found.changes, found.brokers, len(found.topics))
    assert list(curves) == [MAX_PARTITIONS]
    assert curves[MAX_PARTITIONS].limit_from.tolist() == [1, 18, 30, 32]
