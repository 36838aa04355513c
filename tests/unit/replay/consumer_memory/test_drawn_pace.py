"""Pools at other paces: what depends on pace has a range, and what does not has none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.replay.consumer_memory.traces import Exchange, pools_of, trace_of
from udfs.columns.arrays import Floats, Ints, Records, read_only
from udfs.columns.time_units import NEVER
from udfs.replay.consumer_memory import drawn_pace
from udfs.replay.consumer_memory.another_pace import connection_order, set_pace
from udfs.replay.consumer_memory.channels import replay_units
from udfs.replay.consumer_memory.drawn_pace import (
    PoolReplications,
    UnitDraws,
    bursts_of,
    draws_of_units,
    outcomes_in_lanes,
    replicated,
    usual_times,
    with_other_races,
)
from udfs.replay.consumer_memory.settings import UNBOUNDED
from udfs.replay.consumer_memory.state import Traces, UnitOutcomes
from udfs.replay.shared.replications import FEWEST, REPLICATIONS
from udfs.replay.shared.window import Window

MESSAGES, EVERY_US, SIZE = 100, 1_000, 900
HELD_US = 900
"""Two connections bring a message every millisecond, the second one half a millisecond later: most of the time both
hold memory, or one does."""


def apart() -> Traces:
    """Messages of two connections. Those of one are given back before those of the other come."""
    times = [(connection, EVERY_US * n + EVERY_US // 2 * connection) for n in range(MESSAGES) for connection in (0, 1)]
    return trace_of([(connection, at, at, SIZE, 450) for connection, at in times])


def both(one: Traces, other: Traces) -> Traces:
    """The messages of two units."""
    first, last = one.traces[0], other.traces.copy()
    for name in ("message", "connection"):
        last[f"first_{name}"] += first[f"end_{name}"]
        last[f"end_{name}"] += first[f"end_{name}"]
    return Traces(
        np.concatenate([one.messages, other.messages]), np.concatenate([one.connections, other.connections]),
        np.concatenate([one.traces, last]), one.wakes,
    )  # fmt: skip


def again(trace: Traces, *sizes: int, name: str = "1") -> PoolReplications:
    """One unit at drawn paces, with pools of these sizes."""
    return replicated(trace, pools_of(*sizes)[np.newaxis], [name])


def waits_of(found: PoolReplications, lane: int, unit: int = 0) -> list[int]:
    return found.outcomes["waits"][: found.counts[unit, lane], unit, lane].tolist()


def scaled(exchanges: list[Exchange], scale: Floats | list[float]) -> Records:
    """The messages of one unit that take `scale` times as long, in the order of their requests."""
    trace = trace_of(exchanges, size_known_at=[requested_at for _, requested_at, *_ in sorted(exchanges, key=by_time)])
    return paced(trace, np.array(scale), np.zeros(len(trace.messages), np.int64))


def paced(trace: Traces, scales: Floats, later_us: Ints) -> Records:
    """The messages of a trace at another pace."""
    at_pace = trace.messages.copy()
    set_pace(at_pace, read_only(trace.messages), connection_order(trace), read_only(scales), read_only(later_us))
    return at_pace


def requests(exchanges: list[Exchange]) -> Traces:
    """Requests to one broker, which answers all of them."""
    trace = trace_of(exchanges, size_known_at=[requested_at for _, requested_at, *_ in sorted(exchanges, key=by_time)])
    trace.messages["response_us"] = 1
    return trace


def by_time(exchange: Exchange) -> tuple[int, int]:
    return exchange[1], exchange[0]


def test_a_pool_that_just_suffices_does_not_suffice_in_runs_in_which_messages_are_held_longer() -> None:
    waits = waits_of(again(apart(), UNBOUNDED, SIZE), 1)
    assert len(waits) == REPLICATIONS
    assert min(waits) == 0 < max(waits)


def test_times_are_drawn_for_each_api_relative_to_what_is_usual_for_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages of 100 bytes are held for 100 us, give or take, and those of 900 bytes nine times as long. Others, of
    another API, are held for 5 ms.
    """
    monkeypatch.setattr(drawn_pace, "factors", lambda draws, differs, count: np.ones(count))
    rows = [
        (n % 3, 10_000 * n, 10_000 * n, 100 if n % 2 else 900, (100 + n % 7) * (1 if n % 2 else 9)) for n in range(90)
    ]
    trace = trace_of([(*row[:4], 5_000) if row[0] == 2 else row for row in rows])
    trace.messages["api_key"] = trace.messages["connection"] == 2
    scales = np.ones(len(rows))
    (drawn,) = draws_of_units(trace, connection_order(trace), ["1"], 1)
    drawn.scale(scales, 0)
    held = paced(trace, scales, np.zeros(len(rows), np.int64))["held_us"]
    others = trace.messages["api_key"] == 1
    assert np.all(held[others] == 5_000)
    per_byte = held[~others] / trace.messages["size"][~others]
    assert 1.0 <= per_byte.min() < per_byte.max() < 1.08
    assert np.any(held != trace.messages["held_us"])


