"""A hash of a table's rows, which depends neither on their order nor on who wrote them."""

from __future__ import annotations

import hashlib
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from jobs.lake.table_address import table_path
from schemas.tables.gold import RUNS
from schemas.tables.gold_trends import TRENDS
from schemas.tables.silver import CAPTURES
from schemas.tables.table import Table

OF_THE_CODE = {
    CAPTURES.name: {CAPTURES.path, CAPTURES.decoder},
    RUNS.name: {RUNS.refetch_version, RUNS.replayed_by, RUNS.run_at},
    TRENDS.name: {TRENDS.replayed_by, TRENDS.run_at},
}
"""By table, the columns that depend on the code, the clock and the machine instead of the captures."""


def table_hash(lake: str, table: Table, identity: str) -> tuple[int, str]:
    """(number of rows, their SHA-256) of a capture set or run in a table; (0, "") if the table does not exist."""
    path = table_path(lake, table)
    if not DeltaTable.is_deltatable(path):
        return 0, ""
    rows = DeltaTable(path).to_pyarrow_table(filters=[(str(table.replaced_by), "=", identity)])
    return rows.num_rows, rows_hash(rows, table)


def rows_hash(rows: pa.Table, table: Table) -> str:
    """SHA-256 of the rows as sorted lines of text: numbers with all digits, maps sorted by key."""
    left_out = OF_THE_CODE.get(table.name, set())
    columns = [_texts(rows[name]) for name in table.columns if name not in left_out]
    lines = sorted("\x1f".join(cells) for cells in zip(*columns, strict=True))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _texts(column: pa.ChunkedArray[Any]) -> list[str]:
    if pa.types.is_nested(column.type):
        return [
            repr(sorted(value) if pa.types.is_map(column.type) and value else value) for value in column.to_pylist()
        ]
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    if pa.types.is_floating(column.type):
        return [repr(value) for value in column.to_pylist()]
    return ["\x00null" if value is None else value for value in column.cast(pa.string()).to_pylist()]
