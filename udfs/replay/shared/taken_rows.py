"""Rows of several batches put into one, in any order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from udfs.columns.arrays import Bools, Ints
from udfs.columns.arrow_columns import arrow_array, arrow_array_over, unwritten_array
from udfs.replay.shared.columns import known_rows, numbers_of

TEXT = pa.dictionary(pa.int32(), pa.string())
"""The type of texts that are dealt: each text is kept once in a part."""
Part = tuple[Any, int]
"""A column of some rows, None if they lack it, and how many rows there are."""


def taken_rows(batches: Sequence[pa.RecordBatch], order: Ints, kinds: Mapping[str, pa.DataType]) -> pa.RecordBatch:
    """The rows of all batches in one, in this order. A column that a batch lacks is null in its rows.

    order: int64[rows], the row for each place, counted from the first batch on. kinds: the columns of the result and
    their types; texts are dictionary columns (TEXT). Arrow's `concat_arrays` and `take` are several times slower with
    nulls.
    """
    places = None if (order[1:] > order[:-1]).all() else order
    columns_of = [(dict(zip(batch.schema.names, batch.columns, strict=True)), batch.num_rows) for batch in batches]
    columns = []
    for name, kind in kinds.items():
        parts = [(cast_column(of[name], kind) if name in of else None, rows) for of, rows in columns_of]
        columns.append(_taken(parts, places, kind))
    return pa.RecordBatch.from_arrays(columns, names=list(kinds))


def cast_column(column: pa.Array[Any], kind: pa.DataType) -> pa.Array[Any]:
    """The column as one of this type."""
    return column if column.type == kind else column.cast(kind)


def _taken(parts: Sequence[Part], order: Ints | None, kind: pa.DataType) -> pa.Array[Any]:
    """The values of all parts in this order, as a column. order: int64[rows]; None if they are in order."""
    nulls: Any = pa.nulls
    if all(column is None or column.null_count == rows for column, rows in parts):
        return nulls(sum(rows for _, rows in parts), kind)
    if kind == TEXT:
        return _taken_texts(parts, order)
    if pa.types.is_integer(kind):
        values = _joined([_numbers(part, kind.to_pandas_dtype()) for part in parts], order)
        return arrow_array(values, _known(parts, order))
    if pa.types.is_boolean(kind):
        flags = _joined([_numbers(part, np.int8) for part in parts], order)
        bits = np.packbits(flags.view(np.bool_), bitorder="little")
        return arrow_array_over(kind, len(flags), bits, known=_known(parts, order))
    every: Any = pa.concat_arrays([nulls(rows, kind) if column is None else column for column, rows in parts])
    return every if order is None else every.take(arrow_array(order))


def _taken_texts(parts: Sequence[Part], order: Ints | None) -> pa.Array[Any]:
    dictionaries = [column.dictionary for column, _ in parts if column is not None]
    indices: list[Part] = [(None if column is None else column.indices, rows) for column, rows in parts]
    codes = [_numbers(part, np.int32) for part in indices]
    texts = dictionaries[0]
    if any(not dictionary.equals(texts) for dictionary in dictionaries[1:]):
        every = pa.concat_arrays(dictionaries).dictionary_encode()
        texts, code = every.dictionary, every.indices.to_numpy()
        first, coded = 0, list[npt.NDArray[Any]]()
        for (column, _), of_part in zip(parts, codes, strict=True):
            texts_of_part = 0 if column is None else len(column.dictionary)
            of_texts = code[first : first + texts_of_part]
            coded.append(of_texts.take(of_part, mode="clip") if texts_of_part else np.zeros(len(of_part), np.int32))
            first += texts_of_part
        codes = coded
    joined, known = _joined(codes, order), _known(indices, order)
    return pa.DictionaryArray.from_arrays(arrow_array(joined, known), texts, safe=False)


def _numbers(part: Part, dtype: Any) -> npt.NDArray[Any]:
    """A column of numbers or flags; 0 if the rows lack it. A null may be any number."""
    column, rows = part
    return np.zeros(rows, dtype) if column is None else numbers_of(column)


def _known(parts: Sequence[Part], order: Ints | None) -> Bools | None:
    """Where the columns are not null, bool[rows]; None if no value is null."""
    if all(column is not None and not column.null_count for column, _ in parts):
        return None
    return _joined(
        [np.zeros(rows, np.bool_) if column is None else known_rows(column) for column, rows in parts], order
    )


def _joined(parts: Sequence[npt.NDArray[Any]], order: Ints | None) -> npt.NDArray[Any]:
    """The values of all parts in this order."""
    rows = sum(map(len, parts))
    values = parts[0] if len(parts) == 1 else np.concatenate(parts, out=unwritten_array(rows, parts[0].dtype))
    # With "clip" the values go straight to where they belong. No place is out of bounds.
    return values if order is None else np.take(values, order, out=unwritten_array(rows, values.dtype), mode="clip")
