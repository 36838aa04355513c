"""The fit of a line to times: the time for an amount of 0, and the additional time for each unit of an amount."""

from __future__ import annotations

import numpy as np

from udfs.columns.arrays import Ints
from udfs.kernels.kernel import allocating_kernel

MOST_SHARE = 0.5
"""The largest share that `fit_line` is given. An empty response is taken to need at least the shortest time, and at
most this share of the way from there to the median. On a live cluster librdkafka was nearer to the shortest time, and
Java clients were at about half of this share.
"""


@allocating_kernel
def fit_line(amounts: Ints, times: Ints, share: float) -> tuple[float, float]:
    """(time for an amount of 0, time for each unit), which over all amounts add up to the sum of the times; (0, 0) for
    no amounts.

    If there are amounts of 0, the time for 0 is the median of their times. Otherwise it is not known, and is taken to
    be between the shortest time and the median of all times. amounts, times: int64[n]. share: 0 is the shortest time, 1
    the median.
    """
    if len(times) == 0:
        return 0.0, 0.0
    idle, busy, total = times[amounts == 0], times[amounts > 0], amounts.sum()
    shortest = float(times.min())
    base = float(np.median(idle)) if len(idle) else shortest + share * (np.median(times) - shortest)
    if total == 0:
        return float(times.mean()), 0.0
    rest = float(busy.sum()) - base * len(busy)
    return (base, rest / total) if rest >= 0 else (float(busy.mean()), 0.0)
