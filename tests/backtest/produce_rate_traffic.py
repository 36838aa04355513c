"""The same records produced again and again under several bandwidth quotas of producers (KIP-13)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.backtest.byte_rate_traffic import limit
from tests.backtest.lab import BOOTSTRAP, Cluster, Lab

TOPIC, PARTITIONS, RECORDS, SIZE, SEED = "produced", 6, 18_000, 1_000, 5
US = 660
"""How long after one record the next is due, of the Java producer; librdkafka's has all of them at once."""
RATE = "producer_byte_rate"
RATES: Mapping[str, int | None] = {"none": None, "400k": 400_000, "200k": 200_000}
"""Bytes a second that each client.id has at each broker."""


def captures(work: Path, _: int) -> list[Path]:
    """What is recorded; all of one topic, so all together."""
    return [work / f"produce-rate-{name}.pcap" for name in RATES]


def record(lab: Lab, repeats: int) -> None:
    """One capture a quota, each producer in it `repeats` times, one after the other."""
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
    """A Java producer whose records are due at a pace."""
    cluster.java(
        Path(__file__).with_name("PacedProducer.java"), BOOTSTRAP, TOPIC, SEED, RECORDS, US, SIZE, PARTITIONS, 1,
        f"client.id={client}", "linger.ms=5", "acks=all",
    )  # fmt: skip


def produce_librdkafka(cluster: Cluster, client: str) -> None:
    """A producer of librdkafka that has all its records at once."""
    cluster.drive("rd_produce", TOPIC, "none", RECORDS, SEED, kind="random", size=SIZE, conf={"client.id": client})
