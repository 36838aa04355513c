"""What a broker's log tells of its memory pool (KIP-72): SimpleMemoryPool and NetworkReceive at TRACE, pool_log.yaml.

A line is `time, thread, message`, with tabs. A receive that is refused is told with its size and its connection. What
is granted is told with its thread and its size only, so that of equal ones the first refused counts as granted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from math import ceil

GRANTED, RELEASED = "allocated buffer of size ", "released buffer of size "
REFUSED = re.compile(r"Broker low on memory - could not allocate buffer of size (\d+) for source (\S+)")
CONTROLLERS = "CONTROLLER"
"""In the names of the threads of a controller's listener, which has a pool of its own in the same process."""
Key = tuple[str, int]


@dataclass
class Pool:
    """A pool as its log goes on. since: when each receive was refused first (ms), by thread and size, by connection."""

    used: int = 0
    most_used: int = 0
    refused_at: float | None = None
    depleted_ms: float = 0.0
    granted: int = 0
    since: dict[Key, dict[str, float]] = field(default_factory=dict)
    waits_ms: list[float] = field(default_factory=list)

    def grant(self, time: float, key: Key) -> None:
        """Some bytes are granted, to one that waited if any of its size did."""
        self.granted += 1
        self.used += key[1]
        self.most_used = max(self.most_used, self.used)
        self.end_dry_spell(time)
        if waiting := self.since.get(key):
            self.waits_ms.append(time - waiting.pop(next(iter(waiting))))

    def release(self, time: float, size: int) -> None:
        """Some bytes are given back."""
        self.used -= size
        self.end_dry_spell(time)

    def refuse(self, time: float, key: Key, connection: str) -> None:
        """A connection's receive is refused, maybe again."""
        self.since.setdefault(key, {}).setdefault(connection, time)
        if self.refused_at is None:
            self.refused_at = time

    def end_dry_spell(self, time: float) -> None:
        """SimpleMemoryPool.maybeRecordEndOfDrySpell."""
        if self.refused_at is not None:
            self.depleted_ms += time - self.refused_at
            self.refused_at = None


def pool_figures(lines: Iterable[str]) -> Mapping[str, float]:
    """What became of a broker's pool."""
    pool = Pool()
    for time, thread, told in events(lines):
        if told.startswith(GRANTED):
            pool.grant(time, (thread, int(told.split()[-1])))
        elif told.startswith(RELEASED):
            pool.release(time, int(told.split()[-1]))
        elif refused := REFUSED.match(told):
            pool.refuse(time, (thread, int(refused[1])), refused[2])
    return {
        "requests that wait": len(pool.waits_ms),
        "wait ms, longest": max(pool.waits_ms, default=0.0),
        "... 99th percentile of all": quantile([0.0] * (pool.granted - len(pool.waits_ms)) + pool.waits_ms, 0.99),
        "depleted ms": pool.depleted_ms,
        "most bytes in use": pool.most_used,
    }


def quantile(values: Sequence[float], share: float) -> float:
    """The least value that so large a share of them does not exceed; 0 of none."""
    return sorted(values)[max(ceil(share * len(values)) - 1, 0)] if values else 0.0


def events(lines: Iterable[str]) -> Iterator[tuple[float, str, str]]:
    """(time in ms, thread, message) of each line that is about the broker's own pool."""
    for line in lines:
        time, thread, told = line.rstrip("\n").split("\t")
        if CONTROLLERS not in thread:
            yield datetime.fromisoformat(time).timestamp() * 1000, thread, told.rstrip()
