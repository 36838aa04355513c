"""Figures as rows in Spark, one for each scope and metric, because a run may have any number of clients and topics."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from jobs.comparison.figures import Change, Figure
from jobs.report_page.row_caps import IN_ALL, first_rows_of_each

KIND, SCOPE, METRIC = "kind", "scope", "metric"
NUMBERS = ("value", "low", "high", "cases", "text")
SIDES = ("before", "after")
MOST_OF_A_METRIC = 100
"""How many changes of one metric come to the driver at most, from each of three groups: figures that both runs have,
new ones, and gone ones. They are the largest of their group."""


@dataclass(frozen=True)
class Columns:
    """The columns of a figure: a value with its range or its number of cases, or a text."""

    value: Column | None = None
    low: Column | None = None
    high: Column | None = None
    cases: Column | None = None
    text: Column | None = None

    def struct(self, metric: str) -> Column:
        """The figure as one column."""
        none = F.lit(None)
        value, low, high = (
            (none if column is None else column).cast("double") for column in (self.value, self.low, self.high)
        )
        cases, text = ((none if column is None else column) for column in (self.cases, self.text))
        parts = (value, low, high, cases.cast("bigint"), text.cast("string"))
        named = (part.alias(name) for part, name in zip(parts, NUMBERS, strict=True))
        return F.struct(F.lit(metric).alias(METRIC), *named)


def share_columns(part: Column, cases: Column) -> Columns:
    """The columns of a share: `part` out of `cases`. If there are no cases, there is no figure."""
    return Columns(value=F.when(cases > 0, part / cases), cases=cases)


def figure_rows(rows: DataFrame, kind: str, scope: Column | str, figures: Mapping[str, Columns]) -> DataFrame:
    """Rows (kind, scope, metric, *NUMBERS) of the figures in `rows`, which has one row for each scope.

    scope: the column with the scope's name. figures: the columns of each metric's figure. A figure without value and
    text gives no row.
    """
    name = F.col(scope) if isinstance(scope, str) else scope
    all_of = F.array(*(columns.struct(metric) for metric, columns in figures.items()))
    made = rows.select(F.lit(kind).alias(KIND), F.coalesce(name, F.lit("")).alias(SCOPE), F.inline(all_of))
    return made.where(F.col("value").isNotNull() | F.col("text").isNotNull())


def side_by_side_rows(before: DataFrame, after: DataFrame, lone: Collection[str] = ()) -> DataFrame:
    """The figures that differ between two runs, one row each, with the structs `before` and `after`.

    before, after: rows of `figure_rows`. lone: for these metrics a figure that only one run has is also a difference.
    Each kind and metric has at most MOST_OF_A_METRIC differences, the largest ones, from each of three groups: figures
    of both runs, of the first run only, of the second run only. `in_all` is the size of the whole group.
    """
    key = [KIND, SCOPE, METRIC]
    sides = [
        rows.select(*key, F.struct(*NUMBERS).alias(side)) for rows, side in zip((before, after), SIDES, strict=True)
    ]
    both = sides[0].join(sides[1], key, "full_outer")
    was, now = (F.col(side) for side in SIDES)
    differs = ~(was["value"].eqNullSafe(now["value"]) & was["text"].eqNullSafe(now["text"]))
    distance = F.abs(F.coalesce(now["value"], F.lit(0.0)) - F.coalesce(was["value"], F.lit(0.0)))
    group = F.concat_ws("/", KIND, METRIC, was.isNull().cast("string"), now.isNull().cast("string"))
    may_be_alone = F.col(METRIC).isin(*lone) if lone else F.lit(False)
    differing = both.where(differs & ((was.isNotNull() & now.isNotNull()) | may_be_alone))
    differing = differing.withColumns({"group": group, "distance": distance})
    return first_rows_of_each(differing, "group", MOST_OF_A_METRIC, F.desc("distance"), SCOPE)


def change_in_row(row: Row, part: str) -> Change:
    """The change in a row of `side_by_side_rows`."""
    before, after = (None if row[side] is None else Figure(**row[side].asDict()) for side in SIDES)
    return Change(part, row[KIND], row[SCOPE], row[METRIC], before, after)


def number_left_out(rows: Sequence[Row]) -> int:
    """How many changes `side_by_side_rows` has left out of these rows, since it returns only the largest ones."""
    groups = {row["group"]: row[IN_ALL] for row in rows}
    return sum(groups.values()) - len(rows)
