"""Searches in rows that are in the order of a key and a time."""

from __future__ import annotations

import numpy as np

from udfs.columns.arrays import Ints


def behind(keys: Ints, times: Ints, key: Ints, time: Ints) -> Ints:
    """The place behind all rows at or before each (key, time): int64[n]; key, time: int64[n].

    keys, times: int64[rows], sorted by both; keys are 0 to 2^31.
    """
    ranks = np.unique(times)
    width = len(ranks) + 1
    rows = keys * width + np.searchsorted(ranks, times, side="right")
    wanted = key * width + np.searchsorted(ranks, time, side="right")
    return np.searchsorted(rows, wanted, side="right")
