"""SimpleMemoryPool as Kafka 4.4 has it (org.apache.kafka.common.memory): the pool behind queued.max.request.bytes
(KIP-72) and, in the prototype of KIP-81, a proposal, behind a consumer's buffer.memory.
"""

from __future__ import annotations

import numpy as np

from udfs.columns.arrays import Record
from udfs.kernels.kernel import kernel

GRANTED, REFUSED, ILLEGAL = 0, 1, 2
UNBOUNDED = 1 << 62  # MemoryPool.NONE: the size of a pool that never refuses
NO_SPELL = -1

POOL = np.dtype(
    [
        (name, np.int64)
        for name in (
            "total",
            "max_single",  # larger allocations are an error, not a refusal
            "strict",  # 1: granted only where the whole of it is free; 0: as long as a byte is
            "available",  # below 0 where a non-strict pool granted more than there was
            "dry_since",  # us: first refusal since the last grant or release, or NO_SPELL
            "dry_us",  # time in dry spells
        )
    ]
)
"""A pool, a row a lane."""


@kernel
def end_dry_spell(pool: Record, time: int) -> None:
    """Note that memory was granted or given back."""
    if pool.dry_since != NO_SPELL:
        pool.dry_us += time - pool.dry_since
        pool.dry_since = NO_SPELL


@kernel
def try_allocate(pool: Record, size: int, time: int) -> int:
    """GRANTED, REFUSED (Kafka's null) or ILLEGAL (Kafka's IllegalArgumentException). size: bytes; time: us."""
    if size < 1 or size > pool.max_single:
        return ILLEGAL
    if pool.available < (size if pool.strict else 1):
        if pool.dry_since == NO_SPELL:
            pool.dry_since = time
        return REFUSED
    pool.available -= size
    end_dry_spell(pool, time)
    return GRANTED


@kernel
def release(pool: Record, size: int, time: int) -> None:
    """Give back an allocation of so many bytes; as in Kafka nobody checks that it was made."""
    pool.available += size
    end_dry_spell(pool, time)


@kernel
def fill_pool(pool: Record, size: int, max_single: int, strict: int) -> None:
    """Make it a pool of which all is free."""
    pool.total, pool.max_single, pool.strict, pool.available = size, max_single, strict, size
    pool.dry_since, pool.dry_us = NO_SPELL, 0
