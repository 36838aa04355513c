"""How often a lane is replayed with pace drawn anew, and which quantiles of the results are reported."""

from __future__ import annotations

import numpy as np

from udfs.columns.arrays import Floats

REPLICATIONS, FEWEST = 20, 5
"""How often a lane is replayed with pace drawn anew, and how often at least where that is much work."""
SHARES = (0.1, 0.5, 0.9)
"""The quantiles of the replications' results that are reported."""


def replications_within(most: int, work: int) -> int:
    """How often lanes are replayed so that the work stays within `most`. work: that of one replay, such as its records.

    >>> replications_within(100, 2), replications_within(100, 10), replications_within(100, 50)
    (20, 10, 5)
    """
    return min(REPLICATIONS, max(FEWEST, most // max(work, 1)))


def quantiles(replications: Floats) -> Floats:
    """p10, p50 and p90 of float64[replications, ...], each of them one of the values: float64[3, ...]."""
    return np.quantile(replications, SHARES, axis=0, method="inverted_cdf")
