"""Columns of whole numbers and times as Arrow has them, made in one pass: rows picked, cells narrowed, nulls noted."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from udfs.capture.segments import UNKNOWN
from udfs.columns.arrays import Bools, Bytes, Ints, int64s, read_only
from udfs.columns.arrow_columns import unwritten
from udfs.kernels.kernel import kernel
from udfs.wire.primitives import cell

_BITS = 8
_EVERY_ROW, _ALL_KNOWN = np.zeros(0, np.int64), np.zeros(0, np.bool_)


class Picked(NamedTuple):
    """values[rows], or all values: null where the row is negative, the value UNKNOWN, or the row not `known`.

    values: int64[m]; rows: int64[n]; known: bool[n], of the rows that are picked.
    """

    values: Ints
    rows: Ints | None = None
    known: Bools | None = None

    @property
    def rows_picked(self) -> int:
        """How many rows there are."""
        return len(self.values) if self.rows is None else len(self.rows)

    def of_type(self, kind: pa.DataType) -> pa.Array[Any]:
        """As a column of whole numbers, or of times whose unit the values have. Raises OverflowError for a value that
        the type cannot hold.
        """
        n = self.rows_picked
        cells, validity = unwritten(n, f"i{kind.bit_width // _BITS}"), unwritten((n + _BITS - 1) // _BITS, np.uint8)
        nulls = _write_cells(
            read_only(int64s(self.values)),
            read_only(_EVERY_ROW if self.rows is None else self.rows),
            read_only(_ALL_KNOWN if self.known is None else self.known),
            cells,
            validity,
        )
        if nulls < 0:
            raise OverflowError(f"a value is beyond {kind}")
        return pa.Array.from_buffers(
            kind, n, [pa.py_buffer(validity.data) if nulls else None, pa.py_buffer(cells.data)], nulls
        )


@kernel
def _write_cells(values: Ints, rows: Ints, known: Bools, cells: Any, valid: Bytes) -> int:
    """Write cells and validity bits; returns how many are null, -1 where a value does not fit."""
    nulls = misfits = 0
    for byte in range(valid.size):
        bits = 0
        for place in range(min(_BITS, cells.size - byte * _BITS)):
            i = byte * _BITS + place
            row = rows[i] if rows.size > 0 else i
            value = cell(values, row) if row >= 0 else UNKNOWN
            is_null = value == UNKNOWN or (known.size > 0 and not known[np.uint64(i)])
            cells[np.uint64(i)] = np.int64(0 if is_null else value)
            misfits |= 0 if is_null else cell(cells, i) ^ value
            nulls += is_null
            bits |= (not is_null) << place
        valid[byte] = bits
    return -1 if misfits else nulls
