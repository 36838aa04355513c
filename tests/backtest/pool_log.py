"""What a broker logs about its memory pool (KIP-72): SimpleMemoryPool and NetworkReceive at TRACE, by pool_log.yaml.

A line has time, thread and message, with tabs between them. A refused receive is logged with its size and connection, a
granted one only with its size. So of several waiting receives of one thread and size, the first counts as granted.
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
"""A part of the names of threads of the controller's listener, which has a pool of its own in the same process."""
Key = tuple[str, int]


@dataclass
class Pool:
    """A pool at one line of its log. since: when each waiting receive was first refused (ms), by thread and size, and
    by connection.
    """

    used: int = 0
    most_used: int = 0
    refused_at: float | None = None
    depleted_ms: float = 0.0
    granted: int = 0
    since: dict[Key, dict[str, float]] = field(default_factory=dict)
    waits_ms: list[float] = field(default_factory=list)

    def grant(self, time: float, key: Key) -> None:
        """Some bytes are granted: to a receive that waits, if one of this thread and size waits."""
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
        """A connection's receive is refused, maybe not for the first time."""
        self.since.setdefault(key, {}).setdefault(connection, time)
        if self.refused_at is None:
            self.refused_at = time

    def end_dry_spell(self, time: float) -> None:
        """The pool is no longer depleted, if it was (SimpleMemoryPool.maybeRecordEndOfDrySpell)."""
        if self.refused_at is not None:
            self.depleted_ms += time - self.refused_at
            self.refused_at = None


def pool_figures(lines: Iterable[str]) -> Mapping[str, float]:
    """The figures of a broker's pool."""
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
    """The smallest value that at least this share of the values does not exceed; 0 without values."""
    return sorted(values)[max(ceil(share * len(values)) - 1, 0)] if values else 0.0


def events(lines: Iterable[str]) -> Iterator[tuple[float, str, str]]:
    """(time in ms, thread, message) of each line that is about the broker's own pool."""
    for line in lines:
        time, thread, told = line.rstrip("\n").split("\t")
        if CONTROLLERS not in thread:
            yield datetime.fromisoformat(time).timestamp() * 1000, thread, told.rstrip()
