"""Makes Arrow columns of whole numbers and times. One pass picks rows, narrows values and marks nulls."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from udfs.columns.arrays import Bools, Bytes, Ints, as_int64s, read_only
from udfs.columns.arrow_columns import unwritten_array
from udfs.columns.sentinels import UNKNOWN
from udfs.kernels.kernel import kernel
from udfs.wire.primitives import cell

_BITS = 8
_EVERY_ROW, _ALL_KNOWN = np.zeros(0, np.int64), np.zeros(0, np.bool_)


class Picked(NamedTuple):
    """A column of values[rows], or of all values if no rows are given.

    It is null if the row is negative, the value is UNKNOWN, or `known` is false. values: int64[m]. rows: int64[n].
    known: bool[n], for the picked rows; None if all are known.
    """

    values: Ints
    rows: Ints | None = None
    known: Bools | None = None

    @property
    def rows_picked(self) -> int:
        """How many rows the column has."""
        return len(self.values) if self.rows is None else len(self.rows)

    def of_type(self, kind: pa.DataType) -> pa.Array[Any]:
        """The column as whole numbers of a type, or as times in the unit of the values.

        Raises OverflowError for a value that the type cannot hold.
        """
        n = self.rows_picked
        cells, validity = (
            unwritten_array(n, f"i{kind.bit_width // _BITS}"),
            unwritten_array((n + _BITS - 1) // _BITS, np.uint8),
        )
        nulls = _write_cells(
            read_only(as_int64s(self.values)),
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
    """Write cells and validity bits; returns how many are null, or -1 if a value does not fit its cell."""
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
