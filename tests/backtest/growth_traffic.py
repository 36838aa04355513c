"""Groups with more members, and topics to which more is produced, on a live cluster: what lanes with `traffic.`
predict.

How fast a group reads depends only on how long the application works on each record. The members of a group begin
together, because brokers delay the first assignment.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.backtest.lab import BOOTSTRAP, Cluster, Lab, Settings

MEMBERS = (1, 2, 4)
"""How many members read the same backlog."""
SPEEDS = (1, 2)
"""The factors by which the same records are produced faster."""
TOPIC, PARTITIONS, RECORDS, BYTES = "growth", 8, 12_000, 1_000
WORK_US = 400
"""How long a member works on a record, us: it can take 2,500 records per second."""
LIVE_RECORDS, LIVE_US = 24_000, 600
"""How many records are produced while a group of one member reads, and the us from one to the next at speed 1."""
LIMITS: Settings = {"max.partition.fetch.bytes": 50_000}
WAIT_FOR_MEMBERS: Settings = {"group.initial.rebalance.delay.ms": 3_000, "auto.create.topics.enable": "false"}
SEED, LONG_MS = 7, 120_000


def backlog_run(work: Path, members: int, again: int) -> Path:
    """The capture of a group with this many members."""
    return work / f"growth-members-{members}-{again}.pcap"


def speed_run(work: Path, speed: int, again: int) -> Path:
    """The capture of records that are produced faster by this factor."""
    return work / f"growth-speed-{speed}-{again}.pcap"


def group_of(run: Path) -> str:
    """The group of a run. Its members' client.ids begin with this name."""
    return run.stem


def captures(work: Path, repeats: int) -> list[Path]:
    """The captures."""
    return [
        *(backlog_run(work, members, again) for members in MEMBERS for again in range(repeats)),
        *(speed_run(work, speed, again) for speed in SPEEDS for again in range(repeats)),
    ]


def record(lab: Lab, repeats: int) -> None:
    """Record one capture for each run."""
    with lab.cluster("growth", WAIT_FOR_MEMBERS) as cluster:
        cluster.drive("topic", TOPIC, PARTITIONS, rf=1)
        produce(cluster, TOPIC, RECORDS, 50)
        for again in range(repeats):
            for members in MEMBERS:
                run = backlog_run(lab.work, members, again)
                with cluster.captured(run):
                    consume(cluster, run, TOPIC, members, RECORDS, LONG_MS)
            for speed in SPEEDS:
                run = speed_run(lab.work, speed, again)
                cluster.drive("topic", group_of(run), PARTITIONS, rf=1)
                with cluster.captured(run), ThreadPoolExecutor(1) as pool:
                    lasts_ms = LIVE_RECORDS * LIVE_US // speed // 1000
                    reading = pool.submit(consume, cluster, run, group_of(run), 1, LIVE_RECORDS + 1, lasts_ms)
                    time.sleep(8)
                    produce(cluster, group_of(run), LIVE_RECORDS, LIVE_US // speed)
                    reading.result()


def produce(cluster: Cluster, topic: str, records: int, us: int) -> None:
    """Produce records of random bytes, one every `us` microseconds, to one partition after the other."""
    cluster.java(
        Path(__file__).with_name("PacedProducer.java"), BOOTSTRAP, topic, SEED, records, us, BYTES, PARTITIONS, 1,
        f"client.id={topic}-producer", "batch.size=4000",
    )  # fmt: skip


def consume(cluster: Cluster, run: Path, topic: str, members: int, records: int, ms: int) -> None:
    """Run a group until it has this many records, or for `ms` from its first record on."""
    cluster.java(
        Path(__file__).with_name("GroupConsumer.java"), BOOTSTRAP, topic, group_of(run), members, WORK_US, records, ms,
        *(f"{key}={value}" for key, value in LIMITS.items()),
    )  # fmt: skip
