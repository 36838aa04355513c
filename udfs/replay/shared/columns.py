"""Columns of Arrow batches as the arrays that kernels take."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from udfs.columns.arrays import Ints


def int_column(batch: pa.RecordBatch, column: str, missing: int) -> Ints:
    """A column of numbers or flags as int64[rows], `missing` where it is null."""
    # Where there is nothing to be done, Arrow's functions take longer to find that out than all else here.
    numbers: pa.Array[Any] = batch[column]
    numbers = numbers if numbers.type == pa.int64() else numbers.cast(pa.int64())
    return (numbers.fill_null(missing) if numbers.null_count else numbers).to_numpy(zero_copy_only=False)
