"""Columns of Arrow batches as the arrays that kernels take."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from udfs.columns.arrays import Bools, Ints, as_int64s

LARGEST_WIDTH = 1 << 31
"""With at most this many combinations of values, one more column can be added to their numbers without an overflow of
int64."""

LARGEST_TABLE = 1 << 16
"""With at most this many possible values, or as many as there are rows, a table of values is faster than sorting."""


def int_column(batch: pa.RecordBatch, column: str, missing: int) -> Ints:
    """A column of a batch, of numbers or flags, as int64[rows], `missing` where it is null."""
    numbers = as_int64s(numbers_of(batch[column]))
    return np.where(known_rows(batch[column]), numbers, missing) if batch[column].null_count else numbers


def numbers_of(column: pa.Array[Any]) -> npt.NDArray[np.integer[Any]]:
    """A column of numbers as a numpy array, without a copy for whole numbers; flags as int8. A null may be any number.

    Arrow's own functions take several times as long on columns with nulls.
    """
    kind: Any = column.type
    if pa.types.is_boolean(kind):
        return _bits(column, column.buffers()[1]).view(np.int8)
    if not pa.types.is_integer(kind):
        return numbers_of(column.cast(pa.int64()))
    every = np.frombuffer(memoryview(column.buffers()[1] or b""), kind.to_pandas_dtype())
    return every[column.offset : column.offset + len(column)]


def known_rows(column: pa.Array[Any]) -> Bools:
    """Where a column is not null: bool[rows]. Much faster than `is_not_null`; takes no column of type null."""
    return _bits(column, column.buffers()[0]) if column.null_count else np.ones(len(column), np.bool_)


def _bits(column: pa.Array[Any], bits: pa.Buffer | None) -> Bools:
    """The bits of a column's rows. bits: one for each row of the whole array that the column is a slice of."""
    first, end = column.offset, column.offset + len(column)
    packed = np.frombuffer(memoryview(bits or b""), np.uint8)[first // 8 : (end + 7) // 8]
    return np.unpackbits(packed, bitorder="little")[first % 8 :][: len(column)].view(np.bool_)


def values_differ(column: pa.Array[Any]) -> Bools:
    """Which values of a column of whole numbers, flags or texts differ from the one before: bool[rows - 1]."""
    if not pa.types.is_integer(column.type) and not pa.types.is_boolean(column.type):
        coded: Any = column if isinstance(column, pa.DictionaryArray) else column.dictionary_encode()
        column = coded.indices
    values = numbers_of(column)
    if not column.null_count:
        return values[1:] != values[:-1]
    known = known_rows(column)
    return (known[1:] != known[:-1]) | (known[1:] & known[:-1] & (values[1:] != values[:-1]))


def codes_of(column: pa.Array[Any]) -> tuple[Ints, int]:
    """(a number from 0 on for each row of a column, the same for the same value: int64[rows]; a bound above them)."""
    if pa.types.is_integer(column.type) and not column.null_count:
        numbers = column.to_numpy(zero_copy_only=False).astype(np.int64)
        least = int(numbers.min(initial=0))
        span = int(numbers.max(initial=0)) - least + 1
        if span <= 1 << 31:
            return numbers - least, span
    coded: Any = column if isinstance(column, pa.DictionaryArray) else column.dictionary_encode()
    indices = coded.indices.fill_null(len(coded.dictionary)) if coded.null_count else coded.indices
    return indices.to_numpy(zero_copy_only=False).astype(np.int64), len(coded.dictionary) + 1


def rows_alike(rows: int, *columns: pa.Array[Any]) -> tuple[Ints, Ints]:
    """(a number from 0 on for each row, the same for rows with equal values in all of these columns: int64[rows]; the
    first row of each number).

    rows: how many rows there are. Without columns all of them are equal.
    """
    number, width = np.zeros(rows, np.int64), 1
    for column in columns:
        codes, count = codes_of(column)
        number, width = number * count + codes, width * count
        if width > LARGEST_WIDTH:
            number = np.unique(number, return_inverse=True)[1].astype(np.int64)
            width = int(number.max(initial=0)) + 1
    return distinct_codes(number, width)


def distinct_codes(code: Ints, width: int) -> tuple[Ints, Ints]:
    """(the rank of each row's code among the distinct codes, int64[rows]; the first row of each distinct code). code:
    int64[rows], from 0 on and below `width`.
    """
    if width > max(LARGEST_TABLE, len(code)):
        _, first, number = np.unique(code, return_index=True, return_inverse=True)
        return number.astype(np.int64), first
    first_row = np.full(width, -1)
    first_row[code[::-1]] = np.arange(len(code))[::-1]  # of several rows with a code, the last one written stays
    distinct = np.flatnonzero(first_row >= 0)
    number = np.zeros(width, np.int64)
    number[distinct] = np.arange(len(distinct))
    return number[code], first_row[distinct]