def test_connections_race_in_another_order_in_each_replication() -> None:
    seeds = [with_other_races(pools_of(1, 2), again)["seed"].tolist() for again in (0, 1)]
    assert seeds == [[1, 2], [2, 3]]


def test_a_lane_in_which_nothing_waits_at_any_pace_has_few_replications() -> None:
    found = again(apart(), UNBOUNDED, SIZE, UNBOUNDED)
    assert found.counts.tolist() == [[FEWEST, REPLICATIONS, FEWEST]]
    assert waits_of(found, 2) == [0] * FEWEST


def test_the_most_bytes_in_use_depend_on_pace_only_where_messages_may_overlap() -> None:
    used = again(apart(), UNBOUNDED).outcomes["used_max"][:FEWEST, 0, 0]
    assert SIZE == used.min() < used.max()
    alone = trace_of([(0, EVERY_US * n, EVERY_US * n, SIZE, HELD_US) for n in range(MESSAGES)])
    assert set(again(alone, UNBOUNDED).outcomes["used_max"][:FEWEST, 0, 0].tolist()) == {SIZE}


def test_messages_that_hold_no_memory_for_a_while_have_no_range() -> None:
    found = again(trace_of([(0, at, at, SIZE, 0) for at in range(50)] + [(1, 0, 0, SIZE, NEVER)]), UNBOUNDED, SIZE)
    for name in ("waits", "used_max", "longest_us", "depleted_us"):
        assert np.ptp(found.outcomes[name][: found.counts[0, 1], 0, 1]) == 0


def test_lanes_differ_by_their_settings_alone() -> None:
    found = again(apart(), UNBOUNDED, SIZE, SIZE + 1, SIZE)
    assert waits_of(found, 1) == waits_of(found, 3)
    assert waits_of(found, 2) == [0] * FEWEST


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 60), st.integers(1, 9), st.integers(0, 40)), min_size=1, max_size=20
    ),
    st.lists(st.integers(4, 40) | st.just(UNBOUNDED), min_size=2, max_size=4),
    st.booleans(),
)
def test_a_pool_in_which_nobody_is_refused_has_the_outcome_of_a_larger_one(
    rows: list[tuple[int, int, int, int]], sizes: list[int], is_strict: bool
) -> None:
    trace = trace_of([(connection, at, at, size, held_us) for connection, at, size, held_us in rows])
    settings = pools_of(*sizes, is_strict=is_strict)[np.newaxis]
    settings["seed"] = 7
    in_each_lane = replay_units(trace, settings).outcomes
    assert outcomes_in_lanes(trace, settings).tolist() == in_each_lane.tolist()


def test_a_unit_is_replayed_once_where_its_smallest_pool_refuses_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    replayed = list[int]()

    def noting(traces: Traces, settings: Records, window: Window) -> UnitOutcomes:
        replayed.append(settings.size)
        return replay_units(traces, settings, window)

    monkeypatch.setattr(drawn_pace, "replay_units", noting)
    outcomes_in_lanes(apart(), pools_of(UNBOUNDED, 10 * SIZE, 20 * SIZE)[np.newaxis])
    assert sum(replayed) == 1
    outcomes_in_lanes(apart(), pools_of(UNBOUNDED, 100, 20 * SIZE)[np.newaxis])
    assert sum(replayed) == 1 + 1 + 3


def test_a_unit_has_the_same_draws_in_any_company_and_another_name_has_others() -> None:
    alone, settings = waits_of(again(apart(), UNBOUNDED, SIZE), 1), pools_of(UNBOUNDED, SIZE)
    first = trace_of([(0, 0, 0, SIZE, 10), (1, 5, 5, SIZE, 10), (0, 20, 20, SIZE, 10)])
    found = replicated(both(first, apart()), np.stack([settings] * 2), ["0", "1"])
    assert waits_of(found, 1, unit=1) == alone
    assert waits_of(again(apart(), UNBOUNDED, SIZE, name="2"), 1) != alone


def test_a_unit_with_many_messages_has_fewer_replications(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawn_pace, "MESSAGES_AT_MOST", 2 * MESSAGES * 2 * 7)
    assert again(apart(), UNBOUNDED, SIZE).counts.tolist() == [[FEWEST, 7]]


def test_a_message_comes_after_all_before_it_on_its_connection_are_done() -> None:
    slow = scaled([(0, 0, 10, SIZE, 20), (0, 40, 50, SIZE, 20), (0, 200, 210, SIZE, 20)], [3, 2, 1])
    assert slow["size_known_at"].tolist() == [0, 3 * 30, 200]
    assert slow["complete_at"].tolist() == [30, 90 + 20, 210]
    assert slow["requested_at"].tolist() == [0, 90, 200]
    assert slow["held_us"].tolist() == [60, 40, 20]


