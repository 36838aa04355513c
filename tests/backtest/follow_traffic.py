"""A follower that reads an uneven backlog of another broker from the beginning, with its own limits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from tests.backtest.fetch_traffic import SHARES, fill
from tests.backtest.lab import BOOTSTRAP, Cluster, Lab, Settings, wait_until

TOPIC = "followed"
FOLLOWERS: Mapping[int, tuple[str, Settings]] = {
    2: ("base", {"replica.fetch.response.max.bytes": 2_000_000, "replica.fetch.max.bytes": 500_000}),
    3: ("small", {"replica.fetch.response.max.bytes": 300_000, "replica.fetch.max.bytes": 100_000}),
}
"""The limits of a broker as a follower."""


def captures(work: Path, repeats: int) -> list[Path]:
    """The captures. They share one backlog, so they are recorded together."""
    return [work / f"follow-{name}-{again}.pcap" for name, _ in FOLLOWERS.values() for again in range(repeats)]


def record(lab: Lab, repeats: int) -> None:
    """Record one capture each time that broker 2 or 3 reads the topic of broker 1."""
    with lab.cluster("follow", {"auto.create.topics.enable": "false"}) as cluster:
        only_1 = ",".join(["1"] * len(SHARES))
        command = ["--bootstrap-server", BOOTSTRAP, "--create", "--topic", TOPIC, "--replica-assignment", only_1]
        cluster.java("org.apache.kafka.tools.TopicCommand", *command)
        fill(cluster, TOPIC)
        cluster.restart({}, {broker: limits for broker, (_, limits) in FOLLOWERS.items()})
        for broker, (name, _) in FOLLOWERS.items():
            for again in range(repeats):
                with cluster.captured(lab.work / f"follow-{name}-{again}.pcap"):
                    follow(cluster, broker)
                leave(cluster, broker)


def follow(cluster: Cluster, broker: int) -> None:
    """Have a broker follow the topic of broker 1 from its beginning."""
    reassign(cluster, [1, broker])
    all_of_it = log_bytes(cluster, 1)
    wait_until(lambda: log_bytes(cluster, broker) == all_of_it, 60, f"broker {broker} has all of {TOPIC}")


def leave(cluster: Cluster, broker: int) -> None:
    """Have a broker stop following the topic."""
    reassign(cluster, [1])
    wait_until(lambda: log_bytes(cluster, broker) == 0, 60, f"broker {broker} has left {TOPIC}")


def log_bytes(cluster: Cluster, broker: int) -> int:
    """Bytes of the topic's logs in a broker's folder."""
    data = cluster.state / f"broker-{broker}" / "data"
    return sum(file.stat().st_size for file in data.glob(f"{TOPIC}-?/*.log"))


def reassign(cluster: Cluster, replicas: list[int]) -> None:
    """Put the followed topic's partitions on these brokers."""
    partitions = [{"topic": TOPIC, "partition": p, "replicas": replicas} for p in range(len(SHARES))]
    plan = cluster.state / "reassign.json"
    plan.write_text(json.dumps({"version": 1, "partitions": partitions}))
    command = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
    done = cluster.java(command, "--bootstrap-server", BOOTSTRAP, "--reassignment-json-file", plan, "--execute")
    assert "Successfully started" in done, done
