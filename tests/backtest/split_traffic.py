"""The same records, sent by producers with several settings to topics with several limits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from tests.backtest.lab import BOOTSTRAP, Cluster, Lab, Settings

RECORDS, RECORDS_A_MS, SEED, PARTITIONS = 30_000, 10, 7, 2
BASE: Settings = {"batch.size": 38_000, "linger.ms": 20, "compression.type": "lz4", "max.message.bytes": 40_000}
IN_TURN = "in turn"
"""Not a setting of Kafka: the records go to the partitions in turn, instead of to those that the client's partitioner
chooses."""
CHANGES: Mapping[str, Settings] = {
    "base": {},
    "less": {"batch.size": 30_000},
    "more": {"batch.size": 60_000},
    "short": {"linger.ms": 2},
    "tight": {"max.message.bytes": 30_000},
    "gzip": {"compression.type": "gzip"},
    "zstd": {"compression.type": "zstd"},
    "none": {"compression.type": "none"},
    "turn": {IN_TURN: True},
    "turn-less": {IN_TURN: True, "batch.size": 30_000},
    "turn-more": {IN_TURN: True, "batch.size": 60_000},
}
"""What each group changes compared with the base; max.message.bytes is the topic's."""
PAIRS = (*(("base", name) for name in ("less", "more", "short", "tight", "gzip", "zstd", "none")),
         ("turn", "turn-less"), ("turn", "turn-more"))  # fmt: skip
"""Groups that are predicted from each other."""


def captures(work: Path, _: int) -> list[Path]:
    """The captures. Each has the clients' own counts in a file beside it."""
    return [work / f"split-{name}.{kind}" for name in CHANGES for kind in ("pcap", "json")]


def record(lab: Lab, repeats: int) -> None:
    """Record one capture for each group of settings that has none, with the clients' own counts of splits beside it."""
    with lab.cluster("split", {"auto.create.topics.enable": "false"}) as cluster:
        for name, change in CHANGES.items():
            if (lab.work / f"split-{name}.json").exists():
                continue
            with cluster.captured(lab.work / f"split-{name}.pcap"):
                told = {f"split-{name}-{i}": produce(cluster, f"split-{name}-{i}", change) for i in range(repeats)}
            (lab.work / f"split-{name}.json").write_text(json.dumps(told))


def produce(cluster: Cluster, name: str, change: Settings) -> int:
    """Run one producer, with its own process and topic. Returns how many batches it has split, by its own count."""
    settings = {**BASE, **change}
    limit, in_turn = settings.pop("max.message.bytes"), settings.pop(IN_TURN, False)
    cluster.drive("topic", name, PARTITIONS, rf=1, max_message_bytes=limit)
    given = [f"{key}={value}" for key, value in {**settings, "client.id": name}.items()]
    source = Path(__file__).with_name("SeededProducer.java")
    said = cluster.java(source, BOOTSTRAP, name, SEED, RECORDS, RECORDS_A_MS, PARTITIONS if in_turn else 0, *given)
    told = dict(line.split() for line in said.splitlines() if line.startswith(("batch-split", "failed")))
    assert told["failed"] == "0", said
    return int(told["batch-split-total"])
