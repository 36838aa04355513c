"""Groups of rows with the same keys: their numbers, and the greatest earlier values in them."""

from __future__ import annotations

import numpy as np

from udfs.columns.arrays import Ints


def group_numbers(*keys: Ints) -> tuple[Ints, Ints]:
    """(the group of each row, the first row of each group). Rows with the same keys are one group. Groups are numbered
    in the order of their keys, sorted by the first key, then by the second.

    keys: int64[rows] each.

    >>> numbers, firsts = group_numbers(np.array([1, 1, 0, 1]), np.array([7, 5, 9, 7]))
    >>> numbers.tolist(), firsts.tolist()
    ([2, 1, 0, 2], [2, 1, 0])
    """
    order = np.lexsort(keys[::-1])
    begins = np.zeros(len(order), np.bool_)
    begins[:1] = True
    for key in keys:
        begins[1:] |= key[order][1:] != key[order][:-1]
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.cumsum(begins) - 1
    return numbers, order[begins]


def greatest_before(group: Ints, values: Ints, by: int = 1) -> Ints:
    """For each row, the greatest value in its group up to the row `by` places before it, 0 if there is none:
    int64[rows].

    group: int64[rows], ascending. values: int64[rows], none below 0.

    >>> greatest_before(np.array([0, 0, 0, 1, 1]), np.array([5, 3, 9, 1, 2])).tolist()
    [0, 5, 5, 0, 1]
    """
    known, rank = np.unique(values, return_inverse=True)
    greatest = np.maximum.accumulate(group * len(known) + rank) - group * len(known)
    before = np.zeros(len(values), np.int64)
    same = group[by:] == group[:-by]
    before[by:][same] = known[greatest[:-by]][same]
    return before
