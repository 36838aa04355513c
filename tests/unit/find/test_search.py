"""The search compared with a dense grid: it finds a lane that is as good, with a fraction of the replays."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest

from jobs.find.axes import axes_of_aim
from jobs.find.judgement import Outcomes, failure_of_constraints
from jobs.find.search import run_search
from jobs.find.search_state import Search, equally_good_range, trade_off_points
from jobs.replays.ranged import Ranged, without_range
from jobs.scenarios.aims import Aim, Constraint, Over, Span
from jobs.scenarios.scenario import Lane
from jobs.scenarios.settings import Value
from jobs.units import parse_bytes
from schemas.tables.outcomes import outcomes_of
from tests.unit.replay.fetch_max_bytes.closed_units import Client, Part, Times, replayed
from udfs.replay.fetch_max_bytes.closed_loop.drawn_pace import figures_of_lanes

KiB, MiB = 1 << 10, 1 << 20
FETCH, PARTITION = "consumer.fetch.max.bytes", "consumer.max.partition.fetch.bytes"
SLOTS = "broker.max.incremental.fetch.session.cache.slots"
Made = Callable[[Mapping[str, Value]], Mapping[str, float | Ranged]]


def counted(algorithm: str, made: Made) -> tuple[Callable[[Sequence[Lane]], Mapping[str, Outcomes]], list[str]]:
    """(a function from lanes to the outcomes that `made` returns for their settings, the names of lanes asked for)."""
    asked: list[str] = []

    def outcomes(lanes: Sequence[Lane]) -> Mapping[str, Outcomes]:
        asked.extend(lane.name for lane in lanes)
        return {lane.name: outcome_of(algorithm, made(lane.settings)) for lane in lanes}

    return outcomes, asked


def outcome_of(algorithm: str, made: Mapping[str, float | Ranged]) -> Outcomes:
    """All outcomes of a lane, 0 where none is given."""
    told = {name: made.get(name, 0.0) for name in outcomes_of(algorithm)}
    return {name: of if isinstance(of, Ranged) else without_range(of) for name, of in told.items()}


def aim(algorithm: str, target: str, over: Over, *where: Constraint, step: float = 0.0, is_least: bool = True) -> Aim:
    return Aim(algorithm, target, is_least, where, over, step)


def best_of(done: Search) -> Mapping[str, Value]:
    return done.lane(done.best).settings


READER = [
    Part([700, 300, 900, 200] * 6), Part([100] * 30), Part([2500, 50, 50] * 5), Part([400] * 4),
    Part([1200, 800] * 8, node=1), Part([60] * 50, node=1),
]  # fmt: skip
"""An uneven backlog in six partitions of two brokers."""


def of_reader(clients: Sequence[Client]) -> list[Mapping[str, float]]:
    """The outcomes of the reader in closed loop, for each client's settings."""
    found = replayed(READER, clients, pace=Times(gap=900.0, answer=400.0, byte=0.7, taking=((500, 30_000.0),)))
    figures = figures_of_lanes(found, np.zeros(len(READER), bool))
    names = {"catch_up": figures.catch_up_ms, "held": figures.held_bytes, "longest_wait": figures.longest_wait_ms}
    return [{name: float(of[lane]) for name, of in names.items()} for lane in range(len(clients))]


@pytest.fixture(scope="module")
def dense() -> Mapping[tuple[int, int], Mapping[str, float]]:
    """The outcomes of the reader for ten thousand pairs of limits."""
    sizes = sorted({int(size) for size in np.geomspace(100, 30_000, 100)})
    grid = list(itertools.product(sizes, sizes))
    at_once = [grid[i : i + 500] for i in range(0, len(grid), 500)]
    found = [of for some in at_once for of in of_reader([Client(f, partition_max_bytes=p) for f, p in some])]
    return dict(zip(grid, found, strict=True))


