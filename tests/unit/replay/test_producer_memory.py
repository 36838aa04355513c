"""A producer's batches through its BufferPool: who waits, who gives up, what is in use."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from udfs.replay.memory.producer_memory import Batches, BufferBounds, Buffered, replay_producer


def replayed(batches: list[tuple[int, int, int]], total: int, poolable: int = 10, block_us: int = 1000) -> Buffered:
    time, size, held = (np.array(column, np.int64) for column in zip(*sorted(batches), strict=True))
    bounds = BufferBounds(*(np.array([value], np.int64) for value in (total, poolable, block_us)))
    return replay_producer(Batches(time, size, held), bounds)


def told(sim: Buffered) -> dict[str, int]:
    return {name: int(sim.runs[0][name]) for name in sim.runs.dtype.names or ()}


def test_a_small_batch_takes_batch_size_and_a_large_one_its_own() -> None:
    assert int(replayed([(0, 3, 50), (10, 25, 50)], 100).usages[0]["most"]) == 35


def test_a_batch_waits_until_enough_is_given_back() -> None:
    found = told(replayed([(0, 10, 50), (10, 10, 50), (20, 20, 5)], 20))
    assert (found["waits"], found["longest_us"], found["exhausted"], found["end"]) == (1, 40, 0, 65)


def test_waiters_are_served_in_the_order_they_came() -> None:
    """The large one keeps what it has taken while it waits, and the small one behind it goes without."""
    sim = replayed([(0, 10, 50), (0, 10, 90), (20, 20, 5), (30, 10, 5)], 20)
    assert told(sim)["wait_us"] == (90 - 20) + (95 - 30)


def test_a_producer_gives_up_after_max_block_ms() -> None:
    found = told(replayed([(0, 20, 5000), (10, 20, 50), (20, 20, 5)], 20, block_us=100))
    assert (found["waits"], found["exhausted"], found["end"]) == (2, 2, 5000)


def test_a_batch_larger_than_the_buffer_is_refused() -> None:
    assert told(replayed([(0, 21, 50), (1, 20, 50)], 20))["larger"] == 1


@given(
    batches=st.lists(st.tuples(st.integers(0, 300), st.integers(1, 60), st.integers(0, 200)), min_size=1, max_size=30),
    total=st.integers(60, 200),
)
def test_memory_never_exceeds_the_buffer_and_all_of_it_comes_back(
    batches: list[tuple[int, int, int]], total: int
) -> None:
    sim = replayed(batches, total, block_us=10_000)
    pool, usage = sim.pools[0], sim.usages[0]
    assert int(usage["most"]) <= total
    assert int(usage["used"]) == int(usage["waiting"]) == 0
    assert int(pool["non_pooled"] + pool["free"] * pool["poolable"]) == total
    assert int(sim.waits[0].sum()) + told(sim)["exhausted"] == len(batches)
    peak = told(replayed(batches, 1 << 40)), int(replayed(batches, 1 << 40).usages[0]["most"])
    assert peak[0]["waits"] == 0
    assert told(sim)["waits"] == 0 or peak[1] > total - 10
