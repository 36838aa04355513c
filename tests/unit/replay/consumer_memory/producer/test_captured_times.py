"""A producer's batches in its BufferPool: which wait, which give up, and how much memory is in use."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from udfs.columns.records import new_records
from udfs.replay.consumer_memory.producer.batches import BUFFERED_BATCH
from udfs.replay.consumer_memory.producer.captured_times import replay_lanes
from udfs.replay.consumer_memory.producer.state import BUFFER_OUTCOME, BatchSim, new_sim
from udfs.replay.consumer_memory.settings import BUFFER_SETTINGS
from udfs.replay.consumer_memory.usage import new_meter

CAPTURED, CHANGED = 0, 1
PLENTY = 1 << 40


def replayed(
    batches: list[tuple[int, int, int]], buffer_memory: int, batch_size: int = 10, max_block_us: int = 1000,
    captured_memory: int = PLENTY, may_grow: int = 0, filled_at: int = PLENTY, sending_us: int = PLENTY,
    threads: int = 9,
) -> BatchSim:  # fmt: skip
    """Replay batches of (time, size, time held). The captured lane has a buffer of captured_memory.
    sending_us: how much of the time held each batch is in a request.
    """
    appended_at, size, held_us = zip(*sorted(batches), strict=True)
    settings = new_records(
        BUFFER_SETTINGS, 2, buffer_memory=[captured_memory, buffer_memory], batch_size=[10, batch_size],
        max_block_us=max_block_us, threads=threads,
    )  # fmt: skip
    records = new_records(
        BUFFERED_BATCH, len(batches), appended_at=appended_at, size=size, held_us=held_us, may_grow=may_grow,
        filled_at=filled_at, sending_us=np.minimum(held_us, sending_us),
    )  # fmt: skip
    sim = new_sim(records, settings, new_meter(), np.zeros(2, BUFFER_OUTCOME))
    replay_lanes(sim)
    return sim


def outcome(sim: BatchSim, lane: int = CHANGED) -> dict[str, int]:
    return {name: int(sim.outcomes[lane][name]) for name in sim.outcomes.dtype.names or ()}


def test_a_small_batch_takes_batch_size_and_a_large_one_its_own() -> None:
    assert outcome(replayed([(0, 3, 50), (10, 25, 50)], 100))["used_max"] == 35


@pytest.mark.parametrize(("poolable", "taken"), [(10, 10), (20, 20), (5, 10)])
def test_memory_that_a_batch_grows_by_beyond_batch_size_does_not_come_from_the_pool(poolable: int, taken: int) -> None:
    """With a smaller batch.size, several batches take as much together."""
    assert outcome(replayed([(0, 13, 50)], 100, poolable, may_grow=1))["used_max"] == taken


def test_captured_times_include_the_waits_under_the_captured_settings() -> None:
    """The second batch is held until 100 in both lanes, whenever it gets its memory."""
    batches = [(0, 10, 50), (10, 10, 90)]
    sim = replayed(batches, 10, captured_memory=10)
    assert [outcome(sim, lane)["wait_us"] for lane in (CAPTURED, CHANGED)] == [40, 40]
    assert [outcome(sim, lane)["ended_at"] for lane in (CAPTURED, CHANGED)] == [100, 100]
    assert outcome(replayed(batches, 20, captured_memory=10))["ended_at"] == 10 + (90 - 40)


@pytest.mark.parametrize(("filled", "late"), [(49, 1), (50, 0)])
def test_a_wait_that_ends_after_the_batchs_last_record_contradicts_the_capture(filled: int, late: int) -> None:
    sim = replayed([(0, 10, 50), (10, 10, 90)], 10, captured_memory=10, filled_at=filled)
    assert (outcome(sim, CAPTURED)["waits"], outcome(sim, CAPTURED)["late"]) == (1, late)


def test_a_batch_waits_until_enough_is_given_back() -> None:
    found = outcome(replayed([(0, 10, 50), (10, 10, 50), (20, 20, 5)], 20))
    assert (found["waits"], found["longest_us"], found["exhausted"], found["ended_at"]) == (1, 40, 0, 65)


def test_while_a_batch_waits_lingering_batches_are_sent_with_the_first_one_that_is() -> None:
    """RecordAccumulator.batchReady: the first is sent at 45, the second with it and not at 85. Both end at 50."""
    found = outcome(replayed([(0, 10, 50), (0, 10, 90), (20, 20, 5)], 20, sending_us=5))
    assert (found["waits"], found["longest_us"], found["ended_at"]) == (1, 30, 55)


def test_a_batch_does_not_linger_while_others_wait() -> None:
    """The second gets its memory at 50 and gives it back at 55, because the third waits. Nobody waits after that."""
    found = outcome(replayed([(0, 20, 50), (10, 20, 90), (11, 20, 90)], 20, sending_us=5))
    assert (found["waits"], found["wait_us"], found["ended_at"]) == (2, 40 + 44, 55 + 90)


def test_waiters_are_served_in_the_order_they_came() -> None:
    """The large one keeps the memory that it has got while it waits, so the small one after it gets none."""
    sim = replayed([(0, 10, 50), (0, 10, 90), (20, 20, 5), (30, 10, 5)], 20)
    assert outcome(sim)["wait_us"] == (90 - 20) + (95 - 30)


@pytest.mark.parametrize(("threads", "waited_us"), [(1, 95 - 20), (2, (90 - 20) + (95 - 30))])
def test_no_more_threads_wait_at_a_time_than_send(threads: int, waited_us: int) -> None:
    """One batch waits from 20 to 90, another from 30 to 95."""
    assert outcome(replayed([(0, 10, 50), (0, 10, 90), (20, 20, 5), (30, 10, 5)], 20, threads=threads))["wait_us"] == (
        waited_us
    )


def test_a_wait_that_ends_in_giving_up_counts_like_others() -> None:
    """BufferPool.allocate records the time either way."""
    assert outcome(replayed([(0, 20, 5000), (10, 20, 50)], 20, max_block_us=100))["wait_us"] == 100


def test_a_producer_gives_up_after_max_block_ms() -> None:
    found = outcome(replayed([(0, 20, 5000), (10, 20, 50), (20, 20, 5)], 20, max_block_us=100))
    assert (found["waits"], found["exhausted"], found["ended_at"]) == (2, 2, 5000)


def test_a_batch_larger_than_the_buffer_is_refused() -> None:
    assert outcome(replayed([(0, 21, 50), (1, 20, 50)], 20))["too_large"] == 1


@given(
    batches=st.lists(st.tuples(st.integers(0, 300), st.integers(1, 60), st.integers(0, 200)), min_size=1, max_size=30),
    total=st.integers(60, 200),
    sending=st.integers(0, 200),
)
def test_memory_never_exceeds_the_buffer_and_all_of_it_comes_back(
    batches: list[tuple[int, int, int]], total: int, sending: int
) -> None:
    sim = replayed(batches, total, max_block_us=10_000, sending_us=sending)
    pool, usage = sim.pool[0], sim.meter.usage[0]
    assert outcome(sim)["used_max"] <= total
    assert int(usage["used"]) == int(usage["waiting"]) == 0
    assert int(pool["non_pooled"] + pool["free"] * pool["poolable"]) == total
    assert outcome(sim)["granted"] + outcome(sim)["exhausted"] == len(batches)
    unhindered = outcome(replayed(batches, PLENTY))
    assert unhindered["waits"] == 0
    assert outcome(sim)["waits"] == 0 or unhindered["used_max"] > total - 10
