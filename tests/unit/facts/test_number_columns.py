"""Columns of whole numbers: rows are picked, values narrowed, and unknown ones null."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from udfs.columns.sentinels import UNKNOWN
from udfs.facts.number_columns import Picked

VALUES = np.array([10, UNKNOWN, -30])


@pytest.mark.parametrize("kind", [pa.int8(), pa.int16(), pa.int32(), pa.int64()], ids=str)
def test_numbers_have_the_width_of_the_type(kind: pa.DataType) -> None:
    assert Picked(VALUES).of_type(kind) == pa.array([10, None, -30], kind)


def test_times_keep_their_unit() -> None:
    kind = pa.timestamp("us", "UTC")
    assert Picked(np.array([1_500_000])).of_type(kind) == pa.array([1_500_000], pa.int64()).cast(kind)


def test_a_row_that_is_not_there_is_null() -> None:
    rows = np.array([2, -1, 0, 1, 2])
    assert Picked(VALUES, rows).of_type(pa.int32()).to_pylist() == [-30, None, 10, None, -30]


def test_known_has_a_value_for_each_picked_row() -> None:
    known = np.array([True, False, True])
    assert Picked(VALUES, np.array([0, 0, 2]), known).of_type(pa.int32()).to_pylist() == [10, None, -30]


@pytest.mark.parametrize(("kind", "value"), [(pa.int8(), 128), (pa.int16(), -32_769), (pa.int32(), 2**31)], ids=str)
def test_a_number_that_does_not_fit_is_refused(kind: pa.DataType, value: int) -> None:
    with pytest.raises(OverflowError, match=str(kind)):
        Picked(np.array([0, value])).of_type(kind)


@given(values=st.lists(st.sampled_from([UNKNOWN, -1, 0, 7]), max_size=40), data=st.data())
def test_rows_are_picked_as_a_plain_loop_would(values: list[int], data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.integers(-1, len(values) - 1), max_size=40))
    known = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    expected = [
        values[row] if is_known and row >= 0 and values[row] != UNKNOWN else None
        for row, is_known in zip(rows, known, strict=True)
    ]
    arrays = np.array(values, np.int64), np.array(rows, np.int64), np.array(known, np.bool_)
    picked = Picked(*arrays).of_type(pa.int16())
    picked.validate(full=True)
    assert picked.to_pylist() == expected
