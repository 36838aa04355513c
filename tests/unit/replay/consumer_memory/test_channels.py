"""Connections that share a pool: which wait for memory, for how long, and which never get any."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.replay.consumer_memory.traces import Exchange, outcome, pools_of, replayed, trace_of
from udfs.columns.time_units import NEVER
from udfs.replay.consumer_memory.settings import (
    COMPLETED_AS_MAX,
    IN_FLIGHT_ESTIMATE,
    MEMORY_POOL,
    REQUESTS_IN_FLIGHT,
    UNBOUNDED,
)

# Two brokers answer at the same time, and what they send is held for 100 us each.
PAIR: list[Exchange] = [(0, 0, 10, 900, 100), (1, 0, 10, 900, 100)]


def test_a_second_message_is_read_when_the_first_is_given_back() -> None:
    """Kafka's SelectorTest.testMuteOnOOM: a pool of 900, two senders of 900 bytes."""
    run = replayed(trace_of(PAIR), pools_of(900))
    found = run.outcome()
    assert (found["messages"], found["waits"], found["longest_us"], found["ended_at"]) == (2, 1, 100, 210)
    assert (found["used_max"], run.available) == (900, 900)
    assert found["depleted_us"] == 100


def test_a_pool_grants_as_long_as_a_byte_is_free_unless_it_is_strict() -> None:
    assert outcome(trace_of(PAIR), pools_of(901))["waits"] == 0
    assert outcome(trace_of(PAIR), pools_of(901, is_strict=True))["waits"] == 1
    assert outcome(trace_of(PAIR), pools_of(1800, is_strict=True))["waits"] == 0


def test_later_messages_on_a_connection_are_as_late_as_the_one_that_waited() -> None:
    later = [*PAIR, (1, 50, 60, 1, 0)]
    assert outcome(trace_of(later), pools_of(UNBOUNDED))["ended_at"] == 110
    found = outcome(trace_of(later), pools_of(900))
    assert (found["waits"], found["ended_at"]) == (2, 210)  # the message before it has taken the pool
    assert replayed(trace_of(later), pools_of(900)).waits_counted == 3


def test_a_message_takes_its_memory_when_its_size_is_known_and_is_complete_with_its_last_byte() -> None:
    slow = trace_of([(0, 0, 110, 900, 100)], size_known_at=[10])
    run = replayed(slow, pools_of(UNBOUNDED))
    assert run.time_above(0) == 100 + 100  # on its way, and held
    assert run.outcome()["ended_at"] == 210


def test_a_message_that_waited_takes_as_long_to_come_as_in_the_capture() -> None:
    two = trace_of([(0, 0, 10, 900, 100), (1, 0, 60, 900, 0)], size_known_at=[10, 20])
    found = outcome(two, pools_of(900))
    assert (found["waits"], found["longest_us"], found["ended_at"]) == (1, 110 - 20, 110 + 40)


def test_a_message_is_read_after_the_one_before_it_on_its_connection_has_come() -> None:
    """The broker answers two requests of a connection at once; the first answer takes from 10 to 60 us."""
    pipelined = trace_of([(0, 0, 60, 900, 0), (0, 1, 60, 50, 0)], size_known_at=[10, 60])
    assert outcome(pipelined, pools_of(UNBOUNDED))["ended_at"] == 60
    late = trace_of([(1, 0, 5, 900, 35), (0, 0, 60, 900, 0), (0, 1, 60, 50, 0)], size_known_at=[10, 5, 60])
    found = outcome(late, pools_of(900))
    assert (found["messages"], found["longest_us"], found["ended_at"]) == (3, 40 - 10, 40 + 50)


def test_a_coordinator_is_never_blocked() -> None:
    found = outcome(trace_of(PAIR, privileged=[1]), pools_of(900))
    assert (found["messages"], found["waits"], found["unpooled"], found["ended_at"]) == (2, 0, 1, 110)


def test_a_message_larger_than_the_pool_closes_its_connection_and_no_other() -> None:
    found = outcome(trace_of([*PAIR, (0, 50, 60, 5000, 0), (0, 70, 80, 1, 0)]), pools_of(4000))
    assert (found["messages"], found["too_large"], found["stuck"]) == (2, 1, 0)


def test_messages_never_given_back_can_lock_the_pool_up() -> None:
    found = outcome(trace_of([(0, 0, 10, 900, NEVER), (1, 0, 10, 900, 100)]), pools_of(900, 901))
    assert (found["messages"], found["pinned"], found["stuck"]) == (1, 1, 1)


def test_each_release_serves_one_of_many_that_wait() -> None:
    many = [(c, 0, 10, 100, 1000) for c in range(20)]
    run = replayed(trace_of(many), pools_of(100))
    found = run.outcome()
    assert (found["messages"], found["waits"], found["longest_us"], found["ended_at"]) == (20, 19, 19_000, 20_010)
    assert run.most_waiting() == 19


