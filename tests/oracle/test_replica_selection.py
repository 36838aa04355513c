"""A consumer reads where Kafka's own RackAwareReplicaSelector sends it (KIP-392, 4.3.1)."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import NamedTuple

import pyarrow as pa

from tests.oracle.conftest import Jars, RunJava
from udfs.replay.fetch_max_bytes.rack_reads import READS, located_reads

RACKS = {str(node): rack for node, rack in zip(range(12), "aaaabbbbccdd", strict=True)}
EXAMPLES, DRAWS = 300, 8


class Case(NamedTuple):
    """A consumer's rack, and a partition's leader and in-sync replicas."""

    rack: str
    leader: int
    isr: list[int]

    def line(self, rng: random.Random) -> str:
        """The case as SelectReplica.java reads it. Each replica gets a random log end offset, and a random time since
        it was last caught up.
        """
        views = [f"{node}/{RACKS[str(node)]}/{rng.randrange(3)}/{rng.randrange(3)}" for node in self.isr]
        return " ".join([self.rack, str(self.leader), *views])


def drawn(rng: random.Random) -> Case:
    isr = rng.sample(range(len(RACKS)), rng.randrange(1, 6))
    return Case(rng.choice("abcd"), rng.choice(isr), isr)


def ours(cases: list[Case]) -> list[set[str]]:
    """For each case the replicas, of which one serves the consumer."""
    same = {"client_id": "app", "client_address": "10.0.0.1", "topic": "t", "partition": 0, "bytes": 1}
    reads = [
        {**same, "client_rack": c.rack, "broker": str(c.leader), "leader": str(c.leader), "isr": c.isr,
         "api_version": 11}
        for c in cases
    ]  # fmt: skip
    (rows,) = located_reads([pa.RecordBatch.from_pylist(reads, READS)], RACKS)
    return [set(row["preferred"].split(",")) for row in rows.to_pylist()]


def test_kafka_selects_one_of_the_preferred_replicas_and_each_of_them_once(run_java: RunJava, jars: Jars) -> None:
    rng = random.Random(392)  # noqa: S311  (not for secrets)
    cases = [drawn(rng) for _ in range(EXAMPLES)]
    lines = [case.line(rng) for case in cases for _ in range(DRAWS)]
    told = run_java("SelectReplica.java", *jars("org.apache.kafka:kafka-clients:4.3.1"), stdin="\n".join(lines))
    selected = defaultdict[int, set[str]](set)
    for place, node in enumerate(told.split()):
        selected[place // DRAWS].add(node)
    preferred = ours(cases)
    assert all(selected[place] <= those for place, those in enumerate(preferred))
    alone = [place for place, those in enumerate(preferred) if len(those) == 1]
    several = [place for place, those in enumerate(preferred) if len(those) > 1]
    assert len(alone) > EXAMPLES // 2
    assert several
    assert sum(selected[place] == preferred[place] for place in several) > len(several) // 2
