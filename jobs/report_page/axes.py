"""The axes of a plot for Vega-Lite: their ticks, and how these are written."""

from __future__ import annotations

import math
from typing import Any

from jobs.report_page.question import Axis, Plot

LONGEST_LABEL = 230
"""The longest label in pixels, measured in the font of vl-convert; a longer one is cut."""
WIDEST_LABEL, CHARACTER = 290, 8.4
"""The pixels of such a label, and of one character, in the widest font that a browser may use."""
WIDTH, ACROSS, PADDING = 560, 530, 10
"""Pixels: the width of a plot; the same without the empty space at its sides; the space between a name and its mark,
part of which half a point may cover."""
_OF_NUMBERS = 8
MOST_TICKS, _MOST_DOUBLINGS = 5, 7
_BYTES = " : ".join(
    f"datum.value >= {1 << shift} ? format(datum.value / {1 << shift}, ',.4~g') + ' {unit}'"
    for shift, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB"))
)
LABELS = {
    "bytes": f"{_BYTES} : datum.value == 0 ? '0' : format(datum.value, '~g') + ' B'",
    "ms": "datum.value >= 1000 ? format(datum.value / 1000, ',~g') + ' s' : format(datum.value, ',~g') + ' ms'",
    "percent": "format(100 * datum.value, '.4~g') + ' %'",
    "time": "format(datum.value, ',~g')",
    "count": "datum.value >= 100000 ? format(datum.value, '~s') : format(datum.value, ',~g')",
    "ratio": "format(datum.value, '.2~f')",
}
"""Vega expressions that write a tick, by scale."""


def axis_encoding(plot: Plot, drawn_axis: Axis) -> dict[str, Any]:
    """Field, type, title, ticks and scale of an axis. Names are in the order of the rows."""
    kind = {"type": "nominal", "sort": None} if drawn_axis.scale == "name" else {"type": "quantitative"}
    return {
        "field": drawn_axis.field,
        "title": drawn_axis.title or None,
        "axis": axis_ticks(plot, drawn_axis),
        "scale": axis_scale(plot, drawn_axis),
        **kind,
    }


def axis_scale(plot: Plot, drawn_axis: Axis) -> dict[str, Any]:
    """The scale of an axis: in doublings if the axis is `log`.

    Other axes end at a round value, except those of bytes, whose ticks are not decimal.
    """
    if drawn_axis.log:
        return {"type": "log", "base": 2, "domain": list(axis_reach(plot, drawn_axis)), "nice": False}
    return {} if drawn_axis.scale == "name" else {"nice": drawn_axis.scale != "bytes"}


def axis_reach(plot: Plot, drawn_axis: Axis) -> tuple[float, float]:
    """The least and the greatest value on an axis. The ends of histogram bars and of intervals count, and on a `log`
    axis also the rule.
    """
    ends = (drawn_axis.field, "until", "low", "high")
    values = [float(str(row[name])) for row in plot.rows for name in ends if name in row]
    if plot.rule is not None and drawn_axis.log:
        values.append(plot.rule[0])
    return min(values), max(values)


def axis_ticks(plot: Plot, drawn_axis: Axis) -> dict[str, Any]:
    """Ticks at round values, written with their unit."""
    if drawn_axis.scale == "name":
        few = {} if drawn_axis is plot.y else {"labelLimit": room_below(plot)}
        shape = {"labelAngle": 0, "grid": False, "ticks": False, "domain": False, "labelPadding": PADDING}
        return {**shape, **few, **title_above(plot, drawn_axis)}
    ticks = tick_count(plot, drawn_axis)
    labels: dict[str, Any] = {
        "labelExpr": LABELS[drawn_axis.scale],
        "labelOverlap": True,
        "tickCount": ticks,
        **title_above(plot, drawn_axis),
    }
    if drawn_axis.scale == "bytes":
        low, high = axis_reach(plot, drawn_axis)
        labels |= {
            "values": doubling_ticks(low, high) if drawn_axis.log else round_byte_ticks(high),
            "grid": not drawn_axis.log,
        }
    return labels


def tick_count(plot: Plot, drawn_axis: Axis) -> int:
    """About how many ticks an axis has: as many as there is room for; for counts at most as many as whole numbers."""
    room = (ACROSS - room_beside(plot)) / (_OF_NUMBERS * CHARACTER) if drawn_axis is plot.x else MOST_TICKS
    numbers = int(axis_reach(plot, drawn_axis)[1]) if drawn_axis.scale == "count" else MOST_TICKS
    return max(1, min(int(room), numbers, MOST_TICKS))


def title_above(plot: Plot, drawn_axis: Axis) -> dict[str, Any]:
    """For the axis on the left: the properties that put its title above it and leave room for its labels in the widest
    font that a browser may use. Empty for the other axis.
    """
    if drawn_axis is not plot.y:
        return {}
    room = room_beside(plot)
    title = {"titleAngle": 0, "titleAlign": "left", "titleAnchor": "start", "titleX": -room, "titleY": -12}
    return {"minExtent": room, **title}


def room_beside(plot: Plot) -> float:
    """The width of the labels on the left in pixels, in the widest font that a browser may use."""
    names = plot.y.scale == "name"
    longest = max((len(str(row[plot.y.field])) for row in plot.rows), default=0) if names else _OF_NUMBERS
    return min(longest * CHARACTER, WIDEST_LABEL) + PADDING + 4


def room_below(plot: Plot) -> float:
    """The width that each name below a plot may have, in pixels as vl-convert measures. A browser's font may be a
    quarter wider.
    """
    return (ACROSS - room_beside(plot)) / len({row[plot.x.field] for row in plot.rows}) / 1.25 - PADDING


def doubling_ticks(low: float, high: float) -> list[float]:
    """Powers of two between low and high, a constant number of doublings apart."""
    first, last = math.ceil(math.log2(max(low, 1)) - 1e-9), math.floor(math.log2(max(high, 1)) + 1e-9)
    apart = max(1, math.ceil((last - first + 1) / _MOST_DOUBLINGS))
    return [float(2**power) for power in range(first, last + 1, apart)]


def round_byte_ticks(high: float) -> list[float]:
    """At most six values from 0, a power of two apart."""
    apart = 2 ** max(0, math.ceil(math.log2(max(high, 1) / 5)))
    return [float(apart * i) for i in range(int(high // apart) + 1)]
