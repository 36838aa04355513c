"""Reading a lake's tables so that two lakes can be compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import SparkSession

from jobs.lake import read_table
from schemas.tables.table import Table

Row = tuple[Any, ...]


def table_rows(spark: SparkSession, lake: str, table: Table, *, without: Iterable[str] = ()) -> list[Row]:
    """Every row of a table, in the order of its key, without some columns; the key is seen to be one."""
    rows = sorted(read_table(spark, lake, table).toArrow().to_pylist(), key=lambda row: key_of(table, row))
    keys = [key_of(table, row) for row in rows]
    assert len(set(keys)) == len(keys), f"the key of {table.name} names one row"
    left_out = set(without)
    return [tuple(_plain(row[column]) for column in table.columns if column not in left_out) for row in rows]


def key_of(table: Table, row: Mapping[str, Any]) -> Row:
    """The row's key; nulls before all else."""
    return tuple((row[column] is not None, row[column]) for column in table.key)


def lake_rows(spark: SparkSession, lake: str, tables: Iterable[Table]) -> dict[str, list[Row]]:
    """The rows of several tables by name."""
    return {table.name: table_rows(spark, lake, table) for table in tables}


def _plain(value: Any) -> Any:
    """Maps come as lists of pairs in no order."""
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return sorted(value)
    return value
