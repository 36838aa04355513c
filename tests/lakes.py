"""Reading and writing a lake's tables by delta-rs, which starts no JVM: a table takes milliseconds.

tests/spark/test_packed_tables.py checks that Spark's Delta finds the same rows in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from jobs.lake.table_address import table_path
from schemas.tables.table import Table

Row = tuple[Any, ...]


def queried(lake: str, table: Table, *columns: str, where: str = "true") -> list[dict[str, Any]]:
    """Rows of a table as dicts; with all columns if none is named. where: a condition in SQL."""
    names = ", ".join(f'"{column}"' for column in columns or table.columns)
    asked = QueryBuilder().register("t", DeltaTable(table_path(lake, table)))
    return pa.table(asked.execute(f"SELECT {names} FROM t WHERE {where}")).to_pylist()  # noqa: S608 - tests' own words


def table_rows(lake: str, table: Table, *, without: Iterable[str] = ()) -> list[Row]:
    """Every row of a table, sorted by its key, without some columns. Fails if two rows have the same key."""
    return rows_by_key(table, queried(lake, table), without=without)


def rows_by_key(table: Table, rows: Iterable[Mapping[str, Any]], *, without: Iterable[str] = ()) -> list[Row]:
    """The same as `table_rows`, for rows that are given."""
    rows = sorted(rows, key=lambda row: key_of(table, row))
    keys = [key_of(table, row) for row in rows]
    assert len(set(keys)) == len(keys), f"the key of {table.name} names one row"
    left_out = set(without)
    return [tuple(_plain(row[column]) for column in table.columns if column not in left_out) for row in rows]


def key_of(table: Table, row: Mapping[str, Any]) -> Row:
    """The row's key, for sorting: nulls come first."""
    return tuple((row[column] is not None, row[column]) for column in table.key)


def lake_rows(lake: str, tables: Iterable[Table]) -> dict[str, list[Row]]:
    """The rows of several tables, by name of table."""
    return {table.name: table_rows(lake, table) for table in tables}


def plant(lake: str, table: Table, rows: pa.Table) -> None:
    """Make a table with these rows."""
    path = Path(table_path(lake, table))
    path.mkdir(parents=True)
    write_deltalake(path, rows, partition_by=[str(table.replaced_by)])


def _plain(value: Any) -> Any:
    """The value; for a map, its pairs sorted, since delta-rs gives a list of pairs in no order."""
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return sorted(value)
    return value
