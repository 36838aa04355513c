"""Records at a fixed pace, sent by producers with more and less buffer.memory to brokers that answer late."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.backtest.lab import BOOTSTRAP, Cluster, Lab, Settings

SEED = 7
LATE: Settings = {"replica.fetch.min.bytes": 10_000_000, "replica.fetch.wait.max.ms": 40}
"""Followers wait for more bytes than there are, so that acks=all takes long."""
PLENTY = 33_554_432
LITTLE = "little"
CHANGES = ("", LITTLE)
"""As much buffer.memory as can be used, or the little of it that a pace declares."""


@dataclass(frozen=True)
class Pace:
    """What is sent. bytes: about the size of a record. little: the buffer.memory of runs that have too little of it."""

    batch_size: int
    linger_ms: int
    little: int
    records: int
    us: int
    bytes: int
    partitions: int = 6
    threads: int = 1
    acks: str = "all"
    block_ms: int = 60_000

    def settings(self, change: str) -> dict[str, int]:
        """The settings that a replay takes."""
        memory = self.little if change else PLENTY
        return {"buffer.memory": memory, "max.block.ms": self.block_ms, "batch.size": self.batch_size}


PACES: Mapping[str, Pace] = {
    "large": Pace(16_384, 0, 98_304, 500, 15_000, 12_000),
    "threads": Pace(16_384, 0, 98_304, 500, 15_000, 12_000, threads=16),
    "impatient": Pace(16_384, 0, 98_304, 500, 15_000, 12_000, threads=16, block_ms=50),
    "small": Pace(16_384, 20, 196_608, 4_000, 1_500, 1_000),
    "linger": Pace(65_536, 1_000, 400_000, 6_000, 1_500, 200, partitions=12, acks="1"),
}
"""Records as large as a batch, sent by one thread, by several threads, and by several that do not wait long; small
records; and records that wait for more records of their partition."""


def named(pace: str, change: str, again: int) -> str:
    """The client.id and the topic of a run."""
    return "-".join(["buffer", pace, *change.split(), str(again)])


def capture(work: Path, pace: str, change: str) -> Path:
    """The capture of all runs of a pace under some settings."""
    return work / f"{named(pace, change, 0)[:-2]}.pcap"


def captures(work: Path, _: int) -> list[Path]:
    """The captures. Each has the clients' own figures in a file beside it."""
    files = [capture(work, pace, change) for pace in PACES for change in CHANGES]
    return [file.with_suffix(suffix) for file in files for suffix in (".pcap", ".json")]


def record(lab: Lab, repeats: int) -> None:
    """Record one capture for each group that has none."""
    with lab.cluster("buffer", {"auto.create.topics.enable": "false", **LATE}) as cluster:
        for pace in PACES:
            for change in CHANGES:
                file = capture(lab.work, pace, change)
                if file.with_suffix(".json").exists():
                    continue
                with cluster.captured(file):
                    names = [named(pace, change, again) for again in range(repeats)]
                    told = {name: send(cluster, name, PACES[pace], change) for name in names}
                file.with_suffix(".json").write_text(json.dumps(told))


def send(cluster: Cluster, name: str, pace: Pace, change: str) -> Mapping[str, float]:
    """Run one producer with its own topic; returns its figures."""
    cluster.drive("topic", name, pace.partitions, rf=2)
    settings = {**pace.settings(change), "linger.ms": pace.linger_ms, "acks": pace.acks, "client.id": name}
    said = cluster.java(
        Path(__file__).with_name("PacedProducer.java"), BOOTSTRAP, name, SEED, pace.records, pace.us, pace.bytes,
        pace.partitions, pace.threads, *(f"{key}={value}" for key, value in settings.items()),
    )  # fmt: skip
    return {key: float(value) for key, value in (line.split() for line in said.splitlines())}
