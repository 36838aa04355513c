"""Connections that share a pool: who waits for memory, for how long, and what nobody gets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.replay.consumer_memory.traces import Exchange, bounds_of, trace_of
from udfs.replay.consumer_memory.channels import replay_unit
from udfs.replay.consumer_memory.pool import UNBOUNDED
from udfs.replay.consumer_memory.state import (
    COMPLETED_AS_MAX,
    IN_FLIGHT_ESTIMATE,
    MEMORY_POOL,
    NOT_GIVEN_BACK,
    REQUESTS_IN_FLIGHT,
    Sim,
)

# Two brokers answer at the same time, and what they send is held for 100 us each.
PAIR: list[Exchange] = [(0, 0, 10, 900, 100), (1, 0, 10, 900, 100)]


def run(sim: Sim, lane: int = 0) -> dict[str, int]:
    return {name: int(sim.runs[lane][name]) for name in sim.runs.dtype.names or ()}


def test_a_second_message_is_read_when_the_first_is_given_back() -> None:
    """Kafka's SelectorTest.testMuteOnOOM: a pool of 900, two senders of 900 bytes."""
    sim = replay_unit(trace_of(PAIR), bounds_of(900))
    found = run(sim)
    assert (found["read"], found["waits"], found["longest_us"], found["end"]) == (2, 1, 100, 210)
    assert (int(sim.usages[0]["most"]), int(sim.pools[0]["available"])) == (900, 900)
    assert int(sim.pools[0]["dry_us"]) == 100


def test_a_pool_grants_as_long_as_a_byte_is_free_unless_it_is_strict() -> None:
    assert run(replay_unit(trace_of(PAIR), bounds_of(901)))["waits"] == 0
    assert run(replay_unit(trace_of(PAIR), bounds_of(901, strict=True)))["waits"] == 1
    assert run(replay_unit(trace_of(PAIR), bounds_of(1800, strict=True)))["waits"] == 0


def test_what_comes_behind_on_a_connection_is_as_late_as_the_connection() -> None:
    later = [*PAIR, (1, 50, 60, 1, 0)]
    assert run(replay_unit(trace_of(later), bounds_of(UNBOUNDED)))["end"] == 110
    found = run(replay_unit(trace_of(later), bounds_of(900)))
    assert (found["waits"], found["end"]) == (2, 210)  # it finds the pool taken by the one before it
    assert replay_unit(trace_of(later), bounds_of(900)).waits[0].sum() == 3


def test_a_message_takes_its_memory_when_its_size_is_known_and_is_there_with_its_last_byte() -> None:
    slow = trace_of([(0, 0, 110, 900, 100)], started=[10])
    sim = replay_unit(slow, bounds_of(UNBOUNDED))
    assert int(sim.spent.time[0, 1:].sum()) == 100 + 100  # on its way, and held
    assert run(sim)["end"] == 210


def test_a_message_that_waited_takes_as_long_to_come_as_it_took() -> None:
    sim = replay_unit(trace_of([(0, 0, 10, 900, 100), (1, 0, 60, 900, 0)], started=[10, 20]), bounds_of(900))
    found = run(sim)
    assert (found["waits"], found["longest_us"], found["end"]) == (1, 110 - 20, 110 + 40)


def test_a_message_behind_one_that_still_comes_is_read_after_it() -> None:
    """The broker answers two requests of a connection at once; the first answer takes from 10 to 60 us."""
    pipelined = trace_of([(0, 0, 60, 900, 0), (0, 1, 60, 50, 0)], started=[10, 60])
    assert run(replay_unit(pipelined, bounds_of(UNBOUNDED)))["end"] == 60
    late = trace_of([(1, 0, 5, 900, 35), (0, 0, 60, 900, 0), (0, 1, 60, 50, 0)], started=[10, 5, 60])
    found = run(replay_unit(late, bounds_of(900)))
    assert (found["read"], found["longest_us"], found["end"]) == (3, 40 - 10, 40 + 50)


def test_a_coordinator_is_never_blocked() -> None:
    found = run(replay_unit(trace_of(PAIR, privileged=[1]), bounds_of(900)))
    assert (found["read"], found["waits"], found["unpooled"], found["end"]) == (2, 0, 1, 110)


def test_a_message_larger_than_the_pool_closes_its_connection_and_no_other() -> None:
    found = run(replay_unit(trace_of([*PAIR, (0, 50, 60, 5000, 0), (0, 70, 80, 1, 0)]), bounds_of(4000)))
    assert (found["read"], found["larger"], found["stuck"]) == (2, 1, 0)


def test_messages_never_given_back_can_lock_the_pool_up() -> None:
    found = run(replay_unit(trace_of([(0, 0, 10, 900, NOT_GIVEN_BACK), (1, 0, 10, 900, 100)]), bounds_of(900, 901)), 0)
    assert (found["read"], found["pinned"], found["stuck"]) == (1, 1, 1)


def test_of_many_that_wait_each_release_serves_one() -> None:
    many = [(c, 0, 10, 100, 1000) for c in range(20)]
    sim = replay_unit(trace_of(many), bounds_of(100))
    found = run(sim)
    assert (found["read"], found["waits"], found["longest_us"], found["end"]) == (20, 19, 19_000, 20_010)
    assert sim.spent.waiting[0].max() == 19


