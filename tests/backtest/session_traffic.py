"""The lab's own traffic of fetch sessions on brokers with few and many slots."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.backtest.lab import Lab, Settings

SLOTS = "max.incremental.fetch.session.cache.slots"
BROKERS: Mapping[str, Settings] = {f"{slots}": {SLOTS: slots} for slots in (8, 4, 16, 64)}
SEED, SCALE = 3, 0.5


def capture(work: Path, slots: str, again: int) -> Path:
    """The capture of one run."""
    return work / f"sessions-{slots}-{again}.pcap"


def captures(work: Path, repeats: int) -> list[Path]:
    """The captures. Each is recorded separately."""
    return [capture(work, slots, again) for slots in BROKERS for again in range(repeats)]


def record(lab: Lab, repeats: int) -> None:
    """Record each capture that is missing. Each takes three minutes."""
    for again in range(repeats):
        for slots, settings in BROKERS.items():
            file = capture(lab.work, slots, again)
            if not file.exists():
                with lab.cluster("sessions", settings) as cluster, cluster.captured(file):
                    cluster.traffic("sessions", SEED, SCALE)
