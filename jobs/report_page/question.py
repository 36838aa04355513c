"""What a question of the report consists of: data that say what it needs, and functions that answer it from rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from pyspark.sql import DataFrame, Row

from jobs.replays.algorithm import OwnRows
from jobs.scenarios.settings import Value
from jobs.terminal.lane_rows import in_lane_order
from jobs.terminal.screen import Grid

Query = Callable[[OwnRows], DataFrame]
"""A function from the rows of tables to the rows of a query. These are few enough for the driver, however large the
capture is.
"""

Marked = TypeVar("Marked", bound=Row | Mapping[str, Any])
Mark = Literal["line", "step", "bar", "grouped", "point", "interval", "heat"]
Scale = Literal["bytes", "ms", "time", "percent", "count", "ratio", "name"]
"""What an axis measures. It decides how ticks are written. Percent values are shares from 0 to 1; a time is in the unit
that the axis's title names; a count has only whole ticks."""


@dataclass(frozen=True)
class Axis:
    """A field of a plot's rows: what to call it and how to write its values."""

    field: str
    title: str
    scale: Scale
    log: bool = False


@dataclass(frozen=True)
class Plot:
    """A plot as data.

    says: what the plot shows, as a sentence.
    rows: one for each mark. A bar of a histogram, whose x is in doublings, ends at `until`. An interval, or the band
    around a line, goes from `low` to `high`.
    rule: a value of x at which a line is drawn, and the meaning of the line.
    diagonal: the meaning of equal x and y; a line is drawn there. Empty for no line.
    """

    says: str
    mark: Mark
    rows: Sequence[Mapping[str, object]]
    x: Axis
    y: Axis
    colour: Axis | None = None
    rule: tuple[float, str] | None = None
    diagonal: str = ""


@dataclass(frozen=True)
class Findings:
    """What the tables hold of a run.

    rows: the rows of each query.
    lanes: the lanes of each replayed algorithm, in order.
    refused: why an algorithm that was asked for was not replayed, by algorithm.
    captured: the value that the run took as in force, by setting.
    kafka: the release whose semantics the replays follow, and how it is known.
    assumed: the settings among `captured` that nobody stated.
    """

    rows: Mapping[Query, list[Row]]
    lanes: Mapping[str, Sequence[str]]
    refused: Mapping[str, str]
    captured: Mapping[str, Value]
    kafka: str
    assumed: Collection[str] = ()

    def of(self, query: Query) -> list[Row]:
        """The rows of a query; none if it was not made because the run lacks its replay."""
        return self.rows.get(query, [])

    def by_lane(self, query: Query, algorithm: str) -> list[Row]:
        """The rows of a query that has one row for each lane, in the order of the lanes of this replay."""
        return in_lane_order(self.of(query), self.lanes.get(algorithm, ()))


@dataclass(frozen=True)
class Question:
    """One of the report's questions.

    algorithms: the names of the replays that it needs; none if the capture alone answers it.
    queries: the queries of tables that it needs.
    beside: further queries for a run that also has another replay, by that replay's name.
    sentence: makes the answer, with its numbers. Raises Unanswered if there is none.
    plots: make the plots of the answer. Each raises Unplotted if there is nothing to see.
    trust: metrics of `fidelity`, of these algorithms, that say how far the answer can be trusted.
    is_proposal: the question is about a KIP that is only proposed.
    """

    number: int
    text: str
    about: str
    algorithms: tuple[str, ...]
    queries: tuple[Query, ...]
    sentence: Callable[[Findings], str]
    plots: tuple[Callable[[Findings], Plot], ...]
    table: Callable[[Findings], Grid]
    trust: tuple[str, ...] = ()
    beside: Mapping[str, tuple[Query, ...]] = field(default_factory=dict)
    is_proposal: bool = False


def lanes_table_maker(
    algorithm: str, query: Query, table: Callable[[list[Row], Sequence[str]], Grid]
) -> Callable[[Findings], Grid]:
    """A function that makes an answer's table of a replay's lanes, as the summary has it.

    table: makes it from the rows of the query and the lanes in order.
    """
    return lambda findings: table(findings.of(query), findings.lanes[algorithm])


class Unanswered(Exception):  # noqa: N818 - it is no error: the report says why there is no answer
    """This capture or run does not answer the question; the text says why, and what to do, in one sentence."""


class Unplotted(Exception):  # noqa: N818 - it is no error: the report says why there is no plot
    """A plot would show nothing; the text says why, as the rest of a sentence."""


def rows_to_plot(rows: Sequence[Marked], why: str, field: str = "") -> Sequence[Marked]:
    """The rows of a plot. Raises Unplotted with `why` if there are none, or if `field` is 0 or null in all of them."""
    if not any(row[field] for row in rows) if field else not rows:
        raise Unplotted(why)
    return rows


def rows_to_compare(rows: Sequence[Marked], why: str, field: str) -> Sequence[Marked]:
    """The rows of a plot that compares. Raises Unplotted with `why` if `field` has fewer than two different values."""
    if len({row[field] for row in rows}) < 2:
        raise Unplotted(why)
    return rows