def test_the_seed_decides_who_gets_memory_while_less_than_a_tenth_of_the_pool_is_free() -> None:
    # Eleven messages take 1,089 of 1,000 bytes. When one is given back, ten bytes are free and nine connections race.
    many = [(c, 0, 10 + c, 99, 1000 * (c + 1)) for c in range(20)]
    trace = trace_of(many)

    def with_seed(seed: int) -> dict[str, int]:
        settings = pools_of(1000)
        settings["seed"] = seed
        return outcome(trace, settings)

    by_seed = [with_seed(seed) for seed in range(8)]
    assert with_seed(3) == by_seed[3]
    assert len({found["ended_at"] for found in by_seed}) > 1


FETCHES = [(c, 100 * c, 100 * c + 50, 10, 1000) for c in range(4)]


@pytest.mark.parametrize(
    ("variant", "most_reckoned", "waits"),
    [(IN_FLIGHT_ESTIMATE, 130, 0), (REQUESTS_IN_FLIGHT, 100, 0), (COMPLETED_AS_MAX, 200, 2), (MEMORY_POOL, 40, 0)],
)
def test_each_variant_counts_completed_fetches_in_its_own_way(variant: int, most_reckoned: int, waits: int) -> None:
    """Four fetches of at most 100 bytes each, one at a time in flight, answered with 10 bytes that are held long."""
    found = outcome(trace_of(FETCHES, max_bytes=100), pools_of(200, variant=variant))
    assert (found["reckoned_max"], found["waits"], found["messages"]) == (most_reckoned, waits, 4)


def test_no_fetch_goes_out_if_the_buffer_is_smaller_than_one_fetch() -> None:
    found = outcome(trace_of(FETCHES, max_bytes=100), pools_of(99, variant=IN_FLIGHT_ESTIMATE))
    assert (found["messages"], found["stuck"]) == (0, 4)


def test_an_application_gives_a_message_back_with_the_poll_that_takes_its_last_record() -> None:
    """10 records at 1000 a second, 4 a poll: polls at 10, 4,010 and 8,010 us; the last one empties the message."""
    message = trace_of([(0, 0, 10, 100, 5)], records=10)
    in_three = replayed(message, pools_of(UNBOUNDED, us_per_record=1000, max_poll_records=4))
    assert in_three.time_above(99) == 8000
    in_one = replayed(message, pools_of(UNBOUNDED, us_per_record=1000, max_poll_records=10))
    assert in_one.time_above(99) == 0


def test_with_a_pace_the_next_fetch_goes_out_when_the_message_is_empty() -> None:
    two = [(0, 0, 10, 100, 5), (0, 20, 30, 100, 5)]
    found = outcome(trace_of(two, records=10), pools_of(UNBOUNDED, us_per_record=1000, max_poll_records=4))
    # Requested at 8,010, complete at 8,020; the application works until 10,010 and polls then, at 14,010 and 18,010.
    assert found["ended_at"] == 20_010


@st.composite
def exchanges(draw: st.DrawFn) -> list[Exchange]:
    """Some connections with some exchanges each, one after the other or pipelined."""
    found = []
    for connection in range(draw(st.integers(1, 5))):
        requested = complete = draw(st.integers(0, 100))
        for _ in range(draw(st.integers(1, 6))):
            complete = max(requested, complete) + draw(st.integers(0, 50))
            found.append((connection, requested, complete, draw(st.integers(1, 300)), draw(st.integers(0, 200))))
            requested += draw(st.integers(0, 120))
    return found


@given(found=exchanges(), strict=st.booleans())
@settings(max_examples=150, deadline=None)
def test_nobody_waits_with_the_smallest_pool_and_somebody_does_with_one_byte_less(
    found: list[Exchange], strict: bool
) -> None:
    trace = trace_of(found)
    captured = outcome(trace, pools_of(UNBOUNDED, is_strict=strict))
    smallest = captured["smallest_pool"]
    enough, short = pools_of(smallest, is_strict=strict), pools_of(max(smallest - 1, 1), is_strict=strict)
    assert outcome(trace, enough) == captured
    found_short = outcome(trace, short)
    assert smallest == 1 or found_short["waits"] + found_short["too_large"] > 0


@given(found=exchanges(), size=st.integers(300, 900))
@settings(max_examples=150, deadline=None)
def test_without_a_pool_nothing_differs_and_with_one_messages_come_later_but_are_never_lost(
    found: list[Exchange], size: int
) -> None:
    run = replayed(trace_of(found), pools_of(UNBOUNDED, size))
    captured, bounded = run.outcome(0), run.outcome(1)
    ends_at = max(max(complete + held for _, _, complete, _, held in found), max(row[2] for row in found))
    assert captured["ended_at"] == ends_at
    assert captured["waits"] == captured["wait_us"] == 0
    assert bounded["messages"] == captured["messages"] == len(found)
    assert bounded["ended_at"] >= captured["ended_at"]
    assert bounded["used_max"] <= size - 1 + max(row[3] for row in found)
    assert run.available == size
    for lane in (0, 1):
        assert run.outcome(lane)["began_at"] == min(row[1] for row in found)
        assert min(run.curve(lane).values(), default=0) == 0, "at no time are more bytes in use than at the last step"
