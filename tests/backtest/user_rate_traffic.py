"""A backlog that two consumers read at once, with different client.ids and one user, under user quotas (KIP-55)."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.backtest.byte_rate_traffic import RECORDS, TOPIC, limit, write_backlog
from tests.backtest.fetch_traffic import consume_java
from tests.backtest.lab import Lab

RATES: Mapping[str, int | None] = {"none": None, "1m": 1_000_000}
"""The quota of each user at each broker, in bytes per second."""
BOTH = ("a", "b")
"""The two consumers of a run."""


def capture(work: Path, name: str, again: int) -> Path:
    """The capture of one run. Runs have separate captures, because in a lane in which a run takes longer, the next one
    would share its quota.
    """
    return work / f"user-rate-{name}-{again}.pcap"


def captures(work: Path, repeats: int) -> list[Path]:
    """The captures. They share one backlog, so they are recorded together."""
    return [capture(work, name, again) for name in RATES for again in range(repeats)]


def client(name: str, again: int, which: str) -> str:
    """The client.id of one of the two consumers of a run."""
    return f"java-{name}-{again}-{which}"


def record(lab: Lab, repeats: int) -> None:
    """Record one capture for each run, with `repeats` runs for each quota. No client authenticates, so all are one
    user.
    """
    with lab.cluster("user-rate", {"auto.create.topics.enable": "false"}) as cluster:
        write_backlog(cluster)
        for name, rate in RATES.items():
            if rate is not None:
                limit(cluster, rate, "users")
            for again in range(repeats):
                with cluster.captured(capture(lab.work, name, again)), ThreadPoolExecutor(len(BOTH)) as pool:
                    reading = [
                        pool.submit(consume_java, cluster, client(name, again, which), TOPIC, RECORDS, {})
                        for which in BOTH
                    ]
                    [one.result() for one in reading]
