"""A producer in closed loop: threads that wait, a sender, and connections that serve one request after the other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from udfs.columns.arrays import read_only
from udfs.columns.records import new_records
from udfs.replay.consumer_memory.producer.batches import BUFFERED_BATCH, PRODUCER, Produced, sent_by
from udfs.replay.consumer_memory.producer.replay import new_loop, pieces_of
from udfs.replay.consumer_memory.producer.requests import SERVED_REQUEST
from udfs.replay.consumer_memory.producer.state import BUFFER_OUTCOME, LoopSim
from udfs.replay.consumer_memory.producer.threads import loop_lanes
from udfs.replay.consumer_memory.settings import BUFFER_SETTINGS
from udfs.replay.consumer_memory.usage import new_meter
from udfs.wire.record_batches import RECORD_BATCH_OVERHEAD

BATCH_SIZE = 100
FULL = BATCH_SIZE - RECORD_BATCH_OVERHEAD  # bytes of records that fill a batch
LATER = 1 << 40
Batch = tuple[int, int, int]  # us of its first record, its stream, us that its captured request is served


def produced(
    batches: list[Batch], size: int | list[int], linger_us: int, connections: tuple[int, ...], held_after_us: int
) -> Produced:
    """Batches of one record each, in a request each. connections: the connection of each stream."""
    appended_at, stream, service_us = (np.array(column, np.int64) for column in zip(*batches, strict=True))
    n, whole = len(batches), np.array(size) + RECORD_BATCH_OVERHEAD
    connection = np.array(connections)[stream]
    order = np.argsort(connection, kind="stable")
    requests = new_records(
        SERVED_REQUEST, n, connection=connection[order], sent_at=appended_at[order], service_us=service_us[order]
    )  # fmt: skip
    captured = new_records(
        BUFFERED_BATCH, n, stream=stream, appended_at=appended_at, filled_at=LATER, size=whole, records=1,
        first_record_size=whole, held_after_us=held_after_us,
    )  # fmt: skip
    producer = new_records(
        PRODUCER, 1, end_batch=n, end_stream=len(connections), end_connection=max(connections) + 1, end_request=n,
        linger_us=linger_us,
    )  # fmt: skip
    return Produced(producer, captured, requests, np.array(connections))


def looped(
    batches: list[Batch], buffer_memory: int, threads: int = 1, size: int | list[int] = FULL, linger: int = 0,
    connections: tuple[int, ...] = (0,), max_block_us: int = LATER, batch_size: int = BATCH_SIZE, after: int = 0,
) -> LoopSim:  # fmt: skip
    """Replay batches of one record each. connections: the connection of each stream. linger, after: us."""
    settings = new_records(
        BUFFER_SETTINGS, 1, buffer_memory=buffer_memory, batch_size=batch_size, max_block_us=max_block_us,
        threads=threads,
    )  # fmt: skip
    traffic = produced(batches, size, linger, connections, after)
    loop = new_loop(traffic, pieces_of(traffic.batches), settings, new_meter(), np.zeros(1, BUFFER_OUTCOME))
    loop_lanes(loop, read_only(np.zeros(1, np.int64)))
    return loop


def test_a_producer_that_comes_after_others_has_the_same_outcome_as_alone() -> None:
    """The numbers of streams and connections go on from one producer to the next."""
    alone = produced([(0, 0, 50), (10, 1, 50)], FULL, 0, (0, 1), 0)
    second = alone.producers.copy()
    for name in ("batch", "stream", "connection", "request"):
        second[f"first_{name}"], second[f"end_{name}"] = 2, 4
    batches, requests = alone.batches.copy(), alone.requests.copy()
    batches["stream"] += 2
    requests["connection"] += 2
    both = Produced(
        np.concatenate([alone.producers, second]), np.concatenate([alone.batches, batches]),
        np.concatenate([alone.requests, requests]), np.array([0, 1, 2, 3]),
    )  # fmt: skip
    settings = new_records(
        BUFFER_SETTINGS, 1, buffer_memory=BATCH_SIZE, batch_size=BATCH_SIZE, max_block_us=LATER, threads=1
    )
    found = []
    for unit in range(2):
        sent = sent_by(both, unit)
        loop = new_loop(sent, pieces_of(sent.batches), settings, new_meter(), np.zeros(1, BUFFER_OUTCOME))
        loop_lanes(loop, read_only(np.zeros(1, np.int64)))
        found.append(outcome(loop))
    assert found[0] == found[1]
    assert found[1]["waits"] == 1


def outcome(loop: LoopSim) -> dict[str, int]:
    """The outcome of the only lane, and how many batches were built."""
    found = {name: int(loop.outcomes[0][name]) for name in loop.outcomes.dtype.names or ()}
    return {**found, "built": int(loop.threads[0]["built"])}


@pytest.mark.parametrize(("threads", "waited", "longest"), [(1, 40 + 50, 50), (2, 40 + 80, 80)])
def test_a_thread_that_waits_sends_nothing_meanwhile(threads: int, waited: int, longest: int) -> None:
    """The second waits from 10 to 50, the third until 100: from 20 if it has a thread of its own, else from 50."""
    found = outcome(looped([(0, 0, 50), (10, 0, 50), (20, 0, 50)], BATCH_SIZE, threads))
    assert (found["waits"], found["wait_us"], found["longest_us"]) == (2, waited, longest)
    assert (found["late_us"], found["ended_at"]) == (80, 150)


@pytest.mark.parametrize(("connections", "end"), [((0, 0), 100), ((0, 1), 60)])
def test_a_connection_serves_one_request_after_the_other(connections: tuple[int, ...], end: int) -> None:
    assert outcome(looped([(0, 0, 50), (10, 1, 50)], 10 * BATCH_SIZE, connections=connections))["ended_at"] == end


def test_a_connection_has_five_requests_in_flight_and_later_records_fill_batches() -> None:
    """Nine small records a us apart: five go out alone, the other four together when the first is answered."""
    found = outcome(looped([(us, 0, 50) for us in range(9)], 100 * BATCH_SIZE, size=5))
    assert (found["built"], found["ended_at"]) == (6, 300)


def test_a_request_has_a_batch_of_each_partition() -> None:
    """Two batches that linger together go out in one request, which is served as long as the first captured one."""
    found = outcome(looped([(0, 0, 50), (10, 1, 70)], 10 * BATCH_SIZE, size=5, linger=20, connections=(0, 0)))
    assert (found["built"], found["ended_at"]) == (2, 20 + 50)


def test_while_a_thread_waits_the_sender_sends_lingering_batches_when_it_looks() -> None:
    """The first lingers; the second is full and answered at 30, when the third still waits: the first goes out then."""
    found = outcome(
        looped([(0, 0, 50), (0, 1, 30), (10, 2, 5)], 2 * BATCH_SIZE, size=[5, FULL, FULL + BATCH_SIZE], linger=1000,
               connections=(0, 1, 2))
    )  # fmt: skip
    assert (found["waits"], found["wait_us"], found["ended_at"]) == (1, 70, 85)


def test_records_that_are_due_while_a_thread_waits_go_into_one_batch() -> None:
    """Four small records follow a large one. Three of them are due when it is answered."""
    batches = [(0, 0, 100), (10, 1, 50), (20, 1, 50), (30, 1, 50), (200, 1, 50)]
    found = outcome(looped(batches, BATCH_SIZE, size=[FULL, 5, 5, 5, 5], linger=10, connections=(0, 1)))
    assert (found["built"], found["waits"], found["ended_at"]) == (3, 1, 260)


def test_a_thread_gives_up_after_max_block_ms_and_goes_on() -> None:
    """The second gives up at 40; the third begins to wait then, and gets its memory at 50."""
    found = outcome(looped([(0, 0, 50), (10, 0, 50), (20, 0, 50)], BATCH_SIZE, max_block_us=30))
    assert (found["waits"], found["exhausted"], found["wait_us"], found["ended_at"]) == (2, 1, 30 + 10, 100)


def test_a_request_is_served_as_long_as_one_that_was_captured_about_then() -> None:
    """The first 40 take 1 us each, the others, a second later, 30 us."""
    early, late = [(us, 0, 1) for us in range(0, 400, 10)], [(1_000_000 + us, 0, 30) for us in range(0, 4000, 100)]
    found = outcome(looped([*early, *late], 100 * BATCH_SIZE))
    assert (found["ended_at"], found["used_max"]) == (1_000_000 + 3900 + 30, BATCH_SIZE)


def test_a_batch_larger_than_the_buffer_is_refused() -> None:
    assert outcome(looped([(0, 0, 50), (1, 0, 50)], BATCH_SIZE, size=[FULL + 1, FULL]))["too_large"] == 1


def test_a_batch_that_was_sent_again_holds_its_memory_for_that_time() -> None:
    found = outcome(looped([(0, 0, 50), (10, 0, 50)], BATCH_SIZE, after=7))
    assert (found["wait_us"], found["ended_at"]) == (57 - 10, 57 + 57)


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
    loop = looped(sorted(batches), total, threads, size, linger, connections=(0, 0, 1, 1, 2))
    pool, usage = loop.pool[0], loop.meter.usage[0]
    assert outcome(loop)["used_max"] <= total
    assert int(usage["used"]) == int(usage["waiting"]) == 0
    assert int(loop.meter.slots["most_waiting"].max()) <= threads
    assert int(pool["non_pooled"] + pool["free"] * pool["poolable"]) == total
    assert not loop.connections["queued"].any()
    assert not loop.connections["in_flight"].any()
    assert outcome(looped(sorted(batches), LATER, threads, size, linger, connections=(0, 0, 1, 1, 2)))["waits"] == 0
