"""Plots as inline SVG, by Altair and vl-convert: without scripts or network, in colours that page.css can change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import altair as alt
import vl_convert
from altair.utils.schemapi import debug_mode

from jobs.report_page.axes import ACROSS, CHARACTER, LONGEST_LABEL, WIDTH, axis_encoding, axis_reach, room_beside
from jobs.report_page.mark_titles import SAID, UNDER_POINTER, mark_text, with_titles
from jobs.report_page.question import Plot
from jobs.terminal.wording import printable_value

Layers = alt.LayerChart | alt.FacetChart
Marks = Callable[[alt.Chart, Plot], alt.Chart | Layers]
HEIGHT = 240
ROW, NARROW_ROW, MANY_ROWS = 26, 19, 14
MOST_POINTS, MOST_TOUCHED = 60, 150
ROWS, TOUCHED, RULE, DIAGONAL = "rows", "touched", "rule", "diagonal"
"""Names of the rows that a chart's layers draw."""
MOST_COLUMNS, SYMBOL, BETWEEN = 3, 20, 12
"""The most columns of a legend; the width of a symbol with the space beside it, and the space between columns (pixels).
"""
MEASURED = 6.5
"""The approximate width of a character in a legend, in pixels as vl-convert measures. In a browser's font it may be
CHARACTER."""
UNKNOWN_VALUE = "unknown"
FONT = 14
"""The size of texts in pixels. It is still legible on a phone that shows the plot at two thirds of its width."""
INK, MUTED, GRID = "#1f2430", "#5b6472", "#dde1e7"
COLOURS = ("#2f6fdb", "#d9772b", "#2a9d7f", "#c2417c", "#8a63d2", "#8d7b4f", "#4aa3c7", "#b23a3a")
"""The colours of marks. page.css has the colours that replace them on a dark screen."""
_VEGA_LITE = alt.SCHEMA_VERSION.removeprefix("v").rpartition(".")[0]
_TEXT = {
    "labelFontSize": FONT,
    "titleFontSize": FONT,
    "titleFontWeight": "normal",
    "titleColor": MUTED,
    "titleLimit": 560,
}
_CONFIG = {
    "padding": {"left": 5, "right": 24, "top": 5, "bottom": 5},
    "font": "system-ui, sans-serif", "background": None, "view": {"stroke": None},
    "axis": {**_TEXT, "labelColor": MUTED, "labelLimit": LONGEST_LABEL, "labelFlush": False,
             "gridColor": GRID, "domainColor": GRID, "tickColor": GRID},
    "legend": {**_TEXT, "labelColor": INK, "labelLimit": LONGEST_LABEL, "orient": "top", "offset": 26,
               "symbolStrokeWidth": 3},
}  # fmt: skip


def plot_svg(plot: Plot) -> str:
    """The plot as an SVG element. Its marks show their values under the pointer. Names in it are text, which Vega
    escapes.
    """
    plot = replace(plot, rows=[{name: printable_value(value) for name, value in row.items()} for row in plot.rows])
    plot = replace(plot, rows=[{**row, SAID: mark_text(plot, row)} for row in plot.rows])
    with debug_mode(False):  # it checks each part against Vega-Lite's schema; `to_dict` checks the whole
        chart = chart_of_plot(plot)
    drawn = {**chart.to_dict(), "datasets": plot_datasets(plot)}
    return with_titles(str(vl_convert.vegalite_to_svg(drawn, vl_version=_VEGA_LITE, config=_CONFIG)))


