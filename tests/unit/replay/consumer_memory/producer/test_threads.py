"""A producer in closed loop: threads that wait, a sender, and connections that serve one request after the other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from udfs.replay.consumer_memory.producer.captured_times import BufferBounds
from udfs.replay.consumer_memory.producer.requests import Pieces, Requests, Routes, Sends, Served
from udfs.replay.consumer_memory.producer.state import Loop
from udfs.replay.consumer_memory.producer.threads import replay_sends
from udfs.wire.record_batches import RECORD_BATCH_OVERHEAD

BATCH = 100  # batch.size
FULL = BATCH - RECORD_BATCH_OVERHEAD  # bytes of records that fill a batch
LATER = 1 << 40
Batch = tuple[int, int, int]  # us of its first record, its stream, us that its captured request is served


def looped(
    batches: list[Batch], total: int, threads: int = 1, size: int | list[int] = FULL, linger: int = 0,
    connections: tuple[int, ...] = (0,), block_us: int = LATER, poolable: int = BATCH, after: int = 0,
) -> Loop:  # fmt: skip
    """Batches of one record each in a buffer of so much. connections: of each stream. linger, after: us."""
    time, stream, service = (np.array(column, np.int64) for column in zip(*batches, strict=True))
    n = len(time)
    sizes = np.broadcast_to(np.array(size, np.int64), n)
    own = np.arange(n)
    served = Served(stream, sizes + RECORD_BATCH_OVERHEAD, np.full(n, after), np.full(n, LATER))
    line = np.array(connections, np.int64)[stream]
    order = np.argsort(line, kind="stable")
    bounds_of = np.searchsorted(line[order], np.arange(max(connections) + 2)).astype(np.int64)
    none = np.zeros(n, np.int64)
    requests = Requests(bounds_of, time[order], service[order], none, none)
    routes = Routes(
        np.array(connections, np.int64),
        np.searchsorted(connections, np.arange(max(connections) + 2)).astype(np.int64),
        np.array([linger]),
    )
    settings = (total, poolable, block_us, threads)
    bounds = BufferBounds(*(np.array([value], np.int64) for value in settings))
    return replay_sends(Sends(Pieces(time, sizes, own, np.ones(n, np.int64)), served, routes, requests), bounds)


def told(sim: Loop) -> dict[str, int]:
    found = {name: int(sim.runs[0][name]) for name in ("waits", "wait_us", "longest_us", "exhausted", "larger", "end")}
    return {**found, "late_us": int(sim.runs[0]["late_us"]), "built": int(sim.threads[0]["built"])}


@pytest.mark.parametrize(("threads", "waited", "longest"), [(1, 40 + 50, 50), (2, 40 + 80, 80)])
def test_a_thread_that_waits_sends_nothing_meanwhile(threads: int, waited: int, longest: int) -> None:
    """The second waits from 10 to 50, the third until 100: from 20 by a thread of its own, else from 50."""
    found = told(looped([(0, 0, 50), (10, 0, 50), (20, 0, 50)], BATCH, threads))
    assert (found["waits"], found["wait_us"], found["longest_us"]) == (2, waited, longest)
    assert (found["late_us"], found["end"]) == (80, 150)


@pytest.mark.parametrize(("connections", "end"), [((0, 0), 100), ((0, 1), 60)])
def test_a_connection_serves_one_request_after_the_other(connections: tuple[int, ...], end: int) -> None:
    assert told(looped([(0, 0, 50), (10, 1, 50)], 10 * BATCH, connections=connections))["end"] == end


def test_a_connection_has_five_requests_in_flight_and_what_comes_then_fills_batches() -> None:
    """Nine small records a us apart: five go out alone, the other four together when the first is answered."""
    found = told(looped([(us, 0, 50) for us in range(9)], 100 * BATCH, size=5))
    assert (found["built"], found["end"]) == (6, 300)


def test_a_request_has_a_batch_of_each_partition() -> None:
    """Two that linger together go out in one, which is served as the first that was captured."""
    found = told(looped([(0, 0, 50), (10, 1, 70)], 10 * BATCH, size=5, linger=20, connections=(0, 0)))
    assert (found["built"], found["end"]) == (2, 20 + 50)


def test_while_a_thread_waits_the_sender_sends_what_lingers_when_it_looks() -> None:
    """The first lingers; the second is full and answered at 30, when the third still waits: the first goes out then."""
    found = told(
        looped([(0, 0, 50), (0, 1, 30), (10, 2, 5)], 2 * BATCH, size=[5, FULL, FULL + BATCH], linger=1000,
               connections=(0, 1, 2))
    )  # fmt: skip
    assert (found["waits"], found["wait_us"], found["end"]) == (1, 70, 85)


def test_records_that_are_due_while_a_thread_waits_go_into_one_batch() -> None:
    """Of four small records behind a large one three are due when that is answered."""
    batches = [(0, 0, 100), (10, 1, 50), (20, 1, 50), (30, 1, 50), (200, 1, 50)]
    found = told(looped(batches, BATCH, size=[FULL, 5, 5, 5, 5], linger=10, connections=(0, 1)))
    assert (found["built"], found["waits"], found["end"]) == (3, 1, 260)


def test_a_thread_gives_up_after_max_block_ms_and_goes_on() -> None:
    """The second gives up at 40; the third begins to wait then, and gets its memory at 50."""
    found = told(looped([(0, 0, 50), (10, 0, 50), (20, 0, 50)], BATCH, block_us=30))
    assert (found["waits"], found["exhausted"], found["wait_us"], found["end"]) == (2, 1, 10, 100)


def test_a_request_is_served_as_long_as_one_that_was_captured_about_then() -> None:
    """The first 40 take 1 us each, the others, a second later, 30 us."""
    early, late = [(us, 0, 1) for us in range(0, 400, 10)], [(1_000_000 + us, 0, 30) for us in range(0, 4000, 100)]
    sim = looped([*early, *late], 100 * BATCH)
    assert told(sim)["end"] == 1_000_000 + 3900 + 30
    assert int(sim.usages[0]["most"]) == BATCH


def test_a_batch_larger_than_the_buffer_is_refused() -> None:
    assert told(looped([(0, 0, 50), (1, 0, 50)], BATCH, size=[FULL + 1, FULL]))["larger"] == 1


def test_a_batch_that_was_sent_again_holds_its_memory_for_that_time() -> None:
    found = told(looped([(0, 0, 50), (10, 0, 50)], BATCH, after=7))
    assert (found["wait_us"], found["end"]) == (57 - 10, 57 + 57)


@given(
    batches=st.lists(st.tuples(st.integers(0, 300), st.integers(0, 4), st.integers(0, 90)), min_size=1, max_size=40),
    total=st.integers(160, 600),
    threads=st.integers(1, 4),
    size=st.integers(1, 90),
    linger=st.integers(0, 100),
)
def test_memory_never_exceeds_the_buffer_and_all_of_it_comes_back(
    batches: list[Batch], total: int, threads: int, size: int, linger: int
) -> None:
    sim = looped(sorted(batches), total, threads, size, linger, connections=(0, 0, 1, 1, 2))
    pool, usage = sim.pools[0], sim.usages[0]
    assert int(usage["most"]) <= total
    assert int(usage["used"]) == int(usage["waiting"]) == 0
    assert int(sim.spent.waiting.max()) <= threads
    assert int(pool["non_pooled"] + pool["free"] * pool["poolable"]) == total
    assert not sim.lines.queued.any()
    assert not sim.lines.in_flight.any()
    assert told(looped(sorted(batches), LATER, threads, size, linger, connections=(0, 0, 1, 1, 2)))["waits"] == 0
