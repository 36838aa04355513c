"""Exchanges on connections that share a pool, as tests write them down."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from udfs.replay.consumer_memory.pool import UNBOUNDED
from udfs.replay.consumer_memory.state import MEMORY_POOL, NONE, Bounds, Trace
from udfs.replay.shared.lanes import AS_CAPTURED

Exchange = tuple[int, int, int, int, int]  # connection, asked, came, size, held
MOST = (1 << 31) - 1


def trace_of(
    exchanges: Iterable[Exchange],
    privileged: Iterable[int] = (),
    max_bytes: int = 0,
    records: int = 0,
    started: Iterable[int] | None = None,
) -> Trace:
    """The exchanges as a trace; connections are numbered from 0. started: by default a message comes at once."""
    rows = sorted(exchanges, key=lambda exchange: (exchange[1], exchange[0]))
    connection, asked, came, size, held = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    n = len(rows)
    behind, first = np.full(n, NONE), np.full(int(connection.max()) + 1, NONE)
    last: dict[int, int] = {}
    for i, c in enumerate(connection.tolist()):
        if c in last:
            behind[last[c]] = i
        else:
            first[c] = i
        last[c] = i
    is_privileged = np.isin(np.arange(len(first)), list(privileged)).astype(np.int64)
    return Trace(
        connection, behind, asked, came if started is None else np.array(list(started), np.int64), came, size, held,
        np.full(n, records), np.full(n, max_bytes), first, is_privileged,
    )  # fmt: skip


def bounds_of(
    *sizes: int, strict: bool = False, variant: int = MEMORY_POOL, record_us: int = AS_CAPTURED, most_records: int = 500
) -> Bounds:
    """A lane a size."""
    n = len(sizes)
    return Bounds(
        np.array(sizes, np.int64),
        np.minimum(np.array(sizes, np.int64), UNBOUNDED if UNBOUNDED in sizes else MOST),
        np.full(n, int(strict)),
        np.full(n, variant),
        np.full(n, record_us),
        np.full(n, most_records),
        np.arange(n),
    )
