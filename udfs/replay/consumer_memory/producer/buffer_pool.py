"""The producer's BufferPool of Kafka 4.4, in its `full` mode (org.apache.kafka.clients.producer.internals).

Threads are waiters in a queue here, and a woken thread goes on at once: no other thread takes the lock between a signal
and the thread that it wakes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints, Record, Records
from udfs.columns.records import int_fields
from udfs.kernels.kernel import kernel

GRANTED, WAITING, ILLEGAL, EXHAUSTED = 0, 1, 2, 3

BUFFERS = int_fields(
    "total",  # buffer.memory
    "poolable",  # max(1, batch.size)
    "non_pooled",  # free bytes that are not in buffers
    "free",  # free buffers of the poolable size
    "first",  # waiters.order[first:end] are those that wait, in this order
    "end",
)
"""A pool."""
ALLOCATION = int_fields("size", "accumulated", "state")
"""A thread's allocation: its bytes, the part of them that it has, and GRANTED, WAITING, ILLEGAL or EXHAUSTED."""


class Waiters(NamedTuple):
    """Room for n allocations. allocations: ALLOCATION[n]. order: int64[n], those that had to wait, first come first."""

    allocations: Records
    order: Ints


def new_waiters(room: int) -> Waiters:
    """Room for `room` allocations."""
    return Waiters(np.zeros(room, ALLOCATION), np.zeros(room, np.int64))


@kernel
def fill_buffers(pool: Record, total: int, poolable: int) -> None:
    """Set up the pool with these settings, all memory free, and no waiters."""
    pool.total, pool.poolable, pool.non_pooled = total, poolable, total
    pool.free, pool.first, pool.end = 0, 0, 0


@kernel
def available_memory(pool: Record) -> int:
    """BufferPool.availableMemory: bytes that nobody holds. Parts that waiters have taken count as held."""
    return int(pool.non_pooled + pool.free * pool.poolable)


@kernel
def is_awaited(pool: Record) -> bool:
    """Whether a thread waits for memory."""
    return bool(pool.first < pool.end)


@kernel
def free_up(pool: Record, size: int) -> None:
    """Turn free buffers into free bytes until there are `size` bytes."""
    while pool.free > 0 and pool.non_pooled < size:
        pool.free -= 1
        pool.non_pooled += pool.poolable


@kernel
def take_part(pool: Record, allocation: Record) -> bool:
    """Let a woken waiter take the memory that is free. Returns whether it then has all that it needs."""
    if allocation.accumulated == 0 and allocation.size == pool.poolable and pool.free > 0:
        pool.free -= 1
        allocation.accumulated = allocation.size
        return True
    needed = allocation.size - allocation.accumulated
    free_up(pool, needed)
    part = min(needed, pool.non_pooled)
    pool.non_pooled -= part
    allocation.accumulated += part
    return bool(allocation.accumulated == allocation.size)


@kernel
def signal_first(pool: Record, waiters: Waiters) -> None:
    """Wake the first waiter. Whenever a waiter leaves with memory left in the pool, wake the next one."""
    while is_awaited(pool):
        allocation = waiters.allocations[waiters.order[pool.first]]
        if not take_part(pool, allocation):
            return
        allocation.state = GRANTED
        pool.first += 1
        if pool.non_pooled == 0 and pool.free == 0:
            return


@kernel
def signal_if_any_left(pool: Record, waiters: Waiters) -> None:
    """Wake the first waiter if memory is left, as every allocation does on its way out."""
    if pool.non_pooled > 0 or pool.free > 0:
        signal_first(pool, waiters)


@kernel
def allocate(pool: Record, waiters: Waiters, number: int, size: int) -> int:
    """Make allocation `number`. Returns its state: GRANTED, WAITING behind the other waiters, or ILLEGAL (more than
    buffer.memory).
    """
    allocation = waiters.allocations[number]
    allocation.size, allocation.accumulated, allocation.state = size, 0, GRANTED
    if size > pool.total:
        allocation.state = ILLEGAL
    elif size == pool.poolable and pool.free > 0:
        pool.free -= 1
    elif available_memory(pool) >= size:
        free_up(pool, size)
        pool.non_pooled -= size
    else:
        allocation.state = WAITING
        waiters.order[pool.end] = number
        pool.end += 1
    if allocation.state == GRANTED:
        signal_if_any_left(pool, waiters)
    return int(allocation.state)


@kernel
def deallocate(pool: Record, waiters: Waiters, size: int) -> None:
    """Release a buffer of this size."""
    if size == pool.poolable:
        pool.free += 1
    else:
        pool.non_pooled += size
    signal_first(pool, waiters)


@kernel
def give_up_waiting(pool: Record, waiters: Waiters, number: int) -> None:
    """Let a waiter leave the queue and release its part, because max.block.ms is over (BufferExhaustedException). The
    caller still has to call `signal_if_any_left`, as after every allocation.
    """
    place = pool.first
    while waiters.order[place] != number:
        place += 1
    for later in range(place, pool.first, -1):
        waiters.order[later] = waiters.order[later - 1]
    pool.first += 1
    allocation = waiters.allocations[number]
    pool.non_pooled += allocation.accumulated
    allocation.accumulated, allocation.state = 0, EXHAUSTED
