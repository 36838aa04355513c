"""The results of a search in words and rows: which bounds bind, what to relax, and which lanes are kept."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from jobs.find.axes import axes_of_aim
from jobs.find.conclusions import binding_constraints, relaxed_constraints, settle_search, trade_off_curve
from jobs.find.rows import rows_of_aims
from jobs.find.search import run_search
from jobs.find.search_state import Search
from jobs.scenarios.aims import Constraint, Span
from jobs.scenarios.settings import Value
from jobs.units import parse_bytes
from schemas.tables.gold_aims import AIM_SETTINGS, TRADE_OFF
from tests.unit.find.test_search import FETCH, MiB, aim, counted

OVER = {FETCH: Span(MiB, 64 * MiB)}
A, T = AIM_SETTINGS, TRADE_OFF


def in_proportion(lane: Mapping[str, Value]) -> Mapping[str, float]:
    """Outcomes of a client that is faster and holds more if the limit is larger."""
    size = int(lane.get(FETCH, 2 * MiB))
    return {"catch_up": 1e9 / size, "held": size, "longest_wait": 1e9 / size, "cut_tails": 64}


def done_of(*where: Constraint) -> Search:
    wanted = aim("fetch_max_bytes", "catch_up", OVER, *where, step=0.01)
    return run_search(wanted, axes_of_aim(wanted, {}), {}, counted("fetch_max_bytes", in_proportion)[0])


def test_a_constraint_binds_if_the_aim_would_be_better_without_it() -> None:
    done = done_of(Constraint("held", "<=", 8 * MiB), Constraint("cut_tails", "<=", 100))
    assert binding_constraints(done) == ["held <= 8MiB"]
    assert relaxed_constraints(done) == []


def test_if_no_setting_meets_all_bounds_it_says_which_to_relax_and_by_how_much() -> None:
    done = done_of(Constraint("held", "<=", 8 * MiB), Constraint("longest_wait", "<=", 60))
    held, wait = relaxed_constraints(done)
    assert wait == f"longest_wait <= {ceil(1e9 / (8 * MiB))}ms"
    size = parse_bytes(held.removeprefix("held <= "))
    assert 1e9 / 60 <= size < 1.02 * 1e9 / 60


def test_bounds_that_cannot_be_met_even_alone_are_all_named() -> None:
    done = done_of(Constraint("held", "<=", 1024), Constraint("cut_tails", "<=", 8))
    assert relaxed_constraints(done) == ["held <= 1MiB and cut_tails <= 64"]


def test_the_lanes_that_are_kept_have_the_best_one_and_both_ends() -> None:
    done = done_of(Constraint("held", "<=", 8 * MiB))
    outcomes, asked = counted("fetch_max_bytes", in_proportion)
    kept = settle_search(done, (), outcomes)
    names = [lane.name for lane in kept.lanes]
    assert names[0] == f"{FETCH}=64MiB"
    assert names[-1] == f"{FETCH}=1MiB"
    assert done.lane(done.best).name in names
    assert len(names) <= 10
    assert [name for name in asked if name != "captured"] == names


def test_the_captured_lane_is_kept_once_even_if_another_lane_beats_it() -> None:
    wanted = aim("fetch_max_bytes", "catch_up", OVER, step=0.01)
    outcomes, _ = counted("fetch_max_bytes", lambda lane: {"catch_up": 999.0 if lane else 1000.0})
    done = run_search(wanted, axes_of_aim(wanted, {}), {}, outcomes)
    assert done.best == done.captured
    assert [done.lane(point).name == "captured" for point in trade_off_curve(done)].count(True) == 1


def test_rows_say_what_is_chosen_and_which_values_are_as_good() -> None:
    done = done_of(Constraint("held", "<=", 8 * MiB))
    rows = rows_of_aims("run", [settle_search(done, (), counted("fetch_max_bytes", in_proportion)[0])])
    (setting,) = rows[AIM_SETTINGS].to_pylist()
    assert (setting[A.is_met], setting[A.value], setting[A.binds]) == (True, "8128KiB", ["held <= 8MiB"])
    assert setting[A.value_to] == "8MiB"
    assert dict(setting[A.outcomes])["held"] == 8128 * 1024
    chosen = [row for row in rows[TRADE_OFF].to_pylist() if row[T.is_chosen]]
    assert [row[T.scenario] for row in chosen] == [f"{FETCH}=8128KiB"]
    assert [row[T.place] for row in rows[TRADE_OFF].to_pylist()] == [*range(1, rows[TRADE_OFF].num_rows + 1)]
