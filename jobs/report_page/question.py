"""What a question of the report is made of: data that says what it needs, and functions of rows that answer it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pyspark.sql import DataFrame, Row

from jobs.replays.algorithm import OwnRows
from jobs.scenarios.settings import Value
from jobs.screen import Grid

Query = Callable[[OwnRows], DataFrame]
"""What to ask of the tables: a frame of so few rows that the driver can hold them, however large the capture."""

Scale = Literal["bytes", "ms", "percent", "count", "ratio", "name"]
"""What an axis measures, which says how its ticks are written. Percent values are shares from 0 to 1."""


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

    rows: one a mark; bars of a histogram, which has x in doublings, end at `until`.
    rule: a value of x to draw a line at, and what it is.
    """

    says: str
    mark: Literal["line", "step", "bar", "grouped", "point", "heat"]
    rows: Sequence[Mapping[str, object]]
    x: Axis
    y: Axis
    colour: Axis | None = None
    rule: tuple[float, str] | None = None


@dataclass(frozen=True)
class Findings:
    """What the tables hold of a run.

    rows: by query, its rows.
    lanes: by algorithm that was replayed, its lanes in order.
    refused: by algorithm that was asked for and not replayed, why.
    captured: by setting, the value in force that the run took.
    """

    rows: Mapping[Query, list[Row]]
    lanes: Mapping[str, Sequence[str]]
    refused: Mapping[str, str]
    captured: Mapping[str, Value]

    def of(self, query: Query) -> list[Row]:
        """The rows of a query; none where it was not asked, for its replay was not made."""
        return self.rows.get(query, [])


@dataclass(frozen=True)
class Question:
    """One of the report's questions.

    algorithms: the replays it needs, by name; none for what the capture alone tells.
    queries: what is asked of the tables.
    beside: by further replay what is asked where this is there too; the answer does without where it is not.
    sentence: the answer, with its numbers; Unanswered is raised where there is none.
    trust: metrics of `fidelity`, of these algorithms, that say how far the answer can be trusted.
    """

    number: int
    text: str
    about: str
    algorithms: tuple[str, ...]
    queries: tuple[Query, ...]
    sentence: Callable[[Findings], str]
    plot: Callable[[Findings], Plot | None]
    table: Callable[[Findings], Grid]
    trust: tuple[str, ...] = ()
    beside: Mapping[str, tuple[Query, ...]] = field(default_factory=dict)
    is_proposal: bool = False


class Unanswered(Exception):  # noqa: N818 - it is no error: the report says why there is no answer
    """This capture or run does not answer the question; the text says why, and what to do, in one sentence."""
