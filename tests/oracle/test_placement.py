"""Replicas go where Kafka's own placers put them: StripedReplicaPlacer (4.3.1), AdminUtils (4.0.0)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tests.oracle.conftest import Jars, RunJava
from tests.unit.replay.partition_limits.placers import node_ids, placement
from udfs.columns.arrays import Ints
from udfs.replay.partition_limits.placement.brokers import Brokers, brokers_of
from udfs.replay.partition_limits.placement.java_random import java_random
from udfs.replay.partition_limits.placement.limited import new_arrangement, place_limited
from udfs.replay.partition_limits.placement.striped import new_stripes, place_striped

EXAMPLES = 400
RACKS = ("a", "b", "rack-10", "rack-9", "eu-west-1a", "ü", "AaAa", "BBBB", "C#", "Bb")


class Case(NamedTuple):
    """A placement: brokers as (id, rack, is up) in the order of their ids, and the seed or where the placer starts."""

    brokers: list[tuple[int, str | None, bool]]
    partitions: int
    factor: int
    start: int
    first: int

    def words(self) -> str:
        fence = {True: "", False: "f"}
        return " ".join(f"{node}{fence[up]}/{rack or '-'}" for node, rack, up in self.brokers)


def drawn(rng: random.Random, racks: Sequence[str | None], may_be_down: bool) -> Case:
    nodes = sorted(rng.sample(range(100), rng.randrange(1, 13)))
    brokers = [(node, rng.choice(racks), not (may_be_down and rng.random() < 0.2)) for node in nodes]
    return Case(brokers, rng.randrange(1, 40), rng.randrange(1, 6), rng.randrange(len(nodes)), rng.randrange(30))


def cases(may_be_down: bool, *rack_choices: Sequence[str | None]) -> list[Case]:
    rng = random.Random(578)  # noqa: S311  (not for secrets)
    return [drawn(rng, rng.choice(rack_choices), may_be_down) for _ in range(EXAMPLES)]


def line(slots: Ints, brokers: Brokers, factor: int) -> str:
    return " ".join(",".join(map(str, replicas)) for replicas in node_ids(brokers, slots, factor))


def brokers_in(case: Case) -> Brokers:
    nodes, racks, up = zip(*case.brokers, strict=True)
    return brokers_of(nodes, racks, up)


def ours_striped(case: Case) -> str:
    brokers, slots = brokers_in(case), np.zeros(case.partitions * case.factor, np.int64)
    stripes = new_stripes(brokers, java_random(case.start))
    error = place_striped(brokers, stripes, placement(case.partitions, case.factor)[0], slots)
    return "InvalidReplicationFactorException" if error else line(slots, brokers, case.factor)


def ours_admin(case: Case) -> str:
    brokers, slots = brokers_in(case), np.zeros(case.partitions * case.factor, np.int64)
    wanted = placement(case.partitions, case.factor, start=case.start, first_partition=case.first)
    counts, arrangement = np.zeros(len(case.brokers), np.int64), new_arrangement(brokers, java_random(0))
    placed = place_limited(brokers, arrangement, wanted[0], counts, slots)
    return line(slots, brokers, case.factor) if placed else "InvalidReplicationFactorException"


def answers(run_java: RunJava, placer: str, jars: Sequence[Path], lines: Sequence[str]) -> list[str]:
    return run_java("PlaceReplicas.java", *jars, stdin="\n".join(lines), arguments=[placer]).splitlines()


def test_striped_placement_is_kafkas_for_the_same_draws(run_java: RunJava, jars: Jars) -> None:
    drawn_cases = cases(True, (None,), RACKS[:3], RACKS, (None, *RACKS))
    names = ("kafka-metadata", "kafka-server-common", "kafka-clients")
    artifacts = (f"org.apache.kafka:{name}:4.3.1" for name in names)
    lines = [f"{case.start} {case.partitions} {case.factor} {case.words()}" for case in drawn_cases]
    assert [ours_striped(case) for case in drawn_cases] == answers(run_java, "striped", jars(*artifacts), lines)


def test_placement_without_a_limit_is_that_of_admin_utils(run_java: RunJava, jars: Jars) -> None:
    drawn_cases = cases(False, (None,), RACKS[:2], RACKS[:3], RACKS)
    artifacts = (f"org.apache.kafka:{name}:4.0.0" for name in ("kafka-server-common", "kafka-clients"))
    lines = [f"{case.start} {case.first} {case.partitions} {case.factor} {case.words()}" for case in drawn_cases]
    assert [ours_admin(case) for case in drawn_cases] == answers(run_java, "admin", jars(*artifacts), lines)
