"""BufferPool with the numbers of Kafka's own tests, and when waiting threads give up."""

from __future__ import annotations

import numpy as np

from udfs.replay.consumer_memory.producer.buffer_pool import (
    BUFFERS,
    EXHAUSTED,
    GRANTED,
    ILLEGAL,
    WAITING,
    allocate,
    available_memory,
    deallocate,
    fill_buffers,
    give_up_waiting,
    new_waiters,
    signal_if_any_left,
)


def test_a_buffer_pool_counts_as_kafkas_tests_say() -> None:
    """BufferPoolTest.testSimple (64 KiB, 1 KiB) and testCantAllocateMoreMemoryThanWeHave (1,024 and 1,025 of 1,024)."""
    pool, waiters = np.zeros(1, BUFFERS), new_waiters(8)
    fill_buffers(pool[0], 64 << 10, 1 << 10)
    assert allocate(pool[0], waiters, 0, 1 << 10) == GRANTED
    assert (available_memory(pool[0]), pool["non_pooled"][0]) == (63 << 10, 63 << 10)
    deallocate(pool[0], waiters, 1 << 10)
    assert (available_memory(pool[0]), pool["non_pooled"][0]) == (64 << 10, 63 << 10)
    assert allocate(pool[0], waiters, 1, 2 << 10) == GRANTED
    deallocate(pool[0], waiters, 2 << 10)
    assert (pool["non_pooled"][0], pool["free"][0]) == (63 << 10, 1)
    fill_buffers(pool[0], 1024, 512)
    assert allocate(pool[0], waiters, 2, 1025) == ILLEGAL
    assert allocate(pool[0], waiters, 3, 1024) == GRANTED


def test_a_waiter_that_gives_up_leaves_the_others_in_their_order_wherever_it_stood() -> None:
    pool, waiters = np.zeros(1, BUFFERS), new_waiters(5)
    fill_buffers(pool[0], 10, 10)
    states = [allocate(pool[0], waiters, number, 10) for number in range(5)]
    assert states == [GRANTED, WAITING, WAITING, WAITING, WAITING]
    for number in (3, 1):
        give_up_waiting(pool[0], waiters, number)
        signal_if_any_left(pool[0], waiters)
    assert waiters.order[pool["first"][0] : pool["end"][0]].tolist() == [2, 4]
    assert waiters.allocations["state"].tolist() == [GRANTED, EXHAUSTED, WAITING, EXHAUSTED, WAITING]
    deallocate(pool[0], waiters, 10)
    assert waiters.allocations["state"][2] == GRANTED
