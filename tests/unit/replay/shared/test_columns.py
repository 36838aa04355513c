"""Rows that are alike in several columns."""

from __future__ import annotations

import pyarrow as pa

from udfs.replay.shared.columns import rows_alike

LARGEST = (1 << 31) - 1


def test_rows_are_alike_where_all_columns_have_the_same_and_null_is_a_value() -> None:
    name = pa.array(["a", "b", "a", None, None]).dictionary_encode()
    number, first = rows_alike(5, name, pa.array([1, 1, 1, 1, 1]))
    assert number[0] == number[2]
    assert number[3] == number[4]
    assert len(set(number.tolist())) == 3
    assert [number[row] for row in first] == [0, 1, 2]


def test_however_far_apart_values_are_no_two_rows_become_alike() -> None:
    """1 << 25 times the values that the other two columns can have is 0 in 64 bits."""
    columns = [0, 1 << 25, LARGEST], [0, 0, 255], [0, 0, LARGEST]
    number, _ = rows_alike(3, *(pa.array(values, pa.int64()) for values in columns))
    assert len(set(number.tolist())) == 3


def test_without_columns_all_rows_are_alike() -> None:
    assert rows_alike(2)[0].tolist() == [0, 0]
