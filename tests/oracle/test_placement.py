"""Replicas go where Kafka's own placers put them: StripedReplicaPlacer (4.3.1), AdminUtils (4.0.0)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tests.oracle.conftest import Jars, RunJava
from udfs.replay.partition_limits.placement.brokers import Brokers, brokers_of
from udfs.replay.partition_limits.placement.java_random import java_random
from udfs.replay.partition_limits.placement.limited import arranged_for, place_limited
from udfs.replay.partition_limits.placement.striped import place_striped, stripes_for
from udfs.replay.partition_limits.schedule import UNLIMITED

EXAMPLES = 400
RACKS = ("a", "b", "rack-10", "rack-9", "eu-west-1a", "ü", "AaAa", "BBBB", "C#", "Bb")


class Asked(NamedTuple):
    """A placement: brokers in order of their ids, partitions, replication factor, and the seed or where to start."""

    brokers: list[tuple[int, str | None, bool]]
    partitions: int
    factor: int
    start: int
    first: int

    def words(self) -> str:
        fence = {True: "", False: "f"}
        return " ".join(f"{node}{fence[up]}/{rack or '-'}" for node, rack, up in self.brokers)


def drawn(rng: random.Random, racks: Sequence[str | None], may_be_down: bool) -> Asked:
    nodes = sorted(rng.sample(range(100), rng.randrange(1, 13)))
    brokers = [(node, rng.choice(racks), not (may_be_down and rng.random() < 0.2)) for node in nodes]
    return Asked(brokers, rng.randrange(1, 40), rng.randrange(1, 6), rng.randrange(len(nodes)), rng.randrange(30))


def cases(may_be_down: bool, *rack_choices: Sequence[str | None]) -> list[Asked]:
    rng = random.Random(578)  # noqa: S311  (not for secrets)
    return [drawn(rng, rng.choice(rack_choices), may_be_down) for _ in range(EXAMPLES)]


def told(out: np.ndarray[tuple[int], np.dtype[np.int64]], brokers: Brokers, factor: int) -> str:
    rows = brokers.node_id[out].reshape(-1, factor).tolist()
    return " ".join(",".join(map(str, row)) for row in rows)


def of(asked: Asked) -> Brokers:
    nodes, racks, up = zip(*asked.brokers, strict=True)
    return brokers_of(nodes, racks, up)


def ours_striped(asked: Asked) -> str:
    brokers, out = of(asked), np.zeros(asked.partitions * asked.factor, np.int64)
    rng = java_random(asked.start)
    error = place_striped(brokers, stripes_for(brokers), rng, asked.partitions, asked.factor, out, 0)
    return "InvalidReplicationFactorException" if error else told(out, brokers, asked.factor)


def ours_admin(asked: Asked) -> str:
    brokers, out = of(asked), np.zeros(asked.partitions * asked.factor, np.int64)
    counts = np.zeros(len(asked.brokers), np.int64)
    placed = place_limited(
        brokers, counts, UNLIMITED, arranged_for(brokers), java_random(0), asked.start, asked.first,
        asked.partitions, asked.factor, out, 0,
    )  # fmt: skip
    return told(out, brokers, asked.factor) if placed else "InvalidReplicationFactorException"


def answers(run_java: RunJava, placer: str, jars: Sequence[Path], lines: Sequence[str]) -> list[str]:
    return run_java("PlaceReplicas.java", *jars, stdin="\n".join(lines), arguments=[placer]).splitlines()


def test_striped_placement_is_kafkas_for_the_same_draws(run_java: RunJava, jars: Jars) -> None:
    asked = cases(True, (None,), RACKS[:3], RACKS, (None, *RACKS))
    names = ("kafka-metadata", "kafka-server-common", "kafka-clients")
    artifacts = (f"org.apache.kafka:{name}:4.3.1" for name in names)
    lines = [f"{a.start} {a.partitions} {a.factor} {a.words()}" for a in asked]
    assert [ours_striped(a) for a in asked] == answers(run_java, "striped", jars(*artifacts), lines)


def test_placement_without_a_limit_is_that_of_admin_utils(run_java: RunJava, jars: Jars) -> None:
    asked = cases(False, (None,), RACKS[:2], RACKS[:3], RACKS)
    artifacts = (f"org.apache.kafka:{name}:4.0.0" for name in ("kafka-server-common", "kafka-clients"))
    lines = [f"{a.start} {a.first} {a.partitions} {a.factor} {a.words()}" for a in asked]
    assert [ours_admin(a) for a in asked] == answers(run_java, "admin", jars(*artifacts), lines)