def test_a_message_that_takes_less_time_lets_none_come_earlier_than_in_the_capture() -> None:
    fast = scaled([(0, 0, 10, SIZE, 20), (0, 40, 50, SIZE, 20)], [0.5, 0.1])
    assert (fast["requested_at"].tolist(), fast["size_known_at"].tolist()) == ([0, 40], [0, 40])
    assert (fast["complete_at"].tolist(), fast["held_us"].tolist()) == ([5, 41], [10, 2])


def test_memory_that_was_held_beyond_the_next_request_does_not_hold_it_back() -> None:
    pinned = scaled([(0, 0, 10, SIZE, 100), (0, 40, 50, SIZE, NEVER), (0, 60, 70, SIZE, 0)], [2, 3, 1])
    assert pinned["size_known_at"].tolist() == [0, 40, 70]
    assert pinned["held_us"].tolist() == [200, NEVER, 0]


def test_memory_that_is_held_beyond_the_next_request_is_held_as_captured_and_says_nothing_of_others() -> None:
    long = trace_of([(0, 100 * n, 100 * n, SIZE, 10_000 if n == 5 else NEVER if n == 6 else 10 + n) for n in range(20)])
    (drawn,) = draws_of_units(long, connection_order(long), ["1"], 1)
    (api,) = drawn.apis
    assert api.place.tolist() == [n for n in range(20) if n not in (5, 6)]
    scales = np.ones(20)
    drawn.scale(scales, 0)
    assert (scales[5], scales[6]) == (1.0, 1.0)
    assert 0 < scales.min() <= scales.max() < 100


@pytest.mark.parametrize(
    ("times", "usual"), [([100, 200], [100, 200]), ([200, 100], [150, 150]), ([10, 310], [320 / 3, 640 / 3])]
)
def test_the_usual_time_grows_with_the_size_at_most_in_proportion(times: list[int], usual: list[float]) -> None:
    assert usual_times(np.array([1_000, 2_000]), np.array(times)).tolist() == pytest.approx(usual)


def test_a_late_message_on_one_connection_does_not_delay_another() -> None:
    first = [(0, 0, 10, SIZE, 20), (1, 5, 15, SIZE, 20)]
    found = scaled([*first, (0, 40, 50, SIZE, 0), (1, 41, 51, SIZE, 0)], [5, 1, 1, 1])
    assert found["size_known_at"].tolist() == [0, 5, 150, 41]


def test_requests_between_two_pauses_are_a_burst() -> None:
    times = [0, 30_000, 90_000, 500_000, 510_000, 2_000_000]
    found = bursts_of(requests([(n, at, at, SIZE, 10) for n, at in enumerate(times)]).messages)
    assert found.place.tolist() == list(range(6))
    assert found.away_us.tolist() == [-40_000, -10_000, 50_000, -5_000, 5_000, 0]


def test_steady_requests_and_those_that_hold_no_memory_are_in_no_burst() -> None:
    steady = [(0, 50_000 * n, 50_000 * n, SIZE, 10) for n in range(100)]
    assert not len(bursts_of(requests(steady).messages).place)
    assert not len(bursts_of(requests([(0, 0, 0, SIZE, 0), (1, 5, 5, SIZE, 0)]).messages).place)
    assert not len(bursts_of(requests(steady).messages[:0]).place)


def test_what_a_client_receives_is_in_no_burst() -> None:
    assert not len(bursts_of(trace_of([(0, 0, 0, SIZE, 10), (1, 5, 5, SIZE, 10)]).messages).place)


def test_the_requests_of_a_burst_come_closer_together_or_further_apart() -> None:
    trace = requests([(0, 0, 0, 1, 0), (1, 60, 70, SIZE, 10), (2, 160, 170, SIZE, 10)])
    drawn = UnitDraws([], bursts_of(trace.messages), np.random.default_rng(0), np.ones(3), np.array([0.5, 1.5, 9.0]))
    for again, times in ((0, [0, 85, 135]), (1, [0, 35, 160]), (2, [0, 0, 160])):
        later_us = np.zeros(3, np.int64)
        drawn.move(later_us, again)
        moved = paced(trace, np.ones(3), later_us)
        assert moved["requested_at"].tolist() == moved["size_known_at"].tolist() == times
        assert (moved["complete_at"] - moved["requested_at"]).tolist() == [0, 10, 10]


def test_more_bytes_are_in_use_where_the_requests_of_a_burst_come_closer_together() -> None:
    """Requests 3 ms apart are held for 1 ms. Where they come closer together, two are held at once."""
    messages = [(n, 3_000 * n, 3_000 * n, SIZE, 1_000) for n in range(8)]
    of_broker, of_consumer = requests(messages), trace_of(messages)
    held, never_moved = (again(of, UNBOUNDED).outcomes["used_max"][:FEWEST, 0, 0] for of in (of_broker, of_consumer))
    assert (held >= never_moved).all()
    assert np.count_nonzero(held > SIZE) > np.count_nonzero(never_moved > SIZE)
