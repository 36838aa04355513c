"""Trends as plots: a curve over nights for each figure that matters most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf

from jobs.comparison.metric_words import WORDS, number_with_unit
from jobs.comparison.outcome_figures import BROKER, CLIENT, REPLAY
from jobs.comparison.trends import FEWEST, Name, Night, Trend
from jobs.report_page.question import Axis, Plot, Scale
from jobs.terminal.wording import capitalized, elapsed_times

PLOTTED: Mapping[Name, Scale] = {
    (CLIENT, "longest_wait_ms"): "ms",
    (CLIENT, "held_bytes"): "bytes",
    (BROKER, "refused_share"): "percent",
    (CLIENT, "split_share"): "percent",
    (BROKER, "partitions"): "count",
    (REPLAY, "agreement"): "percent",
}
"""By figure how its axis is written."""


def trend_plots(trend: Trend) -> Iterator[Plot]:
    """A plot of each figure that enough nights have; none of one that is nothing in all of them."""
    for name, scale in PLOTTED.items():
        nights = [night for night in trend.nights if drawable_value(night, name) is not None]
        if len(nights) >= FEWEST and any(drawable_value(night, name) for night in nights):
            yield figure_plot(name, scale, nights)


def drawable_value(night: Night, name: Name) -> float | None:
    """A figure that can be drawn."""
    figure = night.figures.get(name)
    return None if figure is None or figure.value in (None, inf) else figure.value


def figure_plot(name: Name, scale: Scale, nights: list[Night]) -> Plot:
    """The curve of a figure."""
    metric, values = name[1], [drawable_value(night, name) or 0.0 for night in nights]
    since, title = elapsed_times([night.begin for night in nights])
    rows = [{"at": at, "value": value} for at, value in zip(since, values, strict=True)]
    first, last = (number_with_unit(metric, values[at]) for at in (0, -1))
    what = WORDS[metric]
    says = f"{capitalized(what)}: {last} in the last of {len(nights)} nights, {first} in the first."
    return Plot(says, "line", rows, Axis("at", title, "time"), Axis("value", what, scale))