def plot_datasets(plot: Plot) -> dict[str, Sequence[Mapping[str, object]]]:
    """The rows that a chart's layers draw, by name."""
    rows = stacked_bars(plot) if plot.x.log else [{**row, "rank": i} for i, row in enumerate(plot.rows)]
    apart = -(-len(plot.rows) // MOST_TOUCHED)
    return {ROWS: rows, TOUCHED: plot.rows[::apart], RULE: rule_rows(plot), DIAGONAL: diagonal_rows(plot)}


def chart_of_rows(name: str) -> alt.Chart:
    """A chart of the rows with this name. Altair copies a whole chart at each step, so the rows are added last."""
    return alt.Chart(alt.NamedData(name=name))


def chart_of_plot(plot: Plot) -> Layers:
    """The plot as a chart: its marks and, if there are any, the rule and the diagonal."""
    layers = [_MARKS[plot.mark](chart_of_rows(ROWS), plot), *draw_rule(plot), *draw_diagonal(plot)]
    size: dict[str, Any] = {
        "width": WIDTH,
        "height": plot_height(plot),
        "autosize": {"type": "fit-x", "contains": "padding"},
    }
    return alt.layer(*layers).properties(**size)


def plot_height(plot: Plot) -> int | alt.Step:
    """The height of a plot: proportional to the rows if the y axis has names, else the same for all plots."""
    if plot.y.scale != "name":
        return HEIGHT
    return alt.Step(ROW if len({row[plot.y.field] for row in plot.rows}) <= MANY_ROWS else NARROW_ROW)


def stacked_bars(plot: Plot) -> list[dict[str, object]]:
    """The bars of a histogram, stacked, with the height at which each begins and ends."""
    tops: dict[object, float] = {}
    bars: list[dict[str, object]] = []
    for row in plot.rows:
        begin = tops.get(row[plot.x.field], 0.0)
        tops[row[plot.x.field]] = end = begin + float(str(row[plot.y.field]))
        bars.append({**row, plot.y.field: end, "begin": begin})
    return bars


def draw_bars(base: alt.Chart, plot: Plot) -> alt.Chart:
    """Horizontal bars, by name; or a histogram, whose bars end at `until`."""
    x, y = axis_encoding(plot, plot.x), axis_encoding(plot, plot.y)
    if plot.x.log:
        ends = {"y": y | {"stack": None}, "x2": {"field": "until"}, "y2": {"field": "begin"}}
        return with_channels(base.mark_bar(binSpacing=1), {"x": x, **ends, **colour_channel(plot), **UNDER_POINTER})
    order = {} if plot.colour is None else {"order": {"field": "rank", "type": "quantitative"}}
    return with_channels(
        base.mark_bar(height={"band": 0.7}), {"x": x, "y": y, **order, **colour_channel(plot), **UNDER_POINTER}
    )


def draw_grouped_bars(base: alt.Chart, plot: Plot) -> alt.Chart:
    """Horizontal bars, by name; bars of different colours are below one another."""
    colour = plot.colour or plot.y
    beside = {"yOffset": {"field": colour.field, "type": "nominal", "sort": None}}
    x = axis_encoding(plot, plot.x) | {"stack": None}
    placed_at = {"x": x, "y": axis_encoding(plot, plot.y), **beside}
    return with_channels(base.mark_bar(), {**placed_at, **colour_channel(plot), **UNDER_POINTER})


def draw_lines(base: alt.Chart, plot: Plot) -> Layers:
    """A line for each colour, with visible points if they are few, and a band if rows have `low` and `high`."""
    line = place_marks(base.mark_line(strokeWidth=2, aria=bool(plot.colour)), plot, **line_title(plot))
    layers = [line, draw_touch_points(plot, 1.0 if len(plot.rows) <= MOST_POINTS else 0.0)]
    return alt.layer(*([draw_bands(base, plot)] if "low" in plot.rows[0] else []), *layers)


def draw_bands(base: alt.Chart, plot: Plot) -> alt.Chart:
    """A band around the line of each colour, from `low` to `high`."""
    ends = {"y": axis_encoding(plot, plot.y) | {"field": "low", "stack": None}, "y2": {"field": "high"}}
    return with_channels(
        base.mark_area(opacity=0.2, aria=False), {"x": axis_encoding(plot, plot.x), **ends, **colour_channel(plot)}
    )


def draw_steps(base: alt.Chart, plot: Plot) -> Layers:
    """A line for each colour, in steps: it holds a value until the next one."""
    line = place_marks(
        base.mark_line(strokeWidth=2, interpolate="step-after", aria=bool(plot.colour)), plot, **line_title(plot)
    )
    return alt.layer(line, draw_touch_points(plot, 0.0))


def line_title(plot: Plot) -> dict[str, Any]:
    """The channel that says whose a line is. Its points say the values."""
    return {} if plot.colour is None else {"description": {"field": plot.colour.field, "type": "nominal"}}


def draw_touch_points(plot: Plot, opacity: float) -> alt.Chart:
    """The points of lines, which show their values under the pointer. There are few, so that the page stays small."""
    return place_marks(chart_of_rows(TOUCHED).mark_circle(size=40, opacity=opacity), plot, **UNDER_POINTER)


def draw_points(base: alt.Chart, plot: Plot) -> alt.Chart:
    """A point for each row. Points are translucent."""
    return place_marks(base.mark_circle(size=90, opacity=0.5), plot, **UNDER_POINTER)


def draw_intervals(base: alt.Chart, plot: Plot) -> Layers:
    """A band from `low` to `high` for each name, and a tick at the value."""
    x, y, colour = axis_encoding(plot, plot.x), axis_encoding(plot, plot.y), colour_channel(plot)
    ends = {"x": x | {"field": "low", "stack": None}, "x2": {"field": "high"}}
    band = with_channels(base.mark_bar(height={"band": 0.5}, opacity=0.35), {"y": y, **ends, **colour, **UNDER_POINTER})
    value = base.mark_tick(thickness=3, height={"band": 0.7})
    return alt.layer(band, with_channels(value, {"x": x, "y": y, **colour, **UNDER_POINTER}))


def draw_heat(base: alt.Chart, plot: Plot) -> Layers:
    """A cell for each pair of names, with the value in it; a larger value has a stronger colour."""
    value = (plot.colour or plot.y).field
    most = max(float(str(row[value])) for row in plot.rows) or 1.0
    place = {"x": axis_encoding(plot, plot.x), "y": axis_encoding(plot, plot.y)}
    strength = {"domain": [0, most], "range": [0.06, 0.7]}
    opacity = {"field": value, "type": "quantitative", "legend": None, "scale": strength}
    cells = with_channels(
        base.mark_rect(color=COLOURS[0], cornerRadius=2), {**place, "opacity": opacity, **UNDER_POINTER}
    )
    text = {"field": value, "type": "quantitative", "format": ","}
    return alt.layer(
        cells, with_channels(base.mark_text(color=INK, fontSize=FONT, aria=False), {**place, "text": text})
    )


_MARKS: Mapping[str, Marks] = {
    "bar": draw_bars,
    "grouped": draw_grouped_bars,
    "line": draw_lines,
    "step": draw_steps,
    "point": draw_points,
    "interval": draw_intervals,
    "heat": draw_heat,
}


def rule_rows(plot: Plot) -> list[dict[str, object]]:
    """The row of the rule, if there is one."""
    return [] if plot.rule is None else [{"at": plot.rule[0], "told": plot.rule[1]}]


def draw_rule(plot: Plot) -> list[alt.Chart]:
    """A vertical line at a value of x. Its meaning is written beside it, on the side with more room."""
    if plot.rule is None:
        return []
    at, (low, high) = plot.rule[0], axis_reach(plot, plot.x)
    is_late = at * at > low * high if plot.x.log else 2 * at > low + high
    base = chart_of_rows(RULE)
    side: dict[str, Any] = {"align": "right", "dx": -6} if is_late else {"align": "left", "dx": 6}
    x = {"field": "at", "type": "quantitative"}
    text = base.mark_text(baseline="top", dy=8, color=INK, fontSize=FONT, aria=False, **side)
    return [
        with_channels(base.mark_rule(color=INK, strokeDash=[5, 4], aria=False), {"x": x}),
        with_channels(text, {"x": x, "y": {"value": 0}, "text": {"field": "told", "type": "nominal"}}),
    ]


def diagonal_rows(plot: Plot) -> list[dict[str, object]]:
    """The row of the diagonal, if there is one."""
    if not plot.diagonal:
        return []
    return [{"begin": 0, "end": min(axis_reach(plot, plot.x)[1], axis_reach(plot, plot.y)[1]), "told": plot.diagonal}]


def draw_diagonal(plot: Plot) -> list[alt.Chart]:
    """A line where x and y are equal, as far as both axes reach. Its meaning is written at its end."""
    if not plot.diagonal:
        return []
    base = chart_of_rows(DIAGONAL)
    begins, ends = ({"field": field, "type": "quantitative"} for field in ("begin", "end"))
    line = {"x": begins, "y": begins, "x2": {"field": "end"}, "y2": {"field": "end"}}
    text = base.mark_text(baseline="bottom", align="right", dx=-6, color=MUTED, fontSize=FONT, aria=False)
    return [
        with_channels(base.mark_rule(color=MUTED, strokeDash=[5, 4], aria=False), line),
        with_channels(text, {"x": ends, "y": ends, "text": {"field": "told", "type": "nominal"}}),
    ]


def place_marks(marks: alt.Chart, plot: Plot, **channels: Any) -> alt.Chart:
    """Marks at x and y, in their colour."""
    return with_channels(
        marks, {"x": axis_encoding(plot, plot.x), "y": axis_encoding(plot, plot.y), **colour_channel(plot), **channels}
    )


def with_channels(marks: alt.Chart, channels: dict[str, Any]) -> alt.Chart:
    """Marks with these channels, which Altair checks against Vega-Lite's schema when the chart is drawn."""
    marks.encoding = alt.FacetedEncoding(**channels)
    return marks


def colour_channel(plot: Plot) -> dict[str, Any]:
    """The colour of marks; with a legend only if there is more than one colour."""
    if plot.colour is None:
        return {"color": {"value": COLOURS[0]}}
    names = list(dict.fromkeys(str(row[plot.colour.field]) for row in plot.rows))
    measured = min(max(map(len, names)) * MEASURED, LONGEST_LABEL)
    apart = BETWEEN + measured * (CHARACTER / MEASURED - 1)
    columns = max(1, min(MOST_COLUMNS, int((ACROSS - room_beside(plot)) / (SYMBOL + measured + apart))))
    legend = (
        {"title": plot.colour.title, "columns": columns, "columnPadding": apart, "symbolOpacity": 1}
        if len(names) > 1
        else None
    )
    # Unknown values are grey, because they are no result.
    colours = [MUTED if name == UNKNOWN_VALUE else COLOURS[i % len(COLOURS)] for i, name in enumerate(names)]
    scale = {"domain": names, "range": colours}
    return {"color": {"field": plot.colour.field, "type": "nominal", "legend": legend, "scale": scale}}
