"""Picks values and fields by row number, and numbers the rows of each parent."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from udfs.columns.arrays import Ints, Records, read_only
from udfs.kernels.kernel import kernel
from udfs.kernels.prefetch import prefetch_cells

ROWS_AT_ONCE = 64


def pick_values(values: Ints, rows: Ints, missing: int) -> Ints:
    """values[rows], with `missing` where the row is negative: int64[rows]."""
    picked = np.empty(len(rows), np.int64)
    _copy_picked(read_only(values), read_only(rows), missing, picked)
    return picked


@kernel
def _copy_picked(values: Ints, rows: Ints, missing: int, picked: Ints) -> None:
    for i in range(rows.size):
        picked[i] = values[rows[i]] if rows[i] >= 0 else missing


def pick_columns(table: Records, fields: Mapping[str, int], rows: Ints) -> dict[str, Ints]:
    """Fields of table[rows] as columns, int64[rows] each; all fields of the table are int64.

    fields: their names, each with the value that the column gets where the row is negative.
    """
    every = table.dtype.names or ()
    places = np.array([every.index(name) for name in fields], np.int64)
    columns = np.empty((len(fields), len(rows)), np.int64)
    cells = read_only(table.view(np.int64))
    missing = np.array(list(fields.values()), np.int64)
    _copy_picked_columns(cells, len(every), read_only(places), read_only(missing), read_only(rows), columns)
    return dict(zip(fields, columns, strict=True))


@kernel
def _copy_picked_columns(cells: Ints, width: int, fields: Ints, missing: Ints, rows: Ints, columns: Ints) -> None:
    # So few rows at a time that these and the next ones stay in the cache while one field after the other is read.
    for first in range(0, rows.size, ROWS_AT_ONCE):
        end = min(first + ROWS_AT_ONCE, rows.size)
        for i in range(end, min(end + ROWS_AT_ONCE, rows.size)):
            prefetch_cells(cells, max(rows[i], 0) * width, width)
        for place in range(fields.size):
            field, default = fields[place], missing[place]
            for i in range(first, end):
                columns[place, i] = cells[rows[i] * width + field] if rows[i] >= 0 else default


def position_among(parents: Ints) -> Ints:
    """The place of each row, from 0, among neighbouring rows with the same parent: int64[n]; parents: int64[n]."""
    index = np.arange(len(parents))
    begins = np.append(True, parents[1:] != parents[:-1])[: len(parents)]
    return index - np.maximum.accumulate(np.where(begins, index, 0))
