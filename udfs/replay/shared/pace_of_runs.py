"""How much the next run may differ from the captured one in pace.

A capture shows only one run. How much its own stretches differ hints at how much runs differ: both are large on a
machine that other work keeps busy. Few times show little, so the differences between equal runs in the lab count as
well. VALIDATION.md says what was measured.
"""

from __future__ import annotations

import math
from statistics import mean

import numpy as np

from udfs.columns.arrays import Ints
from udfs.replay.shared.line_fit import MOST_SHARE, fit_line

STRETCHES = 3
"""The number of stretches into which a capture's times are split, to compare them and to draw from them."""
LEAST_TIMES = 2 * STRETCHES
"""The fewest times of a node whose stretches are compared."""
PACE_DIFFERS = 0.5
"""How much equal runs in the lab differ in pace. This and the next two are standard deviations of logarithms."""
PACE_DIFFERS_AT_MOST = 1.0
"""The most that runs are taken to differ in pace, however few and uneven a capture's times are."""
TIMES_DIFFER = 1.4
"""How much single times of one client differ for equal amounts. It widens the difference between runs where a capture
has few times."""


def pace_differs(node: Ints, amount: Ints, time: Ints) -> float:
    """The standard deviation, from one run to the next, of the logarithm of a client's times; estimated from its
    captured times.

    node: int64[n], what the times are of, such as brokers. amount: int64[n], of records or bytes; 0 where times do not
    depend on one. time: int64[n], us, in time order.
    """
    by_node = (variance_of_stretches(amount[node == of], time[node == of]) for of in np.unique(node))
    variances = [of for of in by_node if of is not None]
    # The stretches of the capture have the same weight as the runs in the lab.
    of_runs = mean([PACE_DIFFERS**2, mean(variances)]) if variances else PACE_DIFFERS**2
    of_mean = TIMES_DIFFER**2 / max(len(time), 1)
    return min(math.sqrt(of_runs + of_mean), PACE_DIFFERS_AT_MOST)


def variance_of_stretches(amounts: Ints, times: Ints) -> float | None:
    """How much one node's stretches differ: the variance of the logarithm of each stretch's time, divided by the time
    that its amounts take on average. None if there are fewer than LEAST_TIMES times, or all of them are 0.

    amounts, times: int64[n], in time order.
    """
    if len(times) < LEAST_TIMES or times.sum() == 0:
        return None
    base, slope = fit_line(amounts, times, MOST_SHARE / 2)
    expected = base + slope * amounts
    took, on_average = (
        np.array([max(of.sum(), 1) for of in np.array_split(all_of, STRETCHES)]) for all_of in (times, expected)
    )
    return float(np.var(np.log(took / on_average), ddof=1))
