"""The same records produced again and again under several bandwidth quotas of producers (KIP-13)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.backtest.byte_rate_traffic import limit
from tests.backtest.lab import BOOTSTRAP, Cluster, Lab

TOPIC, PARTITIONS, RECORDS, SIZE, SEED = "produced", 6, 18_000, 1_000, 5
US = 660
"""The Java producer's time from one record to the next, us. librdkafka's producer has all records at once."""
RATE = "producer_byte_rate"
RATES: Mapping[str, int | None] = {"none": None, "400k": 400_000, "200k": 200_000}
"""The quota of each client.id at each broker, in bytes per second."""


def captures(work: Path, _: int) -> list[Path]:
    """The captures. They share one topic, so they are recorded together."""
    return [work / f"produce-rate-{name}.pcap" for name in RATES]


def record(lab: Lab, repeats: int) -> None:
    """Record one capture for each quota. Each producer runs `repeats` times in it, one after the other."""
    with lab.cluster("produce-rate", {"auto.create.topics.enable": "false"}) as cluster:
        cluster.drive("topic", TOPIC, PARTITIONS, rf=1)
        for name, rate in RATES.items():
            if rate is not None:
                limit(cluster, rate, "clients", RATE)
            with cluster.captured(lab.work / f"produce-rate-{name}.pcap"):
                for again in range(repeats):
                    produce_java(cluster, f"java-{name}-{again}")
                    produce_librdkafka(cluster, f"librdkafka-{name}-{again}")


def produce_java(cluster: Cluster, client: str) -> None:
    """Run a Java producer that sends records at a fixed pace."""
    cluster.java(
        Path(__file__).with_name("PacedProducer.java"), BOOTSTRAP, TOPIC, SEED, RECORDS, US, SIZE, PARTITIONS, 1,
        f"client.id={client}", "linger.ms=5", "acks=all",
    )  # fmt: skip


def produce_librdkafka(cluster: Cluster, client: str) -> None:
    """Run a librdkafka producer that has all its records at once."""
    cluster.drive("rd_produce", TOPIC, "none", RECORDS, SEED, kind="random", size=SIZE, conf={"client.id": client})
