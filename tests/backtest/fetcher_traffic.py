"""A follower that starts again without its logs, and reads several topics of another broker with 1, 2 or 4 fetchers."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.backtest.lab import BOOTSTRAP, Cluster, Lab, Settings, wait_until

TOPICS, PARTITIONS = tuple(f"replicated-{n}" for n in range(6)), 4
RECORDS, SHARES = 8_000, (70, 10, 5, 15)
LEADER, FOLLOWER = 1, 2
LIMITS: Settings = {"replica.fetch.response.max.bytes": 300_000, "replica.fetch.max.bytes": 100_000}
FETCHERS = (1, 2, 4)
"""The values of num.replica.fetchers."""


def capture(work: Path, fetchers: int, again: int) -> Path:
    """The capture of one run."""
    return work / f"fetchers-{fetchers}-{again}.pcap"


def captures(work: Path, repeats: int) -> list[Path]:
    """The captures. They share one backlog, so they are recorded together."""
    return [capture(work, fetchers, again) for fetchers in FETCHERS for again in range(repeats)]


def record(lab: Lab, repeats: int) -> None:
    """Record one capture each time that the follower starts and reads everything."""
    with lab.cluster("fetchers", {"auto.create.topics.enable": "false"}) as cluster:
        replicas = ",".join([f"{LEADER}:{FOLLOWER}"] * PARTITIONS)
        for topic in TOPICS:
            command = ["--bootstrap-server", BOOTSTRAP, "--create", "--topic", topic, "--replica-assignment", replicas]
            cluster.java("org.apache.kafka.tools.TopicCommand", *command)
            cluster.drive("rd_produce", topic, "none", RECORDS, 1, kind="random", size=900, skew=list(SHARES),
                          conf={"batch.size": 40_000})  # fmt: skip
        for again in range(repeats):
            for fetchers in FETCHERS:
                start_anew(cluster, fetchers, capture(lab.work, fetchers, again))


def start_anew(cluster: Cluster, fetchers: int, file: Path) -> None:
    """Stop the follower, delete its logs of the topics, and start it with this many fetchers. A client asks for the
    names of topics, because they decide which fetcher gets a partition.
    """
    cluster.stop(FOLLOWER)
    for log in logs(cluster, FOLLOWER):
        shutil.rmtree(log)
    all_of_it = log_bytes(cluster, LEADER)
    with cluster.captured(file):
        cluster.start(FOLLOWER, {**LIMITS, "num.replica.fetchers": fetchers})
        wait_until(lambda: log_bytes(cluster, FOLLOWER) == all_of_it, 120, f"broker {FOLLOWER} has all of {LEADER}'s")
        cluster.java("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", BOOTSTRAP, "--list")


def logs(cluster: Cluster, broker: int) -> list[Path]:
    """The folders of the topics' partitions at a broker."""
    return [log for topic in TOPICS for log in (cluster.state / f"broker-{broker}" / "data").glob(f"{topic}-?")]


def log_bytes(cluster: Cluster, broker: int) -> int:
    """Bytes of the topics' logs in a broker's folder."""
    return sum(file.stat().st_size for log in logs(cluster, broker) for file in log.glob("*.log"))
