"""The trade-off of an aim as a plot: the aimed-at value in each lane, over what that lane pays for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any

from pyspark.sql import Row

from jobs.find.rows import HIGH
from jobs.report_page.advice.aims import aim_text, lanes_of_aim, outcome_names
from jobs.report_page.aim_lines import settings_and_values
from jobs.report_page.question import Axis, Findings, Plot, Scale, Unplotted, rows_to_compare
from jobs.scenarios.scenario import CAPTURED_LANE
from jobs.scenarios.settings import setting_of
from schemas.tables.gold_aims import AIM_SETTINGS, TRADE_OFF
from schemas.tables.outcomes import outcomes_of

SCALES: Mapping[str, Scale] = {"bytes": "bytes", "ms": "ms", "share": "percent"}
"""How the ticks of a unit are written; any other unit is a count."""
FAR_APART = 20
"""An axis is in doublings if the greatest value is more than this many times the least."""
ONE_OUTCOME = "the aim names one outcome alone"
ONE_LANE = "fewer than two lanes have an end to what the aim names"


def trade_off_plot(findings: Findings, row: Row) -> Plot:
    """The plot of an aim, with a point for each lane. Raises Unplotted if there is nothing to compare.

    row: one of the aim's rows of `aim_settings`.
    """
    t, names, target = AIM_SETTINGS, outcome_names(row), aim_text(row).split()[1]
    paid = next((name for name in names if name != target), None)
    if paid is None:
        raise Unplotted(ONE_OUTCOME)
    marks = rows_to_compare([*trade_off_marks(findings, row, target, paid)], ONE_LANE, "lane")
    heading, _ = settings_and_values([of[TRADE_OFF.scenario] for of in lanes_of_aim(findings, row)])
    return Plot(
        f"What {target} comes to, by {paid}: the lanes that no other beats in both, and the captured one",
        "point", marks,
        Axis("paid", paid, axis_scale_of(row[t.algorithm], paid), log=is_far_apart([mark["paid"] for mark in marks])),
        Axis("aim", target, axis_scale_of(row[t.algorithm], target), log=is_far_apart([mark["aim"] for mark in marks])),
        Axis("lane", heading, "name"),
    )  # fmt: skip


def is_far_apart(values: Sequence[float]) -> bool:
    """Whether an axis should be in doublings, because points of small values would overlap on a linear one."""
    return min(values) > 0 and max(values) > FAR_APART * min(values)


def trade_off_marks(findings: Findings, row: Row, target: str, paid: str) -> Iterator[dict[str, Any]]:
    """The points of the plot. Lanes whose aim or price is unknown or infinite are left out.

    target: the outcome or setting that is minimised or maximised. paid: the outcome that it is traded for; if it has a
    range, its p90 counts, as for constraints.
    """
    t, rows = TRADE_OFF, lanes_of_aim(findings, row)
    _, labels = settings_and_values([of[t.scenario] for of in rows])
    for lane_row, label in zip(rows, labels, strict=True):
        figures = lane_row[t.outcomes]
        pays = figures.get(f"{paid}{HIGH}", figures[paid])
        aim = figures.get(target, lane_row[t.aim])
        if aim is not None and isfinite(aim) and isfinite(pays):
            yield {"lane": lane_mark_name(lane_row, label), "paid": pays, "aim": aim}


def lane_mark_name(lane_row: Row, label: str) -> str:
    """The name of a lane of the trade-off. label: its values of the settings in the heading."""
    t = TRADE_OFF
    name = CAPTURED_LANE if lane_row[t.scenario] == CAPTURED_LANE else label
    return f"{name}, chosen" if lane_row[t.is_chosen] else name


def axis_scale_of(algorithm: str, name: str) -> Scale:
    """The scale of the axis for an outcome or a setting."""
    known = outcomes_of(algorithm)
    return SCALES.get(known[name].unit if name in known else setting_of(name).type, "count")
