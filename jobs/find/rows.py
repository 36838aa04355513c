"""Makes the rows of the tables AIM_SETTINGS and TRADE_OFF from searches that are over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import isfinite

import pyarrow as pa

from jobs.find.conclusions import Settled, binding_constraints, relaxed_constraints
from jobs.find.judgement import Outcomes
from jobs.find.scopes import FOR_ALL, Scope
from jobs.find.search_state import Search, equally_good_range, trade_off_points
from jobs.scenarios.settings import setting_of
from schemas.tables.gold_aims import AIM_SETTINGS, TRADE_OFF
from schemas.tables.outcomes import outcomes_of
from schemas.tables.table import Table
from schemas.tables.values import OF_CLUSTER
from udfs.facts.arrow_tables import arrow_schema

HIGH = "_p90"
"""The name of an outcome followed by this is the name of the upper end of its range."""


def rows_of_aims(run_id: str, searches: Iterable[Settled]) -> dict[Table, pa.Table]:
    """The rows of AIM_SETTINGS and of TRADE_OFF, by table."""
    listed = list(searches)
    rows = {
        AIM_SETTINGS: [row for settled in listed for row in setting_rows(run_id, settled)],
        TRADE_OFF: [row for settled in listed for row in trade_off_rows(run_id, settled)],
    }
    return {table: pa.Table.from_pylist(dicts, schema=arrow_schema(table)) for table, dicts in rows.items()}


def setting_rows(run_id: str, settled: Settled) -> Iterator[dict[str, object]]:
    """A row for each setting of the aim, and for each setting for which a client or topic has a value of its own."""
    t, done = AIM_SETTINGS, settled.search
    of_aim: dict[str, object] = {
        t.run_id: run_id, t.algorithm: done.aim.algorithm, t.aim: str(done.aim), t.lanes_replayed: done.replayed,
        t.rounds: done.rounds,
    }  # fmt: skip
    for axis_no in range(len(done.axes)):
        yield {**of_aim, **scope_columns(FOR_ALL, done), t.for_all: [], **value_columns(done, axis_no)}
    for one in settled.alone:
        for_all = outcome_entries(done, one.search.tried[one.for_all])
        for axis_no in one.own_places:
            yield {
                **of_aim,
                **scope_columns(one.scope, one.search),
                t.for_all: for_all,
                **value_columns(one.search, axis_no),
            }


def scope_columns(scope: Scope, done: Search) -> dict[str, object]:
    """The columns of a row that say for whom a lane is best, for all or only for one, and its outcomes."""
    t, best = AIM_SETTINGS, done.best
    return {
        t.scope_kind: scope.kind, t.scope: scope.name, t.scenario: done.lane(best).name, t.is_met: done.is_met(best),
        t.binds: binding_constraints(done), t.relax: relaxed_constraints(done),
        t.outcomes: outcome_entries(done, done.tried[best]),
        t.captured: outcome_entries(done, done.tried[done.captured]),
    }  # fmt: skip


def value_columns(done: Search, axis_no: int) -> dict[str, object]:
    """The columns of a row about one setting: its best value, and the first and the last value that do as well."""
    t, axis, coordinate = AIM_SETTINGS, done.axes[axis_no], done.best[axis_no]
    if coordinate is None:
        return {t.setting: axis.key, t.value: None, t.value_from: None, t.value_to: None}
    ends = (coordinate, coordinate) if axis.key == done.aim.target else equally_good_range(done, axis_no)
    value, first, last = (setting_of(axis.key).format(axis.value(c)) for c in (coordinate, *ends))
    return {t.setting: axis.key, t.value: value, t.value_from: first, t.value_to: last}


def trade_off_rows(run_id: str, settled: Settled) -> list[dict[str, object]]:
    """A row for each lane of the trade-off, and for the captured one."""
    t, done = TRADE_OFF, settled.search
    undominated = set(trade_off_points(done, settled.curve))
    rows = list[dict[str, object]]()
    for place, point in enumerate(settled.curve, 1):
        score = done.judged[point].score
        aimed = (score if done.aim.is_least else -score) if isfinite(score) else None
        rows.append({
            t.run_id: run_id, t.algorithm: done.aim.algorithm, t.scope_kind: OF_CLUSTER, t.scope: "",
            t.scenario: done.lane(point).name, t.place: place, t.is_chosen: point == done.best,
            t.is_met: done.is_met(point), t.is_dominated: point not in undominated, t.aim: aimed,
            t.outcomes: outcome_entries(done, done.tried[point]),
        })  # fmt: skip
    return rows


def outcome_entries(done: Search, outcomes: Outcomes) -> list[tuple[str, float]]:
    """The outcomes of a lane as the entries of a map."""
    entries = list[tuple[str, float]]()
    for name, outcome in outcomes_of(done.aim.algorithm).items():
        if name not in outcomes:  # for one client or topic only the outcomes that lanes are judged by are known
            continue
        entries.append((name, outcomes[name].value))
        entries += [(f"{name}{HIGH}", outcomes[name].high)] if outcome.ranges else []
    return entries