def test_the_race_below_a_tenth_of_the_pool_is_decided_by_the_seed() -> None:
    # Eleven take 1,089 of 1,000 bytes; when one of them comes back, ten are free, and nine connections want them.
    many = [(c, 0, 10 + c, 99, 1000 * (c + 1)) for c in range(20)]
    trace = trace_of(many)
    by_seed = [replay_unit(trace, bounds_of(1000)._replace(seed=np.array([seed]))).runs[0] for seed in range(8)]
    again = replay_unit(trace, bounds_of(1000)._replace(seed=np.array([3]))).runs[0]
    assert again == by_seed[3]
    assert len({int(found["end"]) for found in by_seed}) > 1


FETCHES = [(c, 100 * c, 100 * c + 50, 10, 1000) for c in range(4)]


@pytest.mark.parametrize(
    ("variant", "most_reckoned", "waits"),
    [(IN_FLIGHT_ESTIMATE, 130, 0), (REQUESTS_IN_FLIGHT, 100, 0), (COMPLETED_AS_MAX, 200, 2), (MEMORY_POOL, 40, 0)],
)
def test_variants_count_completed_fetches_each_in_its_way(variant: int, most_reckoned: int, waits: int) -> None:
    """Four fetches of at most 100 bytes each, one at a time in flight, answered with 10 bytes that are held long."""
    found = run(replay_unit(trace_of(FETCHES, max_bytes=100), bounds_of(200, variant=variant)))
    assert (found["reckoned"], found["waits"], found["read"]) == (most_reckoned, waits, 4)


def test_no_fetch_goes_out_where_the_buffer_is_smaller_than_one() -> None:
    found = run(replay_unit(trace_of(FETCHES, max_bytes=100), bounds_of(99, variant=IN_FLIGHT_ESTIMATE)))
    assert (found["read"], found["stuck"]) == (0, 4)


def test_an_application_gives_a_message_back_with_the_poll_that_takes_its_last_record() -> None:
    """10 records at 1000 a second, 4 a poll: polls at 10, 4,010 and 8,010 us; the last one empties the message."""
    sim = replay_unit(trace_of([(0, 0, 10, 100, 5)], records=10), bounds_of(UNBOUNDED, record_us=1000, most_records=4))
    assert int(sim.spent.time[0, 100:].sum()) == 8000
    in_one = replay_unit(
        trace_of([(0, 0, 10, 100, 5)], records=10), bounds_of(UNBOUNDED, record_us=1000, most_records=10)
    )
    assert int(in_one.spent.time[0, 100:].sum()) == 0


def test_with_a_pace_the_next_fetch_goes_out_when_the_message_is_empty() -> None:
    two = [(0, 0, 10, 100, 5), (0, 20, 30, 100, 5)]
    sim = replay_unit(trace_of(two, records=10), bounds_of(UNBOUNDED, record_us=1000, most_records=4))
    # Asked at 8,010, come at 8,020; the application is busy until 10,010, then polls at 10,010, 14,010 and 18,010.
    assert run(sim)["end"] == 20_010


@st.composite
def exchanges(draw: st.DrawFn) -> list[Exchange]:
    """Some connections with some exchanges each, one after the other or pipelined."""
    found = []
    for connection in range(draw(st.integers(1, 5))):
        asked = came = draw(st.integers(0, 100))
        for _ in range(draw(st.integers(1, 6))):
            came = max(asked, came) + draw(st.integers(0, 50))
            found.append((connection, asked, came, draw(st.integers(1, 300)), draw(st.integers(0, 200))))
            asked += draw(st.integers(0, 120))
    return found


@given(found=exchanges(), strict=st.booleans())
@settings(max_examples=150, deadline=None)
def test_the_smallest_pool_lets_nobody_wait_and_the_next_smaller_does(found: list[Exchange], strict: bool) -> None:
    trace = trace_of(found)
    captured = run(replay_unit(trace, bounds_of(UNBOUNDED, strict=strict)))
    smallest = captured["smallest"]
    enough, short = bounds_of(smallest, strict=strict), bounds_of(max(smallest - 1, 1), strict=strict)
    assert run(replay_unit(trace, enough)) | {"random": 0} == captured | {"random": 0}
    found_short = run(replay_unit(trace, short))
    assert smallest == 1 or found_short["waits"] + found_short["larger"] > 0


@given(found=exchanges(), size=st.integers(300, 900))
@settings(max_examples=150, deadline=None)
def test_without_a_pool_nothing_differs_and_with_one_all_is_read_later_never_lost(
    found: list[Exchange], size: int
) -> None:
    sim = replay_unit(trace_of(found), bounds_of(UNBOUNDED, size))
    captured, bounded = run(sim, 0), run(sim, 1)
    assert captured["end"] == max(max(came + held for _, _, came, _, held in found), max(row[2] for row in found))
    assert captured["waits"] == captured["wait_us"] == 0
    assert bounded["read"] == captured["read"] == len(found)
    assert bounded["end"] >= captured["end"]
    assert int(sim.usages[1]["most"]) <= size - 1 + max(row[3] for row in found)
    assert int(sim.pools[1]["available"]) == size
    for lane in (0, 1):
        assert int(sim.spent.time[lane].sum()) == int(sim.runs[lane]["end"]) - min(row[1] for row in found)
