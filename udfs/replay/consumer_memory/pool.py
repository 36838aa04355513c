"""SimpleMemoryPool of Kafka 4.4 (org.apache.kafka.common.memory): the pool behind queued.max.request.bytes (KIP-72)
and, in the prototype of KIP-81, a proposal, behind a consumer's buffer.memory.
"""

from __future__ import annotations

from udfs.columns.arrays import Record
from udfs.columns.records import int_fields
from udfs.kernels.kernel import kernel

GRANTED, REFUSED, ILLEGAL = 0, 1, 2
NOT_DEPLETED = -1

POOL = int_fields(
    "size",  # bytes
    "max_allocation",  # bytes: larger allocations are an error, not a refusal
    "is_strict",  # 1: it grants only what is wholly free; 0: it grants as long as a byte is free
    "available",  # bytes: below 0 if a pool that is not strict granted more than was free
    "depleted_since",  # us: when it first refused since the last grant or release; NOT_DEPLETED: it has not
    "depleted_us",  # us: how long it was depleted, each time from a refusal to the next grant or release
)
"""A pool."""


@kernel
def end_depletion(pool: Record, time: int) -> None:
    """Note that the pool is no longer depleted, because memory was granted or released."""
    if pool.depleted_since != NOT_DEPLETED:
        pool.depleted_us += time - pool.depleted_since
        pool.depleted_since = NOT_DEPLETED


@kernel
def forget_depletion(pool: Record, time: int) -> None:
    """Count only from `time` (us) on how long the pool is depleted."""
    pool.depleted_us = 0
    if pool.depleted_since != NOT_DEPLETED:
        pool.depleted_since = time


@kernel
def try_allocate(pool: Record, size: int, time: int) -> int:
    """Allocate `size` bytes at a time (us). Returns GRANTED, REFUSED (Kafka: null) or ILLEGAL
    (IllegalArgumentException).
    """
    if size < 1 or size > pool.max_allocation:
        return ILLEGAL
    if pool.available < (size if pool.is_strict else 1):
        if pool.depleted_since == NOT_DEPLETED:
            pool.depleted_since = time
        return REFUSED
    pool.available -= size
    end_depletion(pool, time)
    return GRANTED


@kernel
def release_memory(pool: Record, size: int, time: int) -> None:
    """Release an allocation of `size` bytes. As in Kafka, nobody checks that it was made."""
    pool.available += size
    end_depletion(pool, time)


@kernel
def fill_pool(pool: Record, size: int, max_allocation: int, is_strict: int) -> None:
    """Set up the pool with these settings, and all memory free."""
    pool.size, pool.max_allocation, pool.is_strict, pool.available = size, max_allocation, is_strict, size
    pool.depleted_since, pool.depleted_us = NOT_DEPLETED, 0
