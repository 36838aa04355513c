"""The order of rows by several columns of numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from udfs.columns.arrays import Ints, read_only
from udfs.kernels.kernel import kernel

ROWS_INSERTED = 16
"""Stretches of this many rows are sorted by insertion; then sorted stretches are merged."""
_MOST = np.iinfo(np.int64).max


def order_of_rows(unit: Ints, columns: Sequence[Ints]) -> Ints:
    """The rows sorted by unit, those of a unit by the first column, then by the next, and so on: int64[rows]. Equal
    rows keep their order.

    unit: int64[rows], none below 0. columns: int64[rows] each. np.lexsort sorts all rows by all columns. Here the unit
    and the first column make one number, and only rows with the same number are compared by further columns.

    >>> order_of_rows(np.array([1, 0, 1, 0]), [np.array([5, 9, 4, 9]), np.array([0, 3, 0, 2])]).tolist()
    [3, 1, 2, 0]
    """
    key = unit
    if columns and len(unit):
        first, least = columns[0], int(columns[0].min())
        span = int(first.max()) - least + 1
        if (int(unit.max()) + 1) * span > _MOST:
            first = np.unique(first, return_inverse=True)[1]
            least, span = 0, len(first) + 1
        key = unit * span + (first - least)
    order = np.arange(len(key)) if (key[1:] >= key[:-1]).all() else np.argsort(key, kind="stable")
    if len(columns) > 1:
        in_order = key[order]
        if (in_order[1:] == in_order[:-1]).any():
            others = np.stack(columns[1:])
            _sort_alike(order, read_only(in_order), read_only(others), np.empty(len(order), np.int64))
    return order


@kernel
def _sort_alike(order: Ints, key: Ints, columns: Ints, spare: Ints) -> None:
    """Sort rows with equal keys by other columns. order, key: int64[rows], in the order of the keys. columns:
    int64[columns, rows], by the row's number. spare: int64[rows], working memory.
    """
    first = 0
    while first < order.size:
        end = first + 1
        while end < order.size and key[end] == key[first]:
            end += 1
        if end - first > 1:
            _sort_stretch(order[first:end], columns, spare)
        first = end


@kernel
def _sort_stretch(order: Ints, columns: Ints, spare: Ints) -> None:
    for begin in range(0, order.size, ROWS_INSERTED):
        for place in range(begin + 1, min(begin + ROWS_INSERTED, order.size)):
            row, at = order[place], place
            while at > begin and _comes_before(columns, row, order[at - 1]):
                order[at] = order[at - 1]
                at -= 1
            order[at] = row
    length = ROWS_INSERTED
    while length < order.size:
        for begin in range(0, order.size - length, 2 * length):
            _merge_stretches(order[begin : begin + 2 * length], length, columns, spare)
        length *= 2


@kernel
def _merge_stretches(order: Ints, length: int, columns: Ints, spare: Ints) -> None:
    """Merge two sorted stretches: the first has this length, and the second follows it."""
    if not _comes_before(columns, order[length], order[length - 1]):
        return
    for place in range(length):
        spare[place] = order[place]
    one, other = 0, length
    for place in range(order.size):
        if one == length:
            break
        if other < order.size and _comes_before(columns, order[other], spare[one]):
            order[place] = order[other]
            other += 1
        else:
            order[place] = spare[one]
            one += 1


@kernel
def _comes_before(columns: Ints, one: int, other: int) -> bool:
    for column in range(columns.shape[0]):
        if columns[column, one] != columns[column, other]:
            return bool(columns[column, one] < columns[column, other])
    return False
