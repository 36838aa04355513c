"""What a question of the report is made of: data that says what it needs, and functions of rows that answer it."""

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
"""A function from the rows of tables to those of a query, which are so few that the driver can hold them, however large
the capture is.
"""

Marked = TypeVar("Marked", bound=Row | Mapping[str, Any])
Mark = Literal["line", "step", "bar", "grouped", "point", "interval", "heat"]
Scale = Literal["bytes", "ms", "time", "percent", "count", "ratio", "name"]
"""What an axis measures, which says how its ticks are written. Percent values are shares from 0 to 1; a time is in the
unit that the axis's title names; a count has whole ticks only."""


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
    rule: a value of x at which a line is drawn, and what the line means.
    diagonal: what it means that x and y are equal; a line is drawn there. Empty for no line.
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

    rows: by query, its rows.
    lanes: by algorithm that was replayed, its lanes in order.
    refused: by algorithm that was asked for and not replayed, why.
    captured: by setting, the value in force that the run took.
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
        """The rows of a query; none if it was not made, because the run lacks its replay."""
        return self.rows.get(query, [])

    def by_lane(self, query: Query, algorithm: str) -> list[Row]:
        """The rows of a query that has one row for each lane, in the order of the lanes of this replay."""
        return in_lane_order(self.of(query), self.lanes.get(algorithm, ()))


@dataclass(frozen=True)
class Question:
    """One of the report's questions.

    algorithms: the replays it needs, by name; none for what the capture alone shows.
    queries: the queries of tables that it needs.
    beside: by the name of a further replay, the queries that are added if the run has that replay, too.
    sentence: makes the answer, with its numbers. Raises Unanswered where there is none.
    plots: make what shows the answer. Each raises Unplotted where there is nothing to be seen.
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
    """A function that makes an answer's table of the lanes of a replay, as the summary has it.

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
