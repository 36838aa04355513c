"""Trends by night: as a table of the most important figures, as tables of all figures, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from jobs.comparison.comparison_json import FigureOf, figure_json
from jobs.comparison.figures import NO_CHANGE, judge_figures
from jobs.comparison.incomplete_runs import run_names
from jobs.comparison.metric_words import WORDS, number_with_unit, range_with_unit
from jobs.comparison.outcome_figures import BROKER, CLIENT, REPLAY
from jobs.comparison.traffic_figures import RATE
from jobs.comparison.trends import LENGTHS, Name, Night, Trend
from jobs.terminal.screen import Grid, grid_lines, wrapped_lines
from jobs.terminal.wording import client_name, duration, quantity, utc_time

MOST_NIGHTS, MOST_LISTED = 20, 1_000
HANDFUL: dict[Name, str] = {
    (CLIENT, RATE): "requests/s",
    (CLIENT, "longest_wait_ms"): "longest wait",
    (CLIENT, "held_bytes"): "memory held",
    (BROKER, "refused_share"): "refused",
    (CLIENT, "split_share"): "split",
    (BROKER, "partitions"): "replicas",
    (REPLAY, "agreement"): "equal",
}
"""The most important figures, with the headings of their columns."""
CHANGED, OF_ALL = "*", "all"


class FigureOfNight(BaseModel):
    """A figure of a night. scope: the client or broker with the largest; null if it is over all together."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: str
    metric: str
    scope: str | None
    figure: FigureOf | None


class NightOf(BaseModel):
    """A night. first_time, last_time: those of its captures."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run_id: str
    capture_id: str
    run_at: str
    first_time: str | None
    last_time: str | None
    figures: list[FigureOfNight]


class Trends(BaseModel):
    """The nights that can be compared with a run, the newest last.

    others: how many capture sets cannot be compared. incomplete: runs that an older release wrote without columns of
    this release, so that no night can be made from them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: Literal[1] = 1
    lake: str
    run_id: str
    cluster_id: str | None
    nights: list[NightOf]
    others: int
    incomplete: list[str]


def trends_json(lake: str, trend: Trend) -> Trends:
    """What is printed as JSON."""
    return Trends(
        lake=lake, run_id=trend.of.run_id, cluster_id=trend.of.cluster_id, nights=[*map(night_json, trend.nights)],
        others=trend.others, incomplete=[*trend.incomplete],
    )  # fmt: skip


def night_json(night: Night) -> NightOf:
    """A night."""
    first, last = (None if at is None else at.isoformat() for at in (night.first, night.last))
    return NightOf(
        run_id=night.run_id, capture_id=night.capture_id, run_at=night.run_at.isoformat(),
        first_time=first, last_time=last,
        figures=[
            FigureOfNight(kind=kind, metric=metric, scope=night.scopes.get((kind, metric)), figure=figure_json(figure))
            for (kind, metric), figure in sorted(night.figures.items(), key=lambda item: item[0])
        ],
    )  # fmt: skip


def trend_lines(lake: str, trend: Trend) -> Iterator[str]:
    """The table of the most important figures, and what it leaves out."""
    cluster = "" if trend.of.cluster_id is None else f" of cluster {trend.of.cluster_id}"
    yield f"Nights{cluster} in {lake}, the newest last, captured at (UTC)"
    yield from grid_lines(main_figures_grid(trend), MOST_LISTED)
    yield f"{CHANGED} differs from the night before by more than the ranges of both"
    yield "longest wait and memory held are of the client that has most; refused are sessions, split are batches"
    if trend.others:
        other = (
            f"{quantity(trend.others, 'other capture set')} {'is' if trend.others == 1 else 'are'} of another cluster"
        )
        yield f"{other}, or more than {LENGTHS:.0f} times as long or as short"
    if trend.incomplete:
        names = run_names(trend.incomplete)
        yield from wrapped_lines("", f"left out: {names}, of an older release, without columns of today: see `migrate`")


def main_figures_grid(trend: Trend) -> Grid:
    """A row for each night."""
    names = [name for name in HANDFUL if any(name in night.figures for night in trend.nights)]
    cells = [
        [utc_time(night.begin)[:16], duration(1000 * night.seconds),
         *(marked_figure(name, night, before) for name in names), night.run_id]
        for before, night in night_pairs(trend.nights)
    ]  # fmt: skip
    return Grid(("night", "long", *(HANDFUL[name] for name in names), "run"), cells, ("night", "run"))


def marked_figure(name: Name, night: Night, before: Night | None) -> str:
    """A figure of a night as text, with a mark if it differs from the night before by more than noise."""
    figure = night.figures.get(name)
    if figure is None or figure.value is None:
        return "-"
    was = None if before is None else before.figures.get(name)
    is_changed = was is not None and judge_figures(was, figure) not in NO_CHANGE
    return f"{number_with_unit(name[1], figure.value)}{CHANGED if is_changed else ''}"


def all_figure_lines(trend: Trend) -> Iterator[str]:
    """The lines of a table for each metric: its figure in each night, with its range and its client or broker."""
    for name in sorted({name for night in trend.nights for name in night.figures}):
        kind, metric = name
        yield from ("", f"{WORDS.get(metric, metric).capitalize()}, by {kind}")
        cells = [figure_cells(name, night, before) for before, night in night_pairs(trend.nights)]
        head = ("night", "figure", "range", "of", "run")
        yield from grid_lines(Grid(head, cells, ("night", "of", "run")), MOST_LISTED)


def night_pairs(nights: Sequence[Night]) -> Iterator[tuple[Night | None, Night]]:
    """(the night before, the night) for each night; None is before the first night."""
    return zip([None, *nights[:-1]], nights, strict=True)


def figure_cells(name: Name, night: Night, before: Night | None) -> list[str]:
    """A figure as cells of a table."""
    figure = night.figures.get(name)
    ends = None if figure is None else figure.range
    whose = client_name(night.scopes[name]) if name in night.scopes else OF_ALL
    return [
        utc_time(night.begin)[:16], marked_figure(name, night, before),
        "" if ends is None else range_with_unit(name[1], *ends),
        "-" if figure is None else whose, night.run_id,
    ]  # fmt: skip
