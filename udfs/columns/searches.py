"""Where something comes among others that are in the order of a key and a time."""

from __future__ import annotations

import numpy as np

from udfs.columns.arrays import Ints


def behind(keys: Ints, times: Ints, key: Ints, time: Ints) -> Ints:
    """The place behind all rows that come at or before (key, time), int64[len(key)].

    keys, times: int64[rows], in the order of both; keys are 0 to 2^31.
    """
    ranks = np.unique(times)
    width = len(ranks) + 1
    known = keys * width + np.searchsorted(ranks, times, side="right")
    asked = key * width + np.searchsorted(ranks, time, side="right")
    return np.searchsorted(known, asked, side="right")
