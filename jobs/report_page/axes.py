"""The axes of a plot: which ticks, and how they are written, as Vega-Lite has them."""

from __future__ import annotations

import math
from typing import Any

from jobs.report_page.question import Axis, Plot

LONGEST_LABEL = 230
"""As measured in the font of vl-convert; what is longer is cut."""
WIDEST_LABEL, CHARACTER = 290, 8.4
"""Width of the same label, and of a character, in the widest of the fonts that a browser may take."""
WIDTH, ACROSS, PADDING = 560, 530, 10
"""Of a plot, and without what is empty at its sides; between a name and what it is of, which half a point may cover."""
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


def encoding(plot: Plot, of: Axis) -> dict[str, Any]:
    """Field, type, title, ticks and scale of an axis. Names stand as they come."""
    kind = {"type": "nominal", "sort": None} if of.scale == "name" else {"type": "quantitative"}
    return {"field": of.field, "title": of.title or None, "axis": axis(plot, of), "scale": scale(plot, of), **kind}


def scale(plot: Plot, of: Axis) -> dict[str, Any]:
    """In doublings where asked for; to a round end but for bytes, whose ticks are not decimal."""
    if of.log:
        return {"type": "log", "base": 2, "domain": list(reach(plot, of)), "nice": False}
    return {} if of.scale == "name" else {"nice": of.scale != "bytes"}


def reach(plot: Plot, of: Axis) -> tuple[float, float]:
    """The least and the greatest value on an axis, with the ends of histogram bars and of intervals, and the rule."""
    ends = (of.field, "until", "low", "high")
    values = [float(str(row[name])) for row in plot.rows for name in ends if name in row]
    if plot.rule is not None and of.log:
        values.append(plot.rule[0])
    return min(values), max(values)


def axis(plot: Plot, of: Axis) -> dict[str, Any]:
    """Ticks at round values, written with their unit."""
    if of.scale == "name":
        few = {} if of is plot.y else {"labelLimit": room_below(plot)}
        shape = {"labelAngle": 0, "grid": False, "ticks": False, "domain": False, "labelPadding": PADDING}
        return {**shape, **few, **above(plot, of)}
    ticks = few_ticks(plot, of)
    shown: dict[str, Any] = {"labelExpr": LABELS[of.scale], "labelOverlap": True, "tickCount": ticks, **above(plot, of)}
    if of.scale == "bytes":
        low, high = reach(plot, of)
        shown |= {"values": doublings(low, high) if of.log else round_bytes(high), "grid": not of.log}
    return shown


def few_ticks(plot: Plot, of: Axis) -> int:
    """About how many ticks: as many as have room, of counts no more than there are numbers."""
    room = (ACROSS - room_beside(plot)) / (_OF_NUMBERS * CHARACTER) if of is plot.x else MOST_TICKS
    numbers = int(reach(plot, of)[1]) if of.scale == "count" else MOST_TICKS
    return max(1, min(int(room), numbers, MOST_TICKS))


def above(plot: Plot, of: Axis) -> dict[str, Any]:
    """Of the axis on the left: room for labels in the widest of the fonts a browser may take, and the title above."""
    if of is not plot.y:
        return {}
    room = room_beside(plot)
    title = {"titleAngle": 0, "titleAlign": "left", "titleAnchor": "start", "titleX": -room, "titleY": -12}
    return {"minExtent": room, **title}


def room_beside(plot: Plot) -> float:
    """Width of the labels on the left, in the widest of the fonts a browser may take."""
    names = plot.y.scale == "name"
    longest = max((len(str(row[plot.y.field])) for row in plot.rows), default=0) if names else _OF_NUMBERS
    return min(longest * CHARACTER, WIDEST_LABEL) + PADDING + 4


def room_below(plot: Plot) -> float:
    """Width of each of the names below a plot, as measured; a browser's font may take a quarter more."""
    return (ACROSS - room_beside(plot)) / len({row[plot.x.field] for row in plot.rows}) / 1.25 - PADDING


def doublings(low: float, high: float) -> list[float]:
    """Powers of two within the reach, a constant number of doublings apart."""
    first, last = math.ceil(math.log2(max(low, 1)) - 1e-9), math.floor(math.log2(max(high, 1)) + 1e-9)
    apart = max(1, math.ceil((last - first + 1) / _MOST_DOUBLINGS))
    return [float(2**power) for power in range(first, last + 1, apart)]


def round_bytes(high: float) -> list[float]:
    """Values from 0, no more than six, a power of two apart."""
    apart = 2 ** max(0, math.ceil(math.log2(max(high, 1) / 5)))
    return [float(apart * i) for i in range(int(high // apart) + 1)]
