"""Rows so few that the driver and a page can hold them, however many there are, with how many there are in all."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F

from schemas.tables.table import Table

IN_ALL = "in_all"


def first_rows(rows: DataFrame, most: int, *order: Column | str) -> DataFrame:
    """The first rows in an order, each with the number of all as `in_all`."""
    in_all = rows.agg(F.count("*").alias(IN_ALL))
    return rows.orderBy(*order).limit(most).crossJoin(F.broadcast(in_all)).orderBy(*order)


def first_of_each(rows: DataFrame, of: str, most: int, *order: Column | str) -> DataFrame:
    """The first rows of each value of a column, each with the number of all that have it as `in_all`."""
    alike = Window.partitionBy(of)
    numbered = rows.withColumn(IN_ALL, F.count("*").over(alike)).withColumn(
        "place", F.row_number().over(alike.orderBy(*order))
    )
    return numbered.where(F.col("place") <= most).drop("place").orderBy(of, *order)


def and_more(rows: Sequence[Row], table: Table) -> tuple[str, ...]:
    """A table's note on the rows that are left out; none where all are there."""
    left_out = rows[0][IN_ALL] - len(rows) if rows else 0
    return (f"And {left_out:,} more, which {table.layer}/{table.name} has.",) if left_out else ()


def first_lanes(shown: int, in_all: int) -> str:
    """What a plot says of the lanes that it has no room for."""
    return f", the first {shown:,} of {in_all:,} lanes" if shown < in_all else ""
