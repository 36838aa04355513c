"""The replay of KIP-74 orders partitions as Kafka's PartitionStates does, and reads as its LogSegment does."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np

from tests.oracle.conftest import KAFKA_NEWEST, Jars, RunJava
from udfs.replay.fetch_max_bytes.closed_loop.order import move_partitions_to_end
from udfs.replay.fetch_max_bytes.read_from_log import bytes_read

SEED = 5
# The jars of Kafka that LogSegment needs, and one that these need.
KAFKA_PARTS = ("kafka-storage", "kafka-storage-api", "kafka-server-common", "kafka-clients")
OTHER_PARTS = ("com.yammer.metrics:metrics-core:2.2.0",)


def test_partitions_move_to_the_end_as_in_partition_states(kafka_clients: Path, run_java: RunJava) -> None:
    chance = random.Random(SEED)  # noqa: S311  (not for secrets)
    lines, expected = [], []
    for _ in range(300):
        order = chance.sample(range(12), chance.randint(1, 12))
        served = chance.sample(order, chance.randint(0, len(order)))
        lines.append(f"{' '.join(map(str, order))}|{' '.join(map(str, served))}")
        found = np.array(order, np.int64)
        move_partitions_to_end(found, len(order), np.array(served, np.int64), len(served), np.zeros(12, np.int64))
        expected.append(found.tolist())
    printed = run_java("PartitionOrder.java", kafka_clients, stdin="\n".join(lines))
    assert [[int(word) for word in line.split()] for line in printed.splitlines()] == expected


def test_a_read_returns_what_log_segment_does(jars: Jars, run_java: RunJava) -> None:
    """A read whose first batch is incomplete counts as empty, as in ReplicaManager."""
    chance = random.Random(SEED)  # noqa: S311  (not for secrets)
    asked = []
    for _ in range(200):
        lengths = [chance.randint(0, 400) for _ in range(chance.randint(1, 6))]
        asked.append(
            (lengths, chance.randint(0, len(lengths)), chance.choice([0, 1, 70, 100, 500, 5000]), chance.random() < 0.5)
        )
    lines = [f"{' '.join(map(str, lengths))}|{offset} {most} {int(one)}" for lengths, offset, most, one in asked]
    classpath = jars(*(f"org.apache.kafka:{name}:{KAFKA_NEWEST}" for name in KAFKA_PARTS), *OTHER_PARTS)
    printed = run_java("ReadSegment.java", *classpath, stdin="\n".join(lines))
    answers = [line for line in printed.splitlines() if "|" in line]
    assert len(answers) == len(asked)
    for line, (_, offset, most, one) in zip(answers, asked, strict=True):
        sizes, (found, incomplete) = ([int(word) for word in part.split()] for part in line.split("|"))
        there, first = sum(sizes[offset:]), sizes[offset] if offset < len(sizes) else 0
        assert bytes_read(most, first, there, one) == (0 if incomplete else found)
