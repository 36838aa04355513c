"""The results of the run's aims (`--find`): rows of their tables, and texts about them."""

from __future__ import annotations

from collections.abc import Mapping
from math import isinf

from pyspark.sql import DataFrame, Row

from jobs.find.rows import HIGH
from jobs.find.scopes import Scope
from jobs.replays.algorithm import OwnRows
from jobs.report_page.question import Findings
from jobs.scenarios.scenario import CAPTURED_LANE
from jobs.terminal.lane_rows import SCENARIO
from jobs.terminal.wording import changes_phrase, duration, exact_size, percent, short_size
from schemas.tables.gold_aims import AIM_SETTINGS, TRADE_OFF
from schemas.tables.outcomes import outcomes_of


def aim_settings(own_rows: OwnRows) -> DataFrame:
    """A run's rows of `aim_settings`: one for each setting of an aim."""
    t = AIM_SETTINGS
    return own_rows(t).orderBy(t.algorithm, t.scope_kind, t.scope, t.setting)


def trade_off_lanes(own_rows: OwnRows) -> DataFrame:
    """The lanes of each aim's trade-off, in their order."""
    t = TRADE_OFF
    return own_rows(t).orderBy(t.algorithm, t.scope_kind, t.scope, t.place)


def scope_of_row(row: Row) -> Scope:
    """Whom a row of `aim_settings` is for."""
    return Scope(row[AIM_SETTINGS.scope_kind], row[AIM_SETTINGS.scope])


def limit_text(scope: Scope) -> str:
    """Text that names the topics with one limit by that limit. scope: of kind OF_LIMIT."""
    return f"topics of max.message.bytes={exact_size(int(scope.name))}"


def aim_text(row: Row) -> str:
    """The aim as text, without the name of its replay and without the settings that it searches."""
    return str(row[AIM_SETTINGS.aim]).partition(": ")[2].partition(" over ")[0]


def outcome_names(row: Row) -> list[str]:
    """The outcomes that an aim names; the one that is minimised or maximised comes first."""
    t = AIM_SETTINGS
    known, words = outcomes_of(row[t.algorithm]), aim_text(row).split()
    return [word for word in dict.fromkeys(words) if word in known]


def outcome_text(algorithm: str, name: str, figures: Mapping[str, float]) -> str:
    """A figure as text, with its p90 if it depends on pace: `1.4 MiB, p90 1.6 MiB`."""
    value, high = figures[name], figures.get(f"{name}{HIGH}")
    median = figure_text(algorithm, name, value)
    other = median if high is None else figure_text(algorithm, name, high)
    return median if median == other else f"{median}, p90 {other}"


def figure_text(algorithm: str, name: str, value: float) -> str:
    """A figure of an outcome with its unit."""
    if isinf(value):
        return "without end"
    unit = outcomes_of(algorithm)[name].unit
    if unit == "bytes":
        return short_size(value)
    if unit == "ms":
        return duration(value)
    return percent(value) if unit == "share" else f"{value:,.0f}{' days' if unit == 'days' else ''}"


def settings_phrase(lane: str) -> str:
    """The settings that a lane changes, as a phrase in a sentence."""
    return "the captured settings" if lane == CAPTURED_LANE else changes_phrase(lane)


def lanes_of_aim(findings: Findings, row: Row) -> list[Row]:
    """The rows of TRADE_OFF of an aim, for the lanes that the run has. row: a row of the aim in AIM_SETTINGS."""
    t = TRADE_OFF
    of_aim = (t.algorithm, t.scope_kind, t.scope)
    lanes = set(findings.lanes.get(row[t.algorithm], ()))
    return [
        lane_row
        for lane_row in findings.of(trade_off_lanes)
        if all(lane_row[column] == row[column] for column in of_aim) and lane_row[SCENARIO] in lanes
    ]
