"""A backlog read by two consumers at a time, of different client.ids and one user, under quotas of users (KIP-55)."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.backtest.byte_rate_traffic import PARTITIONS, RATE, RECORDS, SIZE, TOPIC
from tests.backtest.fetch_traffic import consume_java
from tests.backtest.lab import BOOTSTRAP, Cluster, Lab

RATES: Mapping[str, int | None] = {"none": None, "1m": 1_000_000}
"""Bytes a second that each user has at each broker."""
BOTH = ("a", "b")
"""The two consumers of a run."""


def captures(work: Path, _: int) -> list[Path]:
    """What is recorded; all of one backlog, so all together."""
    return [work / f"user-rate-{name}.pcap" for name in RATES]


def client(name: str, again: int, which: str) -> str:
    """The client.id of one of the two consumers of a run."""
    return f"java-{name}-{again}-{which}"


def record(lab: Lab, repeats: int) -> None:
    """One capture a quota, with `repeats` runs, one after the other. No client authenticates, so all are one user."""
    with lab.cluster("user-rate", {"auto.create.topics.enable": "false"}) as cluster:
        cluster.drive("topic", TOPIC, PARTITIONS, rf=1)
        cluster.drive("rd_produce", TOPIC, "none", RECORDS, 1, kind="random", size=SIZE)
        for name, rate in RATES.items():
            if rate is not None:
                limit(cluster, rate)
            with cluster.captured(lab.work / f"user-rate-{name}.pcap"):
                for again in range(repeats):
                    with ThreadPoolExecutor(len(BOTH)) as pool:
                        reading = [
                            pool.submit(consume_java, cluster, client(name, again, which), TOPIC, RECORDS, {})
                            for which in BOTH
                        ]
                        [one.result() for one in reading]


def limit(cluster: Cluster, rate: int) -> None:
    """Give every user this quota."""
    cluster.java(
        "kafka.admin.ConfigCommand", "--bootstrap-server", BOOTSTRAP, "--alter", "--add-config", f"{RATE}={rate}",
        "--entity-type", "users", "--entity-default",
    )  # fmt: skip
