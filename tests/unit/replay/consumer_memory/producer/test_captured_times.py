"""A producer's batches through its BufferPool: who waits, who gives up, what is in use."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from udfs.replay.consumer_memory.producer.captured_times import Batches, BufferBounds, Buffered, replay_producer

CAPTURED, ASKED = 0, 1
PLENTY = 1 << 40


def replayed(
    batches: list[tuple[int, int, int]], total: int, poolable: int = 10, block_us: int = 1000,
    captured_total: int = PLENTY, may_grow: int = 0, filled: int = PLENTY, sending: int = PLENTY,
) -> Buffered:  # fmt: skip
    """Batches of (time, size, time held) in a buffer of so much; captured_total: of the captured one. sending: for how
    long, of the time held, each is in a request.
    """
    time, size, held = (np.array(column, np.int64) for column in zip(*sorted(batches), strict=True))
    of_lanes = ((captured_total, total), (10, poolable), (block_us, block_us), (1, 1))
    bounds = BufferBounds(*(np.array(values, np.int64) for values in of_lanes))
    grows, full = (np.full(len(time), value) for value in (may_grow, filled))
    return replay_producer(Batches(time, size, held, grows, full, np.minimum(held, sending)), bounds)


def told(sim: Buffered, lane: int = ASKED) -> dict[str, int]:
    return {name: int(sim.runs[lane][name]) for name in sim.runs.dtype.names or ()}


def test_a_small_batch_takes_batch_size_and_a_large_one_its_own() -> None:
    assert int(replayed([(0, 3, 50), (10, 25, 50)], 100).usages[ASKED]["most"]) == 35


@pytest.mark.parametrize(("poolable", "taken"), [(10, 10), (20, 20), (5, 10)])
def test_what_a_batch_grows_beyond_batch_size_is_not_the_pools(poolable: int, taken: int) -> None:
    """Of a smaller batch.size several take as much together."""
    assert int(replayed([(0, 13, 50)], 100, poolable, may_grow=1).usages[ASKED]["most"]) == taken


def test_captured_times_have_the_waits_under_the_captured_settings_in_them() -> None:
    """The second batch is held until 100 in both lanes, whenever it gets its memory."""
    batches = [(0, 10, 50), (10, 10, 90)]
    sim = replayed(batches, 10, captured_total=10)
    assert [told(sim, lane)["wait_us"] for lane in (CAPTURED, ASKED)] == [40, 40]
    assert [told(sim, lane)["end"] for lane in (CAPTURED, ASKED)] == [100, 100]
    assert told(replayed(batches, 20, captured_total=10))["end"] == 10 + (90 - 40)


@pytest.mark.parametrize(("filled", "late"), [(49, 1), (50, 0)])
def test_a_wait_is_one_that_the_capture_can_have_until_it_has_the_last_record(filled: int, late: int) -> None:
    sim = replayed([(0, 10, 50), (10, 10, 90)], 10, captured_total=10, filled=filled)
    assert (told(sim, CAPTURED)["waits"], told(sim, CAPTURED)["late"]) == (1, late)


def test_a_batch_waits_until_enough_is_given_back() -> None:
    found = told(replayed([(0, 10, 50), (10, 10, 50), (20, 20, 5)], 20))
    assert (found["waits"], found["longest_us"], found["exhausted"], found["end"]) == (1, 40, 0, 65)


def test_batches_that_linger_are_sent_with_the_first_that_is_while_one_waits() -> None:
    """RecordAccumulator.batchReady: the first is sent at 45, the second with it and not at 85; both are back at 50."""
    found = told(replayed([(0, 10, 50), (0, 10, 90), (20, 20, 5)], 20, sending=5))
    assert (found["waits"], found["longest_us"], found["end"]) == (1, 30, 55)


def test_a_batch_does_not_linger_while_others_wait() -> None:
    """The second gets its memory at 50 and is back at 55, for the third waits; that one has nobody behind it."""
    found = told(replayed([(0, 20, 50), (10, 20, 90), (11, 20, 90)], 20, sending=5))
    assert (found["waits"], found["wait_us"], found["end"]) == (2, 40 + 44, 55 + 90)


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
    sending=st.integers(0, 200),
)
def test_memory_never_exceeds_the_buffer_and_all_of_it_comes_back(
    batches: list[tuple[int, int, int]], total: int, sending: int
) -> None:
    sim = replayed(batches, total, block_us=10_000, sending=sending)
    pool, usage = sim.pools[ASKED], sim.usages[ASKED]
    assert int(usage["most"]) <= total
    assert int(usage["used"]) == int(usage["waiting"]) == 0
    assert int(pool["non_pooled"] + pool["free"] * pool["poolable"]) == total
    assert int(sim.waits[ASKED].sum()) + told(sim)["exhausted"] == len(batches)
    peak = told(replayed(batches, PLENTY)), int(replayed(batches, PLENTY).usages[ASKED]["most"])
    assert peak[0]["waits"] == 0
    assert told(sim)["waits"] == 0 or peak[1] > total - 10
