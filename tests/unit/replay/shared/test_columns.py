"""Rows that are alike in several columns."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from udfs.replay.shared.columns import rows_alike, values_differ
from udfs.replay.shared.silver_columns import row_hash

LARGEST = (1 << 31) - 1


def test_rows_are_alike_if_all_columns_have_the_same_value_and_null_is_a_value() -> None:
    name = pa.array(["a", "b", "a", None, None]).dictionary_encode()
    number, first = rows_alike(5, name, pa.array([1, 1, 1, 1, 1]))
    assert number[0] == number[2]
    assert number[3] == number[4]
    assert len(set(number.tolist())) == 3
    assert [number[row] for row in first] == [0, 1, 2]


def test_however_far_apart_values_are_no_two_rows_become_alike() -> None:
    """1 << 25, multiplied by the number of values that the other two columns can have, is 0 in 64 bits."""
    columns = [0, 1 << 25, LARGEST], [0, 0, 255], [0, 0, LARGEST]
    number, _ = rows_alike(3, *(pa.array(values, pa.int64()) for values in columns))
    assert len(set(number.tolist())) == 3


def test_without_columns_all_rows_are_alike() -> None:
    assert rows_alike(2)[0].tolist() == [0, 0]


def test_numbers_of_rows_differ_where_any_column_does() -> None:
    one, other = (pa.array([*range(1000), None]) for _ in range(2))
    assert len(set(row_hash(one).to_pylist())) == 1001
    swapped = row_hash(pa.array([1, 2, None]), pa.array([2, 1, 1])).to_pylist()
    assert len(set(swapped)) == 3
    assert row_hash(one, other).to_pylist() == row_hash(other, one).to_pylist()


VALUES = pa.array([None, 1, 1, None, None, 0, 1], pa.int64())
TEXTS = VALUES.cast(pa.string())


@pytest.mark.parametrize(
    "column", [VALUES, VALUES.cast(pa.int16()), VALUES.cast(pa.bool_()), TEXTS, TEXTS.dictionary_encode()]
)
def test_a_value_differs_from_the_one_before_also_where_one_of_them_is_null(column: pa.Array[Any]) -> None:
    differs = [True, False, True, False, True, True]
    assert values_differ(column).tolist() == differs
    assert values_differ(column.slice(2, 4)).tolist() == differs[2:5]
    assert values_differ(column.slice(0, 1)).tolist() == []
