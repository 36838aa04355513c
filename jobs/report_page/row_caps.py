"""Takes few enough rows for the driver and a page to hold, and notes with them how many there are in all."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F

from schemas.tables.table import Table

IN_ALL = "in_all"


def first_rows(rows: DataFrame, most: int, *order: Column | str) -> DataFrame:
    """The first `most` rows in an order, each with the number of all rows as `in_all`. order: the last is a column."""
    # All rows are one group, in one task. For a window without groups, or a constant one, Spark would log a warning.
    everything = Window.partitionBy(F.pmod(F.hash(order[-1]), F.lit(1)))
    return rows.withColumn(IN_ALL, F.count("*").over(everything)).orderBy(*order).limit(most)


def first_rows_of_each(rows: DataFrame, column: str, most: int, *order: Column | str) -> DataFrame:
    """The first `most` rows of each value of a column, each with the number of all rows of that value as `in_all`."""
    alike = Window.partitionBy(column)
    numbered = rows.withColumn(IN_ALL, F.count("*").over(alike)).withColumn(
        "place", F.row_number().over(alike.orderBy(*order))
    )
    return numbered.where(F.col("place") <= most).drop("place").orderBy(column, *order)


def left_out_note(rows: Sequence[Row], table: Table) -> tuple[str, ...]:
    """A table's note on the rows that are left out; none if all are there."""
    left_out = rows[0][IN_ALL] - len(rows) if rows else 0
    return (f"And {left_out:,} more, which {table.layer}/{table.name} has.",) if left_out else ()


def first_lanes_note(count: int, in_all: int) -> str:
    """What a plot says about the lanes that it has no room for."""
    return f", the first {count:,} of {in_all:,} lanes" if count < in_all else ""
