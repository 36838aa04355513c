"""DuckDB and Polars find the rows in a lake's tables that delta-rs finds; tests/spark/test_packed_tables.py says that
Spark does.
"""

from __future__ import annotations

from collections.abc import Callable

import duckdb
import polars
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from jobs.lake.table_address import table_path
from schemas.tables.gold import GOLD
from schemas.tables.silver import SILVER
from tests.e2e.conftest import CapturedLake
from tests.lakes import rows_by_key, table_rows
from udfs.facts.arrow_tables import arrow_schema


def by_duckdb(path: str) -> pa.Table:
    rows = DeltaTable(path).to_pyarrow_dataset()
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        return connection.register("rows", rows).sql("SELECT * FROM rows").to_arrow_table()


def by_polars(path: str) -> pa.Table:
    return polars.read_delta(path, use_pyarrow=True).to_arrow()


@pytest.mark.parametrize("read", [by_duckdb, by_polars])
def test_every_table_has_the_same_rows_whoever_reads_it(
    captured: Callable[[str], CapturedLake], read: Callable[[str], pa.Table]
) -> None:
    """Readers have types of their own for maps and times, which become the declared ones."""
    lake = captured("admin").path
    tables = [table for table in (*SILVER, *GOLD) if DeltaTable.is_deltatable(table_path(lake, table))]
    assert len(tables) > 20
    for table in tables:
        rows = read(table_path(lake, table)).select([*table.columns]).cast(arrow_schema(table))
        assert rows_by_key(table, rows.to_pylist()) == table_rows(lake, table), table.name
