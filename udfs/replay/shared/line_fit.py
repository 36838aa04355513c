"""How long something takes at all, and how much longer for each unit of an amount."""

from __future__ import annotations

import numpy as np

from udfs.columns.arrays import Ints
from udfs.kernels.kernel import allocating_kernel


@allocating_kernel
def fit_line(amounts: Ints, times: Ints, share: float) -> tuple[float, float]:
    """(time of amount 0, time per unit) whose sum over the amounts is that of the times; (0, 0) for none.

    The time of amount 0 is the median of its times, if there are amounts of 0. Else it is not known, and is taken to
    lie between the shortest time and the median of all. amounts, times: int64[n]. share: from 0, the shortest, to 1,
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
