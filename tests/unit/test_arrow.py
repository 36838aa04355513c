"""Arrow arrays and batches as the passes over rows need them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from udfs.columns.arrow_columns import gather_batches, quotient_column


@pytest.mark.parametrize("most", [1, 7, 10_000])
@pytest.mark.parametrize("rows", [1, 10, 99, 101])
def test_gathered_batches_have_the_same_rows_and_at_least_the_wanted_number_each(most: int, rows: int) -> None:
    table = pa.table({"number": range(100), "name": [f"n{number}" for number in range(100)]})
    empty = table.schema.empty_table().to_batches()
    found = list(gather_batches([*empty, *table.to_batches(max_chunksize=most), *empty], rows))
    assert pa.Table.from_batches(found) == table
    assert all(batch.num_rows >= rows for batch in found[:-1])
    assert all(batch.num_rows < rows + most for batch in found)
    assert found[-1].num_rows


def test_without_batches_nothing_is_gathered() -> None:
    assert list(gather_batches([], 10)) == []


def test_a_quotient_is_null_if_the_whole_is_0() -> None:
    assert quotient_column(np.array([1, 0]), np.array([4, 0])).to_pylist() == [0.25, None]
