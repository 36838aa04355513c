"""Plots as inline SVG, by Altair and vl-convert: no script, no network, in colours that page.css changes for dark screens."""

from __future__ import annotations

import math

import altair as alt
import vl_convert

from jobs.report.question import Axis, Plot

WIDTH, HEIGHT = 600, 240
ROW, NARROW_ROW, MANY_ROWS = 26, 19, 14
INK, MUTED, GRID = "#1f2430", "#5b6472", "#dde1e7"
COLOURS = ("#2f6fdb", "#d9772b", "#2a9d7f", "#c2417c", "#8a63d2", "#8d7b4f", "#4aa3c7", "#b23a3a")
"""Of the marks; page.css has what each becomes on a dark screen."""
LONGEST_LABEL = 210
CHARACTER = 7.8
"""Width of a character of the widest of the usual fonts."""
_VEGA_LITE = alt.SCHEMA_VERSION.removeprefix("v").rpartition(".")[0]
_FONT = "system-ui, sans-serif"
_CONFIG = {
    "font": _FONT, "background": None, "aria": False, "view": {"stroke": None},
    "axis": {"labelColor": MUTED, "titleColor": MUTED, "gridColor": GRID, "domainColor": GRID, "tickColor": GRID,
             "labelFontSize": 13, "titleFontSize": 13, "titleFontWeight": "normal", "labelLimit": LONGEST_LABEL,
             "titleLimit": 560, "labelFlush": False},
    "legend": {"orient": "top", "labelColor": INK, "titleColor": MUTED, "labelFontSize": 13, "titleFontSize": 13,
               "titleFontWeight": "normal", "labelLimit": LONGEST_LABEL, "symbolStrokeWidth": 3, "columns": 3,
               "columnPadding": 36, "offset": 26,
               "titleLimit": 560},
    "range": {"category": list(COLOURS)},
}  # fmt: skip


def svg(plot: Plot) -> str:
    """The plot as an SVG element. Names in it are text, escaped by Vega."""
    return str(vl_convert.vegalite_to_svg(chart(plot).to_dict(), vl_version=_VEGA_LITE, config=_CONFIG))


def chart(plot: Plot) -> alt.LayerChart:
    """The plot as a chart of marks and, where there is one, a rule."""
    rows = stacked(plot) if plot.mark == "bar" and plot.x.log else [dict(row) for row in plot.rows]
    base = alt.Chart(alt.Data(values=rows))
    layers = [_MARKS[plot.mark](base, plot), *ruled(plot)]
    return alt.layer(*layers).properties(
        width=WIDTH, height=height(plot), autosize={"type": "fit-x", "contains": "padding"}
    )


def height(plot: Plot) -> int | alt.Step:
    """As many rows as names, else the same for all."""
    if plot.y.scale != "name":
        return HEIGHT
    return alt.Step(ROW if len({row[plot.y.field] for row in plot.rows}) <= MANY_ROWS else NARROW_ROW)


def stacked(plot: Plot) -> list[dict[str, object]]:
    """Bars of a histogram with the place at which each begins and ends, one upon the other."""
    tops: dict[object, float] = {}
    out: list[dict[str, object]] = []
    for row in plot.rows:
        begin = tops.get(row[plot.x.field], 0.0)
        tops[row[plot.x.field]] = end = begin + float(str(row[plot.y.field]))
        out.append({**row, plot.y.field: end, "begin": begin})
    return out


def bars(base: alt.Chart, plot: Plot) -> alt.Chart:
    """Bars to the right, by name; or a histogram, whose bars end at `until`."""
    if plot.x.log:
        return base.mark_bar(binSpacing=1).encode(
            x=x_of(plot), x2="until:Q", y=y_of(plot, stack=None), y2="begin:Q", **coloured(plot)
        )
    return base.mark_bar(height={"band": 0.7}).encode(x=x_of(plot), y=y_of(plot), **coloured(plot), **in_order(plot))


def grouped(base: alt.Chart, plot: Plot) -> alt.Chart:
    """Bars to the right, by name, those of different colour below one another."""
    colour = plot.colour or plot.y
    return base.mark_bar().encode(
        x=x_of(plot, stack=None), y=y_of(plot), yOffset=alt.YOffset(f"{colour.field}:N", sort=None), **coloured(plot)
    )


