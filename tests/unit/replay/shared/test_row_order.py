"""Rows are sorted as np.lexsort sorts them, however many are alike in the first columns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from udfs.columns.arrays import Ints
from udfs.replay.shared.row_order import ROWS_INSERTED, order_of_rows

FAR = [np.iinfo(np.int64).min, -1, 0, np.iinfo(np.int64).max]
"""Numbers so far apart that a unit and one of them do not fit into one number."""


def assert_sorted(unit: Ints, columns: list[Ints]) -> None:
    assert order_of_rows(unit, columns).tolist() == np.lexsort([*columns[::-1], unit]).tolist()


@given(st.lists(st.tuples(st.integers(0, 2), *[st.sampled_from([*FAR, 1, 2])] * 3), max_size=60))
def test_rows_come_by_unit_and_then_by_each_column_and_equal_ones_keep_their_order(rows: list[tuple[int, ...]]) -> None:
    unit, *columns = (
        (np.array(list(column), np.int64) for column in zip(*rows, strict=True)) if rows else [np.arange(0)]
    )
    assert_sorted(unit, columns)


@pytest.mark.parametrize("rows", [1, ROWS_INSERTED, ROWS_INSERTED + 1, 5 * ROWS_INSERTED + 3, 1000])
def test_any_number_of_rows_may_be_alike_in_unit_and_first_column(rows: int) -> None:
    draws = np.random.default_rng(rows)
    same, few, many = np.zeros(rows, np.int64), draws.integers(0, 3, rows), draws.integers(0, 1 << 40, rows)
    for last in (many, np.sort(many), np.sort(many)[::-1].copy(), same):
        assert_sorted(same, [same, few, last])
        assert_sorted(few, [same, last])


def test_without_columns_rows_come_by_unit() -> None:
    assert order_of_rows(np.array([1, 0, 1, 0]), []).tolist() == [1, 3, 0, 2]
