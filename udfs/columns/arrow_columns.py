"""Converts numpy arrays into Arrow arrays and back. `compute` is pyarrow.compute without its stubs, because these allow
neither plain values nor numpy arrays as arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from udfs.columns.arrays import Bools, Bytes, Ints

compute: Any = pyarrow.compute


def arrow_array(values: npt.NDArray[np.generic], known: Bools | None = None) -> pa.Array[Any]:
    """The values as an Arrow array, null where not `known`, bool[n]."""
    if known is None or values.dtype == np.bool_:  # Arrow stores each bool as a bit
        make: Any = pa.array
        return make(values, mask=None if known is None else ~known)
    return arrow_array_over(pa.from_numpy_dtype(values.dtype), len(values), values, known=known)


def quotient_column(part: npt.NDArray[Any], whole: npt.NDArray[Any]) -> pa.Array[Any]:
    """part / whole as a column of doubles, null where the whole is 0. part, whole: counts of any number type, [n]."""
    return arrow_array(part / np.maximum(whole, 1), whole > 0)


def unwritten_array(rows: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """dtype[rows] with arbitrary content, in memory of Arrow's pool: for large arrays that are made again and again.

    The pool keeps memory that is freed. malloc gives blocks of 32 MiB and more back to the system at once, and getting
    new memory from the system costs as much as the work on it.
    """
    kind = np.dtype(dtype)
    return np.frombuffer(memoryview(pa.allocate_buffer(rows * kind.itemsize)), kind)


def arrow_array_over(
    kind: pa.DataType, rows: int, *buffers: npt.NDArray[np.generic], known: Bools | None = None
) -> pa.Array[Any]:
    """An Arrow array over numpy buffers, null where not `known`, bool[rows].

    `pa.array` would import pandas, which takes a second in each worker.
    """
    is_known = None if known is None else pa.py_buffer(np.packbits(known, bitorder="little").data)
    content = (pa.py_buffer(np.ascontiguousarray(buffer).data) for buffer in buffers)
    return pa.Array.from_buffers(kind, rows, [is_known, *content])


def binary_column(raw: Bytes, offsets: Ints) -> pa.Array[Any]:
    """A binary column over bytes that are not copied: value i is raw[offsets[i] : offsets[i + 1]].

    raw: uint8. offsets: int64[n + 1], below 2^31.
    """
    return arrow_array_over(pa.binary(), len(offsets) - 1, offsets.astype(np.int32), raw)


def dictionary_column(texts: pa.Array[Any], codes: npt.NDArray[np.integer[Any]]) -> pa.Array[Any]:
    """The column texts[codes], with each text stored once as a dictionary column, or plain if that takes less room.

    codes: int[n], which of the texts each row has, none below 0.
    """
    if len(texts) > len(codes):
        return texts.take(codes)
    return pa.DictionaryArray.from_arrays(codes.astype(np.int32), texts)


def repeated_text_column(text: str, rows: int) -> pa.Array[Any]:
    """A dictionary column with the same text in each row, stored once; `pa.repeat` makes a plain column."""
    return dictionary_column(pa.array([text], pa.string()), np.zeros(rows, np.int32))


def text_column(raw: Bytes, offsets: Ints) -> pa.Array[Any]:
    """A column of texts over bytes that are not copied: text i is raw[offsets[i] : offsets[i + 1]].

    The arguments are those of `binary_column`; the bytes must be UTF-8.
    """
    return arrow_array_over(pa.string(), len(offsets) - 1, offsets.astype(np.int32), raw)


def offsets_and_bytes(column: pa.Array[Any]) -> tuple[Ints, Bytes]:
    """A string or binary column as (int64[n + 1] offsets, the bytes they refer to, not copied); a null is empty."""
    _, ends, content = column.buffers()
    if not len(column):
        return np.zeros(1, np.int64), np.zeros(0, np.uint8)
    offsets = np.frombuffer(memoryview(ends or b""), np.int32)[column.offset : column.offset + len(column) + 1]
    return offsets.astype(np.int64), np.frombuffer(memoryview(content or b""), np.uint8)


def offsets_and_values(column: Any) -> tuple[Ints, Ints]:
    """A list column of whole numbers without nulls as (int64[n + 1] offsets that begin with 0, int64 values)."""
    offsets, values = column.offsets.to_numpy().astype(np.int64), column.flatten().to_numpy(zero_copy_only=False)
    return offsets - offsets[0], values.astype(np.int64, copy=False)


def bool_values(column: pa.Array[Any]) -> Bools:
    """A boolean column without nulls as bool[n]."""
    return column.to_numpy(zero_copy_only=False)


def us_since_1970(times: Any) -> Any:
    """A column of times, an Array or a ChunkedArray, as microseconds since 1970: int64[n]."""
    return times.cast(pa.int64())


def is_not_null(column: pa.Array[Any]) -> Bools:
    """Where a column of any type is not null: bool[n]."""
    return bool_values(column.is_valid())


def concatenate_batches(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """The rows of all batches in one batch. There must be at least one batch, and all must have the same schema."""
    if len(batches) == 1:
        return batches[0]
    columns = [pa.concat_arrays(parts) for parts in zip(*(batch.columns for batch in batches), strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=batches[0].schema)


def gather_batches(batches: Iterable[pa.RecordBatch], rows: int, size: int | None = None) -> Iterator[pa.RecordBatch]:
    """Join batches until they have `rows` rows or `size` bytes; no result is empty."""
    waiting: list[pa.RecordBatch] = []
    n = waiting_bytes = 0
    for batch in batches:
        waiting.append(batch)
        n, waiting_bytes = n + batch.num_rows, waiting_bytes + batch.nbytes
        if n >= rows or (size is not None and waiting_bytes >= size):
            yield concatenate_batches(waiting)
            waiting, n, waiting_bytes = [], 0, 0
    if n:
        yield concatenate_batches(waiting)