def lines(base: alt.Chart, plot: Plot) -> alt.Chart:
    """A line a colour, with points where there are few."""
    point = len(plot.rows) <= 60
    return base.mark_line(strokeWidth=2, point=point).encode(x=x_of(plot), y=y_of(plot), **coloured(plot))


def steps(base: alt.Chart, plot: Plot) -> alt.Chart:
    """A line a colour that holds its value until the next."""
    return base.mark_line(strokeWidth=2, interpolate="step-after").encode(x=x_of(plot), y=y_of(plot), **coloured(plot))


def points(base: alt.Chart, plot: Plot) -> alt.Chart:
    """Points that show through each other."""
    return base.mark_circle(size=90, opacity=0.5, color=COLOURS[0]).encode(x=x_of(plot), y=y_of(plot), **coloured(plot))


def heat(base: alt.Chart, plot: Plot) -> alt.LayerChart:
    """Cells of names by names, darker for more, with the number in each."""
    value = plot.colour or plot.y
    most = max(float(str(row[value.field])) for row in plot.rows) or 1.0
    opacity = alt.Opacity(f"{value.field}:Q", legend=None, scale=alt.Scale(domain=[0, most], range=[0.06, 0.7]))
    cells = base.mark_rect(color=COLOURS[0], cornerRadius=2).encode(x=x_of(plot), y=y_of(plot), opacity=opacity)
    numbers = base.mark_text(color=INK, fontSize=13).encode(
        x=x_of(plot), y=y_of(plot), text=alt.Text(f"{value.field}:Q", format=",")
    )
    return alt.layer(cells, numbers)


_MARKS = {"bar": bars, "grouped": grouped, "line": lines, "step": steps, "point": points, "heat": heat}


def ruled(plot: Plot) -> list[alt.Chart]:
    """A line across at a value of x, with what it is."""
    if plot.rule is None:
        return []
    at, told = plot.rule
    low, high = reach(plot, plot.x)
    is_right = at * at > low * high
    base = alt.Chart(alt.Data(values=[{"at": at, "told": told}]))
    side = "right" if is_right else "left"
    text = base.mark_text(align=side, dx=-6 if is_right else 6, dy=8, baseline="top", color=INK, fontSize=13)
    return [
        base.mark_rule(color=INK, strokeDash=[5, 4]).encode(x="at:Q"),
        text.encode(x="at:Q", y=alt.value(0), text="told:N"),
    ]


def in_order(plot: Plot) -> dict[str, object]:
    """Stacked bars in the order of the rows."""
    return {} if plot.colour is None else {"order": alt.Order("rank:Q")}


def coloured(plot: Plot) -> dict[str, object]:
    """The colour of marks; a legend only where there is more than one."""
    if plot.colour is None:
        return {"color": alt.value(COLOURS[0])}
    names = list(dict.fromkeys(str(row[plot.colour.field]) for row in plot.rows))
    legend = alt.Legend(title=plot.colour.title) if len(names) > 1 else None
    scale = alt.Scale(domain=names, range=[COLOURS[i % len(COLOURS)] for i in range(len(names))])
    return {"color": alt.Color(f"{plot.colour.field}:N", legend=legend, scale=scale)}


def x_of(plot: Plot, **more: object) -> alt.X:
    """The encoding of the axis to the right."""
    return alt.X(
        shorthand(plot.x),
        title=plot.x.title or None,
        axis=axis(plot, plot.x),
        scale=scale(plot, plot.x),
        **sort(plot.x),
        **more,
    )


def y_of(plot: Plot, **more: object) -> alt.Y:
    """The encoding of the axis upwards, or of the rows."""
    return alt.Y(
        shorthand(plot.y),
        title=plot.y.title or None,
        axis=axis(plot, plot.y),
        scale=scale(plot, plot.y),
        **sort(plot.y),
        **more,
    )


def sort(of: Axis) -> dict[str, object]:
    """Names stand as they come."""
    return {"sort": None} if of.scale == "name" else {}


