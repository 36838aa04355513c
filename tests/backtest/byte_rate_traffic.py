"""A backlog that consumers read again and again under several bandwidth quotas (KIP-13)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.backtest.fetch_traffic import consume_java, consume_librdkafka
from tests.backtest.lab import BOOTSTRAP, Cluster, Lab

TOPIC, PARTITIONS, RECORDS, SIZE = "backlog", 6, 60_000, 1_000
RATE = "consumer_byte_rate"
RATES: Mapping[str, int | None] = {"none": None, "1m": 1_000_000, "500k": 500_000}
"""The quota of each client.id at each broker, in bytes per second."""
SECONDS = {"none": 8, "1m": 25, "500k": 90}
"""How long a librdkafka consumer reads."""


def captures(work: Path, _: int) -> list[Path]:
    """The captures. They share one backlog, so they are recorded together."""
    return [work / f"byte-rate-{name}.pcap" for name in RATES]


def record(lab: Lab, repeats: int) -> None:
    """Record one capture for each quota. Each consumer runs `repeats` times in it, one after the other."""
    with lab.cluster("byte-rate", {"auto.create.topics.enable": "false"}) as cluster:
        write_backlog(cluster)
        for name, rate in RATES.items():
            if rate is not None:
                limit(cluster, rate, "clients")
            with cluster.captured(lab.work / f"byte-rate-{name}.pcap"):
                for again in range(repeats):
                    consume_java(cluster, f"java-{name}-{again}", TOPIC, RECORDS, {})
                    consume_librdkafka(cluster, f"librdkafka-{name}-{again}", TOPIC, SECONDS[name], {})


def write_backlog(cluster: Cluster) -> None:
    """Produce the records that consumers read."""
    cluster.drive("topic", TOPIC, PARTITIONS, rf=1)
    cluster.drive("rd_produce", TOPIC, "none", RECORDS, 1, kind="random", size=SIZE)


def limit(cluster: Cluster, rate: int, whose: str, quota: str = RATE) -> None:
    """Set this quota. whose: `clients`, for every client.id, or `users`."""
    cluster.java(
        "kafka.admin.ConfigCommand", "--bootstrap-server", BOOTSTRAP, "--alter", "--add-config", f"{quota}={rate}",
        "--entity-type", whose, "--entity-default",
    )  # fmt: skip
