"""What a run's page shows of other runs in its lake: a comparison with one run, and the trend with its plots."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from math import inf

from pyspark.sql import SparkSession

from jobs.comparison.comparison import RunComparison, compare_runs
from jobs.comparison.incomplete_runs import run_names
from jobs.comparison.metric_words import WORDS, number_with_unit
from jobs.comparison.named_runs import compared_run, previous_id
from jobs.comparison.outcome_figures import BROKER, CLIENT, REPLAY
from jobs.comparison.screen import page_parts, run_text
from jobs.comparison.trend_screen import MOST_NIGHTS, main_figures_grid
from jobs.comparison.trends import FEWEST, Name, Night, Trend, find_trend
from jobs.flags import PREVIOUS
from jobs.lake.delta_tables import has_table
from jobs.report_page.findings import KnownRun, known_run
from jobs.report_page.other_runs import OtherRuns
from jobs.report_page.question import Axis, Plot, Scale
from jobs.terminal.progress import stage
from jobs.terminal.wording import capitalized, elapsed_times
from schemas.tables.gold import RUNS
from schemas.tables.gold_trends import TRENDS
from udfs.errors import ArgumentError, LakeError

PLOTTED: Mapping[Name, Scale] = {
    (CLIENT, "longest_wait_ms"): "ms",
    (CLIENT, "held_bytes"): "bytes",
    (BROKER, "refused_share"): "percent",
    (CLIENT, "split_share"): "percent",
    (BROKER, "partitions"): "count",
    (REPLAY, "agreement"): "percent",
}
"""How the ticks of a figure's axis are written, by figure."""


def other_runs(spark: SparkSession, lake: str, run: KnownRun, named: str) -> OtherRuns:
    """The comparison with another run, and the nights up to this one.

    named: the other run, as an id or `previous`. If this version cannot read the tables of other runs, stderr says so
    and the page shows none. Raises ArgumentError for an id that the lake does not have.
    """
    sets = {row[RUNS.capture_id] for row in run.newest} | {run.capture_id}
    try:
        before = run_to_compare(spark, lake, run, named)
        compared = None if before is None else compare_with_other(spark, lake, run, before)
        nights = find_trend(spark, lake, run, MOST_NIGHTS) if may_have_trend(spark, lake, sets) else None
    except LakeError as fault:
        sys.stderr.write(f"refetch: the page shows no other runs: {fault}\n")
        return OtherRuns()
    if nights is not None and nights.incomplete:
        sys.stderr.write(f"refetch: trends on the page leave out incomplete runs: {run_names(nights.incomplete)}\n")
    return runs_for_page(compared, nights)


def may_have_trend(spark: SparkSession, lake: str, sets: set[str]) -> bool:
    """Whether there may be enough nights for a trend: enough capture sets, or kept figures of removed ones."""
    return len(sets) >= FEWEST or has_table(spark, lake, TRENDS)


def run_to_compare(spark: SparkSession, lake: str, run: KnownRun, named: str) -> KnownRun | None:
    """The run to compare with; None for `previous` if the run is the first, which stderr then says."""
    if named != PREVIOUS:
        return known_run(spark, lake, named)
    try:
        return known_run(spark, lake, previous_id(spark, lake, run))
    except ArgumentError as fault:
        sys.stderr.write(f"refetch: the page compares with no run: {fault}\n")
        return None


def compare_with_other(spark: SparkSession, lake: str, run: KnownRun, other: KnownRun) -> RunComparison:
    """The comparison of another run with this one."""
    with stage("compare", spark):
        return compare_runs(spark, compared_run(spark, lake, other), compared_run(spark, lake, run))


def runs_for_page(compared: RunComparison | None, nights: Trend | None) -> OtherRuns:
    """The comparison and the trend for the page. There is a trend only if it has enough nights."""
    has_trend = nights is not None and len(nights.nights) >= FEWEST
    grid = main_figures_grid(nights) if nights is not None and has_trend else None
    plots = [*trend_plots(nights)] if nights is not None and has_trend else []
    if compared is None:
        return OtherRuns(nights=grid, plots=plots)
    changes: Sequence[tuple[str, Sequence[str]]] = [*page_parts(compared)]
    command = f"compare {compared.before.run_id} {compared.after.run_id}"
    return OtherRuns(run_text(compared.before), command, changes, grid, plots)


def trend_plots(trend: Trend) -> Iterator[Plot]:
    """A plot for each figure that enough nights have, without figures that are 0 in all nights."""
    for name, scale in PLOTTED.items():
        nights = [night for night in trend.nights if drawable_value(night, name) is not None]
        if len(nights) >= FEWEST and any(drawable_value(night, name) for night in nights):
            yield figure_plot(name, scale, nights)


def drawable_value(night: Night, name: Name) -> float | None:
    """A night's figure if it can be drawn; None if the night lacks it, or if it is an infinite time."""
    figure = night.figures.get(name)
    return None if figure is None or figure.value in (None, inf) else figure.value


def figure_plot(name: Name, scale: Scale, nights: list[Night]) -> Plot:
    """The plot with the curve of a figure over these nights."""
    metric, values = name[1], [drawable_value(night, name) or 0.0 for night in nights]
    since, title = elapsed_times([night.begin for night in nights])
    rows = [{"at": at, "value": value} for at, value in zip(since, values, strict=True)]
    first, last = (number_with_unit(metric, values[at]) for at in (0, -1))
    what = WORDS[metric]
    says = f"{capitalized(what)}: {last} in the last of {len(nights)} nights, {first} in the first."
    return Plot(says, "line", rows, Axis("at", title, "time"), Axis("value", what, scale))