@pytest.mark.parametrize(("held", "longest_wait"), [(6000, 8.0), (3000, 20.0), (1500, 1000.0), (20_000, 2.0)])
def test_the_lane_that_is_found_in_a_closed_loop_is_the_best_of_ten_thousand(
    dense: Mapping[tuple[int, int], Mapping[str, float]], held: int, longest_wait: float
) -> None:
    sizes = tuple(sorted({size for size, _ in dense}))
    wanted = aim(
        "fetch_max_bytes", "catch_up", {FETCH: sizes, PARTITION: sizes}, Constraint("held", "<=", held),
        Constraint("longest_wait", "<=", longest_wait),
    )  # fmt: skip
    unknown = {"catch_up": 1e9, "held": 1e9}
    outcomes, asked = counted(
        "fetch_max_bytes", lambda lane: dense.get((int(lane.get(FETCH, 0)), int(lane.get(PARTITION, 0))), unknown)
    )
    done = run_search(wanted, axes_of_aim(wanted, {}), {}, outcomes)
    meeting = [of["catch_up"] for of in dense.values() if of["held"] <= held and of["longest_wait"] <= longest_wait]
    assert done.is_met(done.best) == bool(meeting)
    assert not meeting or done.judged[done.best].score == min(meeting)
    assert len(set(asked)) < len(dense) / 5


def test_the_fewest_slots_are_found_exactly() -> None:
    wanted = aim("session_cache", SLOTS, {SLOTS: Span(0, 10_000)}, Constraint("harmed", "=", 0))
    outcomes, asked = counted("session_cache", lambda lane: {"harmed": max(0, 1237 - int(lane.get(SLOTS, 1000)))})
    done = run_search(wanted, axes_of_aim(wanted, {}), {SLOTS: 1000}, outcomes)
    assert best_of(done) == {SLOTS: 1237}
    assert len(asked) < 300


@pytest.mark.parametrize(("bears", "best"), [(2.5, {"traffic.speed": 2.0}), (1.2, {})])
def test_the_most_traffic_that_meets_the_bounds_is_found_and_the_captured_lane_has_the_captured_traffic(
    bears: float, best: Mapping[str, Value]
) -> None:
    wanted = aim(
        "fetch_max_bytes", "traffic.speed", {"traffic.speed": (1.5, 2.0, 3.0)}, Constraint("end_lag", "=", 0),
        is_least=False,
    )  # fmt: skip
    outcomes, _ = counted("fetch_max_bytes", lambda lane: {"end_lag": float(lane.get("traffic.speed", 1)) > bears})
    done = run_search(wanted, axes_of_aim(wanted, {}), {}, outcomes)
    assert (best_of(done), done.is_met(done.best)) == (best, True)


def test_the_settings_in_force_are_kept_if_nothing_is_better() -> None:
    wanted = aim("fetch_max_bytes", "catch_up", {FETCH: Span(64 * KiB, 100 * MiB)}, step=0.01)
    outcomes, _ = counted("fetch_max_bytes", lambda _: {"catch_up": 5.0})
    assert best_of(run_search(wanted, axes_of_aim(wanted, {}), {}, outcomes)) == {}


def test_a_setting_that_changes_nothing_is_left_as_captured() -> None:
    over = {FETCH: Span(64 * KiB, 100 * MiB), PARTITION: Span(16 * KiB, 10 * MiB)}
    wanted = aim("fetch_max_bytes", "catch_up", over, step=0.01)
    outcomes, _ = counted("fetch_max_bytes", lambda lane: {"catch_up": 5.0 if int(lane.get(FETCH, 0)) > MiB else 9.0})
    assert [*best_of(run_search(wanted, axes_of_aim(wanted, {}), {}, outcomes))] == [FETCH]


def test_a_narrow_range_between_two_worse_ones_is_found() -> None:
    """No bisection: 256 KiB may make partitions wait that 64 KiB does not."""
    wanted = aim("fetch_max_bytes", "catch_up", {FETCH: Span(64 * KiB, 64 * MiB)}, Constraint("longest_wait", "<=", 9))

    def saw(lane: Mapping[str, Value]) -> Mapping[str, float]:
        size = int(lane.get(FETCH, 64 * MiB))
        return {"catch_up": 1e9 / size, "longest_wait": 0 if size < MiB or 9 * MiB < size < 11 * MiB else 50}

    outcomes, _ = counted("fetch_max_bytes", saw)
    done = run_search(wanted, axes_of_aim(wanted, {}), {}, outcomes)
    assert 10.8 * MiB < int(best_of(done)[FETCH]) < 11 * MiB


