"""The numbers of Kafka's own tests of its pools, and what the kernels of events and usage promise."""

from __future__ import annotations

import heapq

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from udfs.replay.consumer_memory import pool as memory_pool
from udfs.replay.consumer_memory.pool import GRANTED, ILLEGAL, POOL, REFUSED
from udfs.replay.consumer_memory.producer import buffer_pool
from udfs.replay.consumer_memory.producer.buffer_pool import BUFFERS, Waiters
from udfs.replay.consumer_memory.usage import SLOT_US, SLOTS, USAGE, advance, begin, nothing_spent, use
from udfs.replay.shared.event_heap import Heap, pop, push


@pytest.mark.parametrize(
    ("strict", "sizes", "outcomes", "left"),
    [
        (0, [50, 60, 1], [GRANTED, GRANTED, REFUSED], -10),
        (1, [50, 60, 50], [GRANTED, REFUSED, GRANTED], 0),
        (0, [61, 0, -1], [ILLEGAL, ILLEGAL, ILLEGAL], 100),
    ],
)
def test_a_pool_of_100_that_gives_60_at_once(strict: int, sizes: list[int], outcomes: list[int], left: int) -> None:
    """As org.apache.kafka.common.memory.SimpleMemoryPool of kafka-clients does, strict or not."""
    pool = np.zeros(1, POOL)
    memory_pool.fill_pool(pool[0], 100, 60, strict)
    assert [memory_pool.try_allocate(pool[0], size, 0) for size in sizes] == outcomes
    assert pool["available"][0] == left


def test_a_dry_spell_lasts_from_the_first_refusal_to_the_next_release() -> None:
    pool = np.zeros(1, POOL)
    memory_pool.fill_pool(pool[0], 10, 10, 0)
    for time in (0, 5, 8):
        memory_pool.try_allocate(pool[0], 10, time)
    memory_pool.release(pool[0], 10, 25)
    memory_pool.try_allocate(pool[0], 10, 30)
    assert pool["dry_us"][0] == 20


def test_a_buffer_pool_counts_as_kafkas_tests_say() -> None:
    """BufferPoolTest.testSimple (64 KiB, 1 KiB) and testCantAllocateMoreMemoryThanWeHave (1,024 and 1,025 of 1,024)."""
    pool, waiters = np.zeros(1, BUFFERS), Waiters(*(np.zeros(8, np.int64) for _ in Waiters._fields))
    buffer_pool.fill_buffers(pool[0], 64 << 10, 1 << 10)
    assert buffer_pool.allocate(pool[0], waiters, 0, 1 << 10) == buffer_pool.GRANTED
    assert (buffer_pool.available(pool[0]), pool["non_pooled"][0]) == (63 << 10, 63 << 10)
    buffer_pool.deallocate(pool[0], waiters, 1 << 10)
    assert (buffer_pool.available(pool[0]), pool["non_pooled"][0]) == (64 << 10, 63 << 10)
    assert buffer_pool.allocate(pool[0], waiters, 1, 2 << 10) == buffer_pool.GRANTED
    buffer_pool.deallocate(pool[0], waiters, 2 << 10)
    assert (pool["non_pooled"][0], pool["free"][0]) == (63 << 10, 1)
    buffer_pool.fill_buffers(pool[0], 1024, 512)
    assert buffer_pool.allocate(pool[0], waiters, 2, 1025) == buffer_pool.ILLEGAL
    assert buffer_pool.allocate(pool[0], waiters, 3, 1024) == buffer_pool.GRANTED


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)) | st.none(), max_size=40))
def test_events_come_out_by_time_then_code(steps: list[tuple[int, int] | None]) -> None:
    heap = Heap(np.zeros(40, np.int64), np.zeros(40, np.int64), np.zeros(1, np.int64))
    expected: list[tuple[int, int]] = []
    for step in steps:
        if step is not None:
            push(heap, *step)
            heapq.heappush(expected, step)
        elif expected:
            assert pop(heap) == heapq.heappop(expected)
    assert heap.events[0] == len(expected)


def test_a_timeline_keeps_its_peaks_however_long_it_gets() -> None:
    usage, spent = np.zeros(1, USAGE), nothing_spent(1)
    begin(usage[0], 0)
    use(usage[0], spent, 0, 70)
    advance(usage[0], spent, 0, 10)
    use(usage[0], spent, 0, -70)
    advance(usage[0], spent, 0, 3 * SLOTS * SLOT_US)
    use(usage[0], spent, 0, 30)
    assert usage["slot_us"][0] == 4 * SLOT_US
    assert spent.most[0, 0] == 70
    assert spent.most[0, 3 * SLOTS // 4] == 30
    assert spent.most[0, 1 : 3 * SLOTS // 4].max() == 0
    assert (spent.time[0, 70], int(spent.time[0].sum())) == (10, 3 * SLOTS * SLOT_US)
