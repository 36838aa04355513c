"""Rows of a table without content. The warm-up runs kernels on them, so that the kernels are compiled."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from schemas.tables.table import Table
from udfs.columns.arrays import Ints
from udfs.facts.arrow_tables import TYPES, make_rows


def blank_rows(table: Table, rows: int, **columns: Ints | pa.Array[Any]) -> pa.RecordBatch:
    """Rows of a table whose columns are zero, true or empty, except for those given."""
    values: dict[str, object] = {"string": "", "binary": b"", "boolean": True}
    filled: dict[str, pa.Array[Any] | Ints] = {
        str(c): pa.array([values.get(c.type, [] if "<" in c.type else 0)] * rows, TYPES[c.type])
        for c in table.columns
        if c not in columns
    }
    return make_rows(table, {**filled, **columns})
