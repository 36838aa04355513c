"""SimpleMemoryPool as Kafka 4.4 has it (org.apache.kafka.common.memory): the pool behind queued.max.request.bytes
(KIP-72) and, in the prototype of KIP-81, a proposal, behind a consumer's buffer.memory.
"""

from __future__ import annotations

from udfs.columns.arrays import Record
from udfs.columns.records import int_fields
from udfs.kernels.kernel import kernel

GRANTED, REFUSED, ILLEGAL = 0, 1, 2
NO_SPELL = -1

POOL = int_fields(
    "size",  # bytes
    "max_allocation",  # larger allocations are an error, not a refusal
    "is_strict",  # 1: granted only if the whole of it is free; 0: as long as a byte is
    "available",  # below 0 where a pool that is not strict granted more than there was
    "dry_since",  # us: the first refusal since the last grant or release, or NO_SPELL
    "dry_us",  # time in dry spells
)
"""A pool."""


@kernel
def end_dry_spell(pool: Record, time: int) -> None:
    """Note that memory was granted or given back."""
    if pool.dry_since != NO_SPELL:
        pool.dry_us += time - pool.dry_since
        pool.dry_since = NO_SPELL


@kernel
def forget_dry_spells(pool: Record, time: int) -> None:
    """Count dry spells from a time on; one that lasts goes on from there."""
    pool.dry_us = 0
    if pool.dry_since != NO_SPELL:
        pool.dry_since = time


@kernel
def try_allocate(pool: Record, size: int, time: int) -> int:
    """GRANTED, REFUSED (Kafka's null) or ILLEGAL (Kafka's IllegalArgumentException). size: bytes; time: us."""
    if size < 1 or size > pool.max_allocation:
        return ILLEGAL
    if pool.available < (size if pool.is_strict else 1):
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
def fill_pool(pool: Record, size: int, max_allocation: int, is_strict: int) -> None:
    """Make it a pool of which all is free."""
    pool.size, pool.max_allocation, pool.is_strict, pool.available = size, max_allocation, is_strict, size
    pool.dry_since, pool.dry_us = NO_SPELL, 0
