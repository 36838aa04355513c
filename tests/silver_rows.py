"""Rows of silver tables as replays read them, and the order in which tasks take them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from schemas.tables.table import Table
from tests.gate_rows import TIME, Row, whole
from udfs.replay.shared.dealing import deal, with_texts_once
from udfs.replay.shared.dealt_rows import DEALT, Step
from udfs.replay.shared.parts_in_order import rows_in_order

TIME_US = int(TIME.timestamp() * 1_000_000)
"""TIME in microseconds since 1970, as in events."""
ALL_ROWS = 10_000


def row_of(table: Table, **columns: Any) -> Row:
    """A row with these values. The other nullable columns are null; columns that cannot be null are left to `whole`."""
    return {str(column): None for column in table.columns if column.nullable} | columns


def small_rows(table: Table, columns: Sequence[str], rows: Iterable[Row]) -> pa.Table:
    """These columns of a small table, as the driver reads them."""
    return whole(table, rows).select(list(columns))


def silver_rows(
    table: Table, columns: Sequence[str], rows: Iterable[Row], batch_rows: int = ALL_ROWS
) -> list[pa.RecordBatch]:
    """These columns of a table in batches of at most `batch_rows` rows, as a task reads them."""
    read = small_rows(table, columns, rows)
    parts = [read.slice(first, batch_rows) for first in range(0, max(read.num_rows, 1), batch_rows)]
    return [with_texts_once(batch) for part in parts for batch in part.to_batches() or [_no_rows(part)]]


def _no_rows(table: pa.Table) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=table.schema)


def plain(batches: Iterable[pa.RecordBatch]) -> list[Row]:
    """The rows of all batches, in order."""
    return [row for batch in batches for row in batch.to_pylist()]


def in_turn(batches: Iterable[pa.RecordBatch], step: Step) -> list[pa.RecordBatch]:
    """Rows of the step's table in the order in which a single task takes them."""
    parts = plain(deal(batches, step, 1))
    parts.sort(key=lambda part: (part["unit"], part["first"]))  # as Spark does
    return list(rows_in_order([pa.RecordBatch.from_pylist([part], schema=DEALT) for part in parts], step))
