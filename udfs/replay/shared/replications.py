"""How often a lane is replayed with pace drawn anew, and what is given of what that comes to."""

from __future__ import annotations

import numpy as np

from udfs.columns.arrays import Floats

REPLICATIONS, FEWEST = 20, 5
"""How often a lane is replayed, and how often at least."""
SHARES = (0.1, 0.5, 0.9)
"""The quantiles that are given of what the replications come to."""


def replications_within(most: int, work: int) -> int:
    """How often lanes are replayed: as often as `most` allows if once takes `work`, such as so many records.

    >>> replications_within(100, 2), replications_within(100, 10), replications_within(100, 50)
    (20, 10, 5)
    """
    return min(REPLICATIONS, max(FEWEST, most // max(work, 1)))


def quantiles(replications: Floats) -> Floats:
    """p10, p50 and p90 of float64[replications, ...], each a value that was there: float64[3, ...]."""
    return np.quantile(replications, SHARES, axis=0, method="inverted_cdf")
