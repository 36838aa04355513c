"""Consumers that start together with their producers, or just after these have written: equal runs of lab scenarios.

Every run has its own cluster. Topics are created with their replicas on given brokers, so that runs differ only in
times and in what follows from times, but not in the leaders of partitions.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from tests.backtest.lab import BOOTSTRAP, BROKERS, Cluster, Lab

SCENARIOS = {"mixed": {"orders": 12, "clicks": 24, "audit": 3}, "starve": {"backlog": 8}}
"""The lab's scenarios, with their topics and the topics' numbers of partitions."""
TOPIC_SETTINGS = {"backlog": {"max.message.bytes": 2_000_000}}
SEED, SCALE = 11, 0.5


def capture(work: Path, scenario: str, again: int) -> Path:
    """The capture of a run."""
    return work / f"start-{scenario}-{again}.pcap"


def captures(work: Path, repeats: int) -> list[Path]:
    """The captures."""
    return [capture(work, scenario, again) for scenario in SCENARIOS for again in range(repeats)]


def record(lab: Lab, repeats: int) -> None:
    """Record one capture for each run."""
    for again in range(repeats):
        for scenario in SCENARIOS:
            with lab.cluster("start", {}) as cluster:
                for topic, partitions in SCENARIOS[scenario].items():
                    create_topic(cluster, topic, partitions)
                with cluster.captured(capture(lab.work, scenario, again)):
                    cluster.traffic(scenario, SEED, SCALE)


def create_topic(cluster: Cluster, topic: str, partitions: int) -> None:
    """Create a topic whose partitions have one broker after the other as their leader."""
    brokers = [BROKERS[p % len(BROKERS)] for p in range(partitions + 1)]
    replicas = ",".join(f"{leader}:{follower}" for leader, follower in pairwise(brokers))
    settings = [word for key, value in TOPIC_SETTINGS.get(topic, {}).items() for word in ("--config", f"{key}={value}")]
    cluster.java(
        "org.apache.kafka.tools.TopicCommand", "--bootstrap-server", BOOTSTRAP, "--create", "--topic", topic,
        "--replica-assignment", replicas, *settings,
    )  # fmt: skip
