"""Rows that belong together: numbered by their keys, and what came first or last among them."""

from __future__ import annotations

import numpy as np

from udfs.columns.arrays import Ints


def group_numbers(*keys: Ints) -> tuple[Ints, Ints]:
    """(the group of each row, the first row of each group). Rows with the same keys are one group, and groups are
    numbered in the order of their keys, the first key before the second.

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
    """The greatest value of the group's rows up to the one `by` places before each, 0 where there is none: int64[rows].

    group: int64[rows], rising. values: int64[rows], none below 0.

    >>> greatest_before(np.array([0, 0, 0, 1, 1]), np.array([5, 3, 9, 1, 2])).tolist()
    [0, 5, 5, 0, 1]
    """
    known, rank = np.unique(values, return_inverse=True)
    greatest = np.maximum.accumulate(group * len(known) + rank) - group * len(known)
    before = np.zeros(len(values), np.int64)
    same = group[by:] == group[:-by]
    before[by:][same] = known[greatest[:-by]][same]
    return before