def shorthand(of: Axis) -> str:
    """Field and type, as Vega-Lite has it."""
    return f"{of.field}:{'N' if of.scale == 'name' else 'Q'}"


def scale(plot: Plot, of: Axis) -> alt.Scale | alt.UndefinedType:
    """Logarithmic where asked for; times in UTC."""
    if of.log:
        low, high = reach(plot, of)
        return alt.Scale(type="log", base=2, domain=[low, high], nice=False)
    return alt.Undefined if of.scale == "name" else alt.Scale(nice=of.scale != "bytes")


def reach(plot: Plot, of: Axis) -> tuple[float, float]:
    """The least and the greatest value on an axis, with the end of histogram bars and the rule."""
    values = [float(str(row[name])) for row in plot.rows for name in (of.field, "until") if name in row]
    if plot.rule is not None and of.log:
        values.append(plot.rule[0])
    return min(values), max(values)


def axis(plot: Plot, of: Axis) -> alt.Axis:
    """Ticks at round values, written with their unit."""
    if of.scale == "name":
        return alt.Axis(labelAngle=0, grid=False, ticks=False, domain=False, labelPadding=6, **above(plot, of))
    if of.scale == "bytes":
        low, high = reach(plot, of)
        values = doublings(low, high) if of.log else round_bytes(high)
        return alt.Axis(
            values=values, labelExpr=BYTES, labelOverlap=True, grid=not of.log, labelFlush=False, **above(plot, of)
        )
    whole = {"tickMinStep": 1} if of.scale == "count" else {}
    return alt.Axis(labelExpr=LABELS[of.scale], tickCount=5, labelOverlap=True, **whole, **above(plot, of))


def above(plot: Plot, of: Axis) -> dict[str, object]:
    """Room for the labels of the axis on the left in the widest of the fonts a browser may take, and its title above."""
    if of is not plot.y:
        return {}
    longest = max((len(str(row[of.field])) for row in plot.rows), default=0) if of.scale == "name" else 8
    room = min(longest * CHARACTER, LONGEST_LABEL) + 10
    return {
        "minExtent": room,
        "titleAngle": 0,
        "titleAlign": "left",
        "titleAnchor": "start",
        "titleX": -room,
        "titleY": -12,
    }


BYTES = (
    "datum.value >= 1073741824 ? format(datum.value / 1073741824, ',.4~g') + ' GiB' : "
    "datum.value >= 1048576 ? format(datum.value / 1048576, ',.4~g') + ' MiB' : "
    "datum.value >= 1024 ? format(datum.value / 1024, ',.4~g') + ' KiB' : datum.value == 0 ? '0' : format(datum.value, '~g') + ' B'"
)
LABELS = {
    "ms": "datum.value >= 10000 ? format(datum.value / 1000, ',~g') + ' s' : format(datum.value, ',~g') + ' ms'",
    "percent": "format(100 * datum.value, '.4~g') + ' %'",
    "count": "datum.value >= 100000 ? format(datum.value, '~s') : format(datum.value, ',~g')",
    "ratio": "format(datum.value, '.2~f')",
}
"""Vega expressions that write a tick, by scale."""


def doublings(low: float, high: float) -> list[float]:
    """Powers of two within the reach, no more than seven, a constant number of doublings apart."""
    first, last = math.ceil(math.log2(max(low, 1)) - 1e-9), math.floor(math.log2(max(high, 1)) + 1e-9)
    apart = max(1, math.ceil((last - first + 1) / 7))
    return [float(2**power) for power in range(first, last + 1, apart)]


def round_bytes(high: float) -> list[float]:
    """Four or five values from 0, a round number of bytes, KiB, MiB or GiB apart."""
    unit = 1024 ** max(0, int(math.log2(max(high, 1)) // 10))
    steps = (step * unit / 1024 for step in (64, 128, 256, 512)) if unit > 1 else iter(())
    wider = (unit * step for step in (1, 2, 5, 10, 20, 50, 100, 200, 256, 500))
    apart = next((step for step in (*steps, *wider) if high / step <= 5), unit * 1024)
    return [apart * i for i in range(int(high // apart) + 1)]