def test_the_whole_range_of_values_that_are_as_good_is_given() -> None:
    over = {FETCH: Span(64 * KiB, 100 * MiB)}
    wanted = aim("fetch_max_bytes", "catch_up", over, step=0.01)
    outcomes, _ = counted(
        "fetch_max_bytes", lambda lane: {"catch_up": 5.0 if MiB <= int(lane.get(FETCH, 1)) <= 8 * MiB else 9.0}
    )
    done = run_search(wanted, axes_of_aim(wanted, {}), {}, outcomes)
    low, high = (done.axes[0].value(at) for at in equally_good_range(done, 0))
    assert MiB <= int(low) < 1.1 * MiB
    assert 7.2 * MiB < int(high) <= 8 * MiB


def test_of_lanes_beyond_what_the_capture_holds_one_is_replayed() -> None:
    over = {FETCH: Span(64 * KiB, 100 * MiB)}
    wanted = aim("fetch_max_bytes", "catch_up", over, step=0.01)
    outcomes, asked = counted("fetch_max_bytes", lambda lane: {"catch_up": 1e9 / int(lane.get(FETCH, 64 * KiB))})
    done = run_search(wanted, axes_of_aim(wanted, {FETCH: 3 * MiB}), {}, outcomes)
    sizes = [parse_bytes(lane.partition("=")[2]) for lane in asked if lane != "captured"]
    assert max(sizes) == 3 * MiB
    assert len(asked) == len(set(asked))
    assert equally_good_range(done, 0)[1] == 100 * MiB


def test_a_constraint_holds_with_the_upper_end_of_the_range() -> None:
    over = {FETCH: (MiB, 2 * MiB)}
    wanted = aim("fetch_max_bytes", "catch_up", over, Constraint("held", "<=", 10))
    made: Mapping[int, Mapping[str, float | Ranged]] = {
        MiB: {"catch_up": 5.0, "held": Ranged(8, 7, 10)},
        2 * MiB: {"catch_up": 1.0, "held": Ranged(8, 7, 11)},
    }
    outcomes, _ = counted("fetch_max_bytes", lambda lane: made.get(int(lane.get(FETCH, 0)), {"catch_up": 9.0}))
    assert best_of(run_search(wanted, axes_of_aim(wanted, {}), {}, outcomes)) == {FETCH: MiB}


def test_the_same_arguments_give_the_same_lanes() -> None:
    over = {FETCH: Span(64 * KiB, 100 * MiB), PARTITION: Span(16 * KiB, 10 * MiB)}
    wanted = aim("fetch_max_bytes", "catch_up", over, Constraint("held", "<=", 5 * MiB), step=0.01)

    def made(lane: Mapping[str, Value]) -> Mapping[str, float]:
        size, part = int(lane.get(FETCH, MiB)), int(lane.get(PARTITION, MiB))
        return {"catch_up": 1e9 / min(size, 7 * part), "held": size + part % 1000}

    runs = []
    for _ in range(2):
        outcomes, asked = counted("fetch_max_bytes", made)
        run_search(wanted, axes_of_aim(wanted, {}), {}, outcomes)
        runs.append(asked)
    assert runs[0] == runs[1]


def test_the_trade_off_has_no_lane_that_another_beats() -> None:
    over = {FETCH: Span(64 * KiB, 8 * MiB)}
    wanted = aim("fetch_max_bytes", "catch_up", over, Constraint("held", "<=", MiB), step=0.01)
    outcomes, _ = counted(
        "fetch_max_bytes",
        lambda lane: {"catch_up": 1e9 / int(lane.get(FETCH, 1)), "held": int(lane.get(FETCH, 2**40))},
    )
    done = run_search(wanted, axes_of_aim(wanted, {}), {}, outcomes)
    curve = trade_off_points(done)
    paid = [done.tried[point]["held"].value for point in curve]
    assert len(curve) > 10
    assert paid == sorted(paid, reverse=True)
    assert failure_of_constraints(wanted.where, done.tried[done.best]).share == 0
