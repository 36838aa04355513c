"""Columns of Arrow batches as the arrays that kernels take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from udfs.columns.arrays import Ints


def int_column(batch: pa.RecordBatch, column: str, missing: int) -> Ints:
    """A column of numbers or flags as int64[rows], `missing` where it is null."""
    # Where there is nothing to be done, Arrow's functions take longer to find that out than all else here.
    numbers: pa.Array[Any] = batch[column]
    numbers = numbers if numbers.type == pa.int64() else numbers.cast(pa.int64())
    return (numbers.fill_null(missing) if numbers.null_count else numbers).to_numpy(zero_copy_only=False)


def codes_of(column: pa.Array[Any]) -> tuple[Ints, int]:
    """(a number from 0 on for each row's value, the same for the same value; how many numbers there may be)."""
    if pa.types.is_integer(column.type) and not column.null_count:
        numbers = column.to_numpy(zero_copy_only=False).astype(np.int64)
        least = int(numbers.min(initial=0))
        span = int(numbers.max(initial=0)) - least + 1
        if span <= 1 << 31:
            return numbers - least, span
    coded: Any = column if isinstance(column, pa.DictionaryArray) else column.dictionary_encode()
    indices = coded.indices.fill_null(len(coded.dictionary)) if coded.null_count else coded.indices
    return indices.to_numpy(zero_copy_only=False).astype(np.int64), len(coded.dictionary) + 1
