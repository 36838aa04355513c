"""The producer's BufferPool as Kafka 4.4 has it in its `full` mode (org.apache.kafka.clients.producer.internals).

Threads are waiters in a queue here, and what a signal wakes happens at once: nobody takes the lock between a signal and
the thread that it wakes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints, Record
from udfs.kernels.kernel import kernel

GRANTED, WAITING, ILLEGAL, EXHAUSTED = 0, 1, 2, 3

BUFFERS = np.dtype(
    [
        (name, np.int64)
        for name in (
            "total",  # buffer.memory
            "poolable",  # max(1, batch.size)
            "non_pooled",  # free bytes that are no buffer
            "free",  # free buffers of the poolable size
            "first",  # waiters.order[first:end] wait, in this order
            "end",
        )
    ]
)
"""A pool, a row a lane."""


class Waiters(NamedTuple):
    """Room for n allocations, int64[n] each: who waits, and by allocation its size, memory so far and state."""

    order: Ints
    size: Ints
    accumulated: Ints
    state: Ints


@kernel
def fill_buffers(pool: Record, total: int, poolable: int) -> None:
    """Make it a pool of which all is free and for which nobody waits."""
    pool.total, pool.poolable, pool.non_pooled = total, poolable, total
    pool.free, pool.first, pool.end = 0, 0, 0


@kernel
def available(pool: Record) -> int:
    """BufferPool.availableMemory: what nobody holds, parts that waiters have taken not counted."""
    return int(pool.non_pooled + pool.free * pool.poolable)


@kernel
def free_up(pool: Record, size: int) -> None:
    """Turn free buffers into free bytes until there are so many."""
    while pool.free > 0 and pool.non_pooled < size:
        pool.free -= 1
        pool.non_pooled += pool.poolable


@kernel
def take_part(pool: Record, waiters: Waiters, waiter: int) -> bool:
    """What an awoken waiter does; whether it has all it needs."""
    size, so_far = waiters.size[waiter], waiters.accumulated[waiter]
    if so_far == 0 and size == pool.poolable and pool.free > 0:
        pool.free -= 1
        waiters.accumulated[waiter] = size
        return True
    free_up(pool, size - so_far)
    got = min(size - so_far, pool.non_pooled)
    pool.non_pooled -= got
    waiters.accumulated[waiter] += got
    return bool(waiters.accumulated[waiter] == size)


@kernel
def signal_first(pool: Record, waiters: Waiters) -> None:
    """Wake the first waiter, and as long as each goes away with memory left, the next."""
    while pool.first < pool.end:
        waiter = waiters.order[pool.first]
        if not take_part(pool, waiters, waiter):
            return
        waiters.state[waiter] = GRANTED
        pool.first += 1
        if pool.non_pooled == 0 and pool.free == 0:
            return


@kernel
def signal_if_any_left(pool: Record, waiters: Waiters) -> None:
    """What every allocation does on its way out."""
    if pool.non_pooled > 0 or pool.free > 0:
        signal_first(pool, waiters)


@kernel
def allocate(pool: Record, waiters: Waiters, allocation: int, size: int) -> int:
    """GRANTED, WAITING behind the other waiters, or ILLEGAL (more than buffer.memory). The state is noted as well."""
    waiters.size[allocation], waiters.accumulated[allocation] = size, 0
    state = GRANTED
    if size > pool.total:
        state = ILLEGAL
    elif size == pool.poolable and pool.free > 0:
        pool.free -= 1
    elif available(pool) >= size:
        free_up(pool, size)
        pool.non_pooled -= size
    else:
        state = WAITING
        waiters.order[pool.end] = allocation
        pool.end += 1
    waiters.state[allocation] = state
    if state == GRANTED:
        signal_if_any_left(pool, waiters)
    return state


@kernel
def deallocate(pool: Record, waiters: Waiters, size: int) -> None:
    """Give back a buffer of this size."""
    if size == pool.poolable:
        pool.free += 1
    else:
        pool.non_pooled += size
    signal_first(pool, waiters)


@kernel
def expire(pool: Record, waiters: Waiters, allocation: int) -> None:
    """max.block.ms is over for a waiter: BufferExhaustedException, and its part goes back."""
    at = pool.first
    while waiters.order[at] != allocation:
        at += 1
    for behind in range(at, pool.end - 1):
        waiters.order[behind] = waiters.order[behind + 1]
    pool.end -= 1
    pool.non_pooled += waiters.accumulated[allocation]
    waiters.accumulated[allocation] = 0
    waiters.state[allocation] = EXHAUSTED
    signal_if_any_left(pool, waiters)
