"""Picking values by row number, and the place of each row among those of its parent."""

from __future__ import annotations

import numpy as np

from udfs.wire.arrays import Ints, read_only
from udfs.wire.kernel import kernel


def pick(values: Ints, rows: Ints, missing: int) -> Ints:
    """values[rows], and `missing` where the row is negative; `values` may be a field of a structured array."""
    values = values.view()
    values.flags.writeable = False
    picked = np.empty(len(rows), np.int64)
    _pick(values, read_only(rows), missing, picked)
    return picked


@kernel
def _pick(values: Ints, rows: Ints, missing: int, picked: Ints) -> None:
    for i in range(rows.size):
        picked[i] = values[rows[i]] if rows[i] >= 0 else missing


def position_among(parents: Ints) -> Ints:
    """Place of each row among the neighbours that have its parent, from 0."""
    index = np.arange(len(parents))
    begins = np.append(True, parents[1:] != parents[:-1])[: len(parents)]
    positions: Ints = index - np.maximum.accumulate(np.where(begins, index, 0))
    return positions
