"""Connections that wait for memory at a broker: they are tried when their network thread polls, not before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tests.unit.replay.consumer_memory.traces import Exchange, pools_of, replayed, trace_of
from udfs.columns.time_units import NEVER
from udfs.replay.consumer_memory.network_threads import POLL_TIMEOUT_US
from udfs.replay.consumer_memory.state import Traces
from udfs.replay.consumer_memory.traces import traces_of_units, with_wakes

# Two requests of 900 bytes come at 10 us. The first one that gets memory holds it for 100 us.
PAIR: list[Exchange] = [(0, 10, 10, 900, 100), (1, 10, 10, 900, 100)]
FREE_AT = 110


def requests(exchanges: Sequence[Exchange], answered_at: Sequence[int] | None = None) -> Traces:
    """Requests of one broker. answered_at: NEVER for a request without a response, which is the default."""
    return with_responses(trace_of(exchanges), answered_at or [NEVER] * len(exchanges))


def with_responses(traces: Traces, answered_at: Sequence[int]) -> Traces:
    """The same requests with responses."""
    response_us = np.array(answered_at) - traces.messages["complete_at"]
    traces.messages["response_us"] = np.where(np.array(answered_at) == NEVER, NEVER, response_us)
    return with_wakes(traces)


def longest_wait(traces: Traces, threads: int, seed: int = 0) -> int:
    pools = pools_of(900)
    pools["network_threads"], pools["seed"] = threads, seed
    return replayed(traces, pools).outcome()["longest_us"]


def test_a_thread_that_nothing_wakes_polls_300_ms_after_it_last_polled() -> None:
    assert longest_wait(requests(PAIR), threads=1) == POLL_TIMEOUT_US
    early = [(2, 4, 4, 1, 0), *PAIR]
    assert longest_wait(requests(early), threads=1) == POLL_TIMEOUT_US
    busy_since = [(0, 10, 10, 900, 2 * POLL_TIMEOUT_US), (1, 20, 20, 900, 0)]
    assert longest_wait(requests(busy_since), threads=1) == 3 * POLL_TIMEOUT_US - 10


def test_the_response_to_another_connection_wakes_the_thread() -> None:
    assert longest_wait(requests(PAIR, [150, 150]), threads=1) == 150 - 10
    assert longest_wait(requests(PAIR, [FREE_AT - 1, 150]), threads=1) == POLL_TIMEOUT_US + FREE_AT - 1 - 10


def test_a_request_on_another_connection_wakes_the_thread() -> None:
    assert longest_wait(requests([*PAIR, (2, 250, 250, 1, 0)]), threads=1) == 250 - 10


def test_nothing_that_other_threads_do_wakes_a_thread() -> None:
    answered = requests(PAIR, [150, 150])
    assert longest_wait(answered, threads=2) == FREE_AT + POLL_TIMEOUT_US - 10
    of_consumers = 0
    assert longest_wait(answered, of_consumers) == FREE_AT - 10


def test_which_connections_share_a_thread_is_drawn() -> None:
    three = requests([*PAIR, (2, 250, 250, 1, 0)])
    shared = {longest_wait(three, threads=2, seed=seed) == 250 - 10 for seed in range(20)}
    assert shared == {True, False}


def test_a_connection_that_read_late_wakes_its_thread_when_its_request_is_complete() -> None:
    """Two wait. The first to be read takes 40 us to come, and then its thread tries the other one."""
    three = [(0, 10, 10, 900, 100), (1, 10, 50, 900, 0), (2, 10, 50, 900, 0)]
    traces = with_responses(trace_of(three, size_known_at=[10, 10, 10]), [150, NEVER, NEVER])
    assert longest_wait(traces, threads=1) == 150 + 40 - 10


def test_a_request_that_waited_is_answered_as_much_later_and_that_wakes_its_thread() -> None:
    """Three wait for each other. The second is answered 400 us after it came, and the third is tried then."""
    three: list[Exchange] = [(0, 10, 10, 900, 100), (1, 10, 10, 900, 300), (2, 10, 10, 900, 0)]
    traces = requests(three, [150, 410, NEVER])
    waits = {longest_wait(traces, threads=1, seed=seed) for seed in range(20)}
    assert 150 + 400 - 10 in waits


@pytest.mark.parametrize("threads", [1, 3])
def test_all_that_waited_get_memory_in_the_end(threads: int) -> None:
    many: list[Exchange] = [(c, 10, 10, 900, 50) for c in range(12)]
    pools = pools_of(900)
    pools["network_threads"] = threads
    found = replayed(requests(many), pools).outcome()
    assert (found["messages"], found["waits"], found["stuck"]) == (12, 11, 0)


def test_wakes_belong_to_their_unit() -> None:
    alone, other = requests(PAIR, [150, 150]), requests([*PAIR, (2, 250, 250, 1, 0)], [260, 270, 280])
    both = Traces(
        np.concatenate([other.messages, alone.messages]), np.concatenate([other.connections, alone.connections]),
        np.concatenate([other.traces, alone.traces]), other.wakes,
    )  # fmt: skip
    for name, count in (("message", 3), ("connection", 3)):
        both.traces[f"first_{name}"][1] += count
        both.traces[f"end_{name}"][1] += count
    both = with_wakes(both)
    first, end = both.traces[["first_wake", "end_wake"]][1].tolist()
    assert both.wakes.time[first:end].tolist() == alone.wakes.time.tolist() == [10, 10, 150, 150]
    assert both.wakes.connection[first:end].tolist() == alone.wakes.connection.tolist()
    assert longest_wait(traces_of_units(both, np.array([1])), threads=1) == 150 - 10
