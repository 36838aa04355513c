"""Values that are taken from other rows, and places among neighbours."""

from __future__ import annotations

import numpy as np

from udfs.columns.picking import pick_columns, pick_values, position_among

FIELDS = {"size": 7, "start": -1}
FRAME = np.dtype([("start", np.int64), ("other", np.int64), ("size", np.int64)])


def test_values_are_taken_by_row_and_missing_where_there_is_none() -> None:
    assert pick_values(np.array([10, 20, 30]), np.array([2, -1, 0, 2]), 7).tolist() == [30, 7, 10, 30]


def test_fields_of_rows_are_taken_as_columns_each_with_a_value_for_missing_rows() -> None:
    frames = np.array([(1, 0, 100), (2, 0, 200)], FRAME)
    columns = pick_columns(frames, FIELDS, np.array([1, 0, -5, 1]))
    assert {name: column.tolist() for name, column in columns.items()} == {
        "start": [2, 1, -1, 2],
        "size": [200, 100, 7, 200],
    }


def test_fields_of_any_number_of_rows_are_taken() -> None:
    frames = np.array([(n, 0, -n) for n in range(1000)], FRAME)
    columns = pick_columns(frames, FIELDS, np.arange(999, -1, -1))
    assert columns["start"].tolist() == list(range(999, -1, -1))
    assert columns["size"].tolist() == list(range(-999, 1))


def test_from_no_rows_only_the_missing_value_is_taken() -> None:
    assert pick_values(np.zeros(0, np.int64), np.array([-1]), 3).tolist() == [3]
    assert pick_values(np.zeros(0, np.int64), np.zeros(0, np.int64), 3).tolist() == []
    assert pick_columns(np.zeros(0, FRAME), FIELDS, np.array([-1]))["size"].tolist() == [7]


def test_neighbours_with_one_parent_are_counted_from_0() -> None:
    assert position_among(np.array([4, 4, 4, 6, 9, 9])).tolist() == [0, 1, 2, 0, 0, 1]
    assert position_among(np.zeros(0, np.int64)).tolist() == []
