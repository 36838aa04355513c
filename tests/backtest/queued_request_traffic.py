"""Producers that all send at the same moments, to brokers with several sizes of queued.max.request.bytes (KIP-72)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.backtest.lab import BOOTSTRAP, BROKERS, Cluster, Lab, Settings

SEED = 7
PLENTY = "plenty"
SIZES: Mapping[str, int] = {PLENTY: 268_435_456, "800k": 800_000, "400k": 400_000}
"""The size of the pool by name. Without a bound, Kafka has no pool that it logs, so one size is more than enough."""
LARGEST_REQUEST = 400_000
"""socket.request.max.bytes: no pool may be smaller."""
PRODUCERS, ROUNDS, MS, RECORDS, BYTES, PARTITIONS = 16, 10, 1_200, 16, 10_000, 6
SENDING = {"linger.ms": 20, "batch.size": 100_000, "max.request.size": LARGEST_REQUEST}
WARM_UP = "queued-warm-up"
"""The topic of a first run that is not captured, because brokers that have just started are slow."""
LOG_CONFIG = Path(__file__).with_name("pool_log.yaml")


def named(size: str, again: int) -> str:
    """The topic of a run."""
    return f"queued-{size}-{again}"


def capture(work: Path, size: str, again: int) -> Path:
    """The capture of a run."""
    return work / f"{named(size, again)}.pcap"


def request_log(run: Path, broker: int) -> Path:
    """The request log of a broker during a run."""
    return run.with_suffix(f".requests-{broker}.log")


def pool_log(run: Path, broker: int) -> Path:
    """What a broker's pool granted, refused and got back during a run."""
    return run.with_suffix(f".pool-{broker}.log")


def captures(work: Path, repeats: int) -> list[Path]:
    """The captures. Each has the figures of brokers and producers in a file beside it."""
    runs = [capture(work, size, again) for size in SIZES for again in range(repeats)]
    return [file for run in runs for file in (run, run.with_suffix(".json"))]


def record(lab: Lab, repeats: int) -> None:
    """Record one capture for each run, on new brokers for each size."""
    for size, pool_bytes in SIZES.items():
        runs = {again: capture(lab.work, size, again) for again in range(repeats)}
        lacking = {again: run for again, run in runs.items() if not run.with_suffix(".json").exists()}
        if not lacking:
            continue
        with lab.cluster("queued", settings(pool_bytes), LOG_CONFIG) as cluster:
            cluster.drive("topic", WARM_UP, PARTITIONS, rf=2)
            traffic(cluster, WARM_UP)
            for again, run in lacking.items():
                send(cluster, run, named(size, again))


def settings(pool_bytes: int) -> Settings:
    """The settings of brokers with a pool of this size."""
    return {
        "queued.max.request.bytes": pool_bytes,
        "socket.request.max.bytes": LARGEST_REQUEST,
        "auto.create.topics.enable": "false",
    }


def send(cluster: Cluster, run: Path, topic: str) -> None:
    """Capture one run, and store the brokers' logs and the figures of brokers and producers beside the capture."""
    cluster.drive("topic", topic, PARTITIONS, rf=2)
    before, ends = depleted_ms(cluster), {file: file.stat().st_size for file in logs(cluster).values()}
    with cluster.captured(run):
        said = traffic(cluster, topic)
    after = depleted_ms(cluster)
    for (broker, is_pool), file in logs(cluster).items():
        copy_from(file, ends[file], pool_log(run, broker) if is_pool else request_log(run, broker))
    told: dict[str, object] = {key: float(value) for key, value in (line.split() for line in said.splitlines())}
    told["depleted-ms"] = {broker: after[broker] - before[broker] for broker in BROKERS}
    run.with_suffix(".json").write_text(json.dumps(told))


def traffic(cluster: Cluster, topic: str) -> str:
    """Run producers, and a consumer of what they send; returns the producers' output."""
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(
            cluster.java, Path(__file__).with_name("GroupConsumer.java"), BOOTSTRAP, topic, topic, 1, 0,
            PRODUCERS * ROUNDS * RECORDS * PARTITIONS, 3 * ROUNDS * MS,
        )  # fmt: skip
        said = cluster.java(
            Path(__file__).with_name("BurstProducers.java"), BOOTSTRAP, topic, SEED, PRODUCERS, ROUNDS, MS, RECORDS,
            BYTES, PARTITIONS, *(f"{key}={value}" for key, value in SENDING.items()),
        )  # fmt: skip
        reading.result()
    return said


def logs(cluster: Cluster) -> dict[tuple[int, bool], Path]:
    """By broker and whether it is the log of the pool: its request log, and the log of its pool."""
    files = {n: cluster.state / f"requests-{n}.log" for n in BROKERS}
    return {(n, is_pool): file.with_suffix(".log.pool") if is_pool else file
            for n, file in files.items() for is_pool in (False, True)}  # fmt: skip


def depleted_ms(cluster: Cluster) -> dict[int, float]:
    """How long each broker's pool was depleted since the broker started (MemoryPoolDepletedTimeTotal, ms)."""
    said = cluster.java("--add-modules=jdk.attach", Path(__file__).with_name("MemoryPools.java"), *pids(cluster))
    return {n: float(line.split()[0]) for n, line in zip(BROKERS, said.splitlines(), strict=True)}


def pids(cluster: Cluster) -> list[int]:
    """The ids of the brokers' processes."""
    return [cluster.pids()[n] for n in BROKERS]


def copy_from(file: Path, begin: int, to: Path) -> None:
    """Copy a file's bytes from `begin` on."""
    with file.open("rb") as source, to.open("wb") as target:
        source.seek(begin)
        shutil.copyfileobj(source, target)
