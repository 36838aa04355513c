"""Advice that an aim asks for (`--find`): the setting that meets it, or why none does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isinf

from pyspark.sql import DataFrame, Row, SparkSession

from jobs.find.rows import HIGH
from jobs.lake.delta_tables import has_table, no_rows, rows_of
from jobs.replays.algorithm import OwnRows
from jobs.report_page.advice.fetch_limits import SHOWN, consumer_lanes
from jobs.report_page.advice.in_force import confidence, in_force
from jobs.report_page.advice.recommendation import NOTHING, Effect, InForce, Recommendation, Scope
from jobs.report_page.question import Findings
from jobs.scenarios.scenario import CAPTURED_LANE
from jobs.scenarios.settings import setting_of
from jobs.terminal.lane_rows import SCENARIO
from jobs.terminal.wording import duration, percent, short_size
from jobs.units import finite
from schemas.tables.gold_aims import AIM_SETTINGS, TRADE_OFF
from schemas.tables.outcomes import outcomes_of
from schemas.tables.table import Table
from schemas.tables.values import CAPTURED, CHANGE, KEEP, WITHHELD

MOST_VALUES = 5


def aim_settings(own_rows: OwnRows) -> DataFrame:
    """What the run's aims come to: a row for each of their settings."""
    t = AIM_SETTINGS
    return own_rows(t).orderBy(t.algorithm, t.scope_kind, t.scope, t.setting)


def trade_off(own_rows: OwnRows) -> DataFrame:
    """The lanes of the trade-off of each aim, in their order."""
    t = TRADE_OFF
    return own_rows(t).orderBy(t.algorithm, t.scope_kind, t.scope, t.place)


def rows_there(spark: SparkSession, lake: str, run_id: str, table: Table) -> DataFrame:
    """A run's rows of a table; none where no run of the lake had an aim."""
    return rows_of(spark, lake, table, run_id) if has_table(spark, lake, table) else no_rows(spark, table)


def with_aims(found: Findings, made: Iterable[Recommendation]) -> Iterator[Recommendation]:
    """The recommendations, those of settings that an aim is over being the aim's."""
    rows = found.of(aim_settings)
    over = {(row[AIM_SETTINGS.algorithm], row[AIM_SETTINGS.setting]) for row in rows}
    yield from (one for one in made if (one.algorithm, one.setting) not in over)
    yield from (of_setting(found, row) for row in rows if row[AIM_SETTINGS.algorithm] in found.lanes)


def of_setting(found: Findings, row: Row) -> Recommendation:
    """What an aim says of one setting."""
    t = AIM_SETTINGS
    key, setting, now = row[t.setting], setting_of(row[t.setting]), now_of(found, row[t.setting])
    value = None if row[t.value] is None else str(setting.parse(row[t.value]))
    changed = row[t.is_met] and value is not None and value != now.value
    verdict = CHANGE if changed else KEEP if row[t.is_met] else WITHHELD
    least = None if row[t.value_from] is None else str(setting.parse(row[t.value_from]))
    return Recommendation(
        algorithm=row[t.algorithm],
        scope=Scope(row[t.scope_kind], row[t.scope]),
        setting=key,
        verdict=verdict,
        now=now,
        recommended=None if verdict == WITHHELD else value if changed else now.value,
        sure=confidence(found, row[t.algorithm]),
        reason=reason(row),
        gain=gain(row) if changed else NOTHING,
        cost=cost(row) if changed else NOTHING,
        enough=least if row[t.is_met] and str(least).isdecimal() else None,
        is_proposal=setting.doc.startswith("A proposal"),
    )


def now_of(found: Findings, key: str) -> InForce:
    """The value in force: of fetch limits those that consumers' requests have."""
    if key not in SHOWN:
        return in_force(found, key)
    values = sorted({value for row in found.of(consumer_lanes) for value in row[SHOWN[key]] or ()})
    return InForce(", ".join(map(str, values[:MOST_VALUES])), CAPTURED) if values else in_force(found, key)


def reason(row: Row) -> str:
    """Why it is so, as a sentence."""
    t = AIM_SETTINGS
    if not row[t.is_met]:
        return f"No lane of {row[t.lanes_replayed]:,} meets the aim; one would with {' or '.join(row[t.relax])}."
    if row[t.scenario] == CAPTURED_LANE:
        return f"No lane of {row[t.lanes_replayed]:,} meets the aim better than the captured settings."
    return f"It meets the aim best of {row[t.lanes_replayed]:,} lanes: {aim_text(row)}."


def aim_text(row: Row) -> str:
    """The aim without the settings that it is over."""
    return str(row[AIM_SETTINGS.aim]).partition(": ")[2].partition(" over ")[0]


def names_of(row: Row) -> list[str]:
    """The outcomes that an aim names, what is to be best first."""
    t = AIM_SETTINGS
    known, words = outcomes_of(row[t.algorithm]), aim_text(row).split()
    return [word for word in dict.fromkeys(words) if word in known]


def gain(row: Row) -> Effect:
    """What becomes of the outcome that is to be best, or of the first constraint's where that is a setting; then of the
    others that get better.
    """
    first, *others = names_of(row) or [""]
    return _effect(row, [name for name in (first, *others) if name and (name == first or is_better(row, name))])


def cost(row: Row) -> Effect:
    """What becomes of the outcomes that constraints are about and that do not get better."""
    return _effect(row, [name for name in names_of(row)[1:] if not is_better(row, name)])


def is_better(row: Row, name: str) -> bool:
    """Whether an outcome is better with the setting that was found than as captured."""
    t = AIM_SETTINGS
    less = row[t.captured][name] - row[t.outcomes][name]
    return less > 0 if outcomes_of(row[t.algorithm])[name].is_smaller_better else less < 0


def _effect(row: Row, names: Sequence[str]) -> Effect:
    t = AIM_SETTINGS
    if not names:
        return NOTHING
    before, after = row[t.captured], row[t.outcomes]
    of = row[t.algorithm]
    said = {name: [outcome_said(of, name, figures) for figures in (before, after)] for name in names}
    changes = [
        f"{name} {was}, unchanged" if was == now else f"{name} {was} -> {now}" for name, (was, now) in said.items()
    ]
    return Effect("; ".join(changes), names[0], finite(before[names[0]]), finite(after[names[0]]))


def outcome_said(algorithm: str, name: str, figures: Mapping[str, float]) -> str:
    """A figure for people, with its p90 where it depends on pace: `1.4 MiB, p90 1.6 MiB`."""
    value, high = figures[name], figures.get(f"{name}{HIGH}")
    median = said_figure(algorithm, name, value)
    other = median if high is None else said_figure(algorithm, name, high)
    return median if median == other else f"{median}, p90 {other}"


def said_figure(algorithm: str, name: str, value: float) -> str:
    """A figure of an outcome with its unit."""
    if isinf(value):
        return "without end"
    unit = outcomes_of(algorithm)[name].unit
    if unit == "bytes":
        return short_size(value)
    if unit == "ms":
        return duration(value)
    return percent(value) if unit == "share" else f"{value:,.0f}{' days' if unit == 'days' else ''}"


def lanes_of_aim(found: Findings, row: Row) -> list[Row]:
    """The lanes of an aim's trade-off that the run has."""
    t = TRADE_OFF
    mine = (t.algorithm, t.scope_kind, t.scope)
    lanes = set(found.lanes.get(row[t.algorithm], ()))
    return [of for of in found.of(trade_off) if all(of[c] == row[c] for c in mine) and of[SCENARIO] in lanes]
