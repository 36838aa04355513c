"""How far the next run may differ from the captured one: in pace, and in the batches that its producers make.

A capture shows one run. How much its own stretches differ says something of how much runs do: on a machine that other
work keeps busy both are far apart. A few responses say little of that, so what equal runs of the lab differed by counts
beside them. VALIDATION.md says what was measured.
"""

from __future__ import annotations

import math
from functools import cache
from statistics import NormalDist, mean

import numpy as np

from udfs.columns.arrays import Floats, Ints, read_only
from udfs.columns.time_units import ALWAYS
from udfs.replay.fetch_max_bytes.closed_loop.pace_fits import MOST_SHARE, Timings
from udfs.replay.fetch_max_bytes.closed_loop.state import Unit
from udfs.replay.shared.line_fit import fit_line

STRETCHES = 3
"""A capture's times are compared, and drawn, in so many stretches."""
LEAST_TIMES = 2 * STRETCHES
"""A node's stretches are compared if it has so many times or more."""
PACE_DIFFERS = 0.5
"""How far equal runs of the lab differ in pace. This and what follows are standard deviations of logarithms."""
PACE_DIFFERS_AT_MOST = 1.0
"""Runs are taken to differ in pace by no more than this, however few a capture's times are, and however uneven."""
TIMES_DIFFER = 1.4
"""How far single times of one reader differ for like amounts. The mean of a few differs so much more between runs."""
STARTS_DIFFER = 0.4
"""How far equal runs of the lab differ in when a reader starts, and in when batches are produced."""
BATCHES_DIFFER = 0.5
"""How far they differ in how many batches producers make of the same records."""
BATCH_OVERHEAD = 110
"""What each further batch of the same records takes, in bytes: 61 of it are its header, and fewer records are not
compressed as well. In the lab that was 63 without compression, and 120 to 190 with it."""


def pace_differs(timings: Timings) -> float:
    """The standard deviation of the logarithm of times from one run to the next, by a reader's captured times."""
    variances = [of for node in np.unique(timings.node) if (of := variance_of_stretches(timings, node)) is not None]
    # The capture's stretches count as much as the lab's runs.
    of_runs = mean([PACE_DIFFERS**2, mean(variances)]) if variances else PACE_DIFFERS**2
    of_mean = TIMES_DIFFER**2 / max(len(timings.time), 1)
    return min(math.sqrt(of_runs + of_mean), PACE_DIFFERS_AT_MOST)


def variance_of_stretches(timings: Timings, node: int) -> float | None:
    """How far one node's stretches differ: the variance of the logarithm of their times, each beside the time that its
    amounts take on average. None where there are too few.
    """
    own = timings.node == node
    amounts, times = timings.amount[own], timings.time[own]
    if len(times) < LEAST_TIMES or times.sum() == 0:
        return None
    base, slope = fit_line(amounts, times, MOST_SHARE / 2)
    expected = base + slope * amounts
    took, on_average = (
        np.array([max(of.sum(), 1) for of in np.array_split(all_of, STRETCHES)]) for all_of in (times, expected)
    )
    return float(np.var(np.log(took / on_average), ddof=1))


def in_other_batches(unit: Unit, times_as_many: float) -> Unit:
    """The same where producers made so many times as many batches of the records that the capture shows them produce.

    Only how many bytes these take changes: each captured batch has the overhead of as many. No batch becomes smaller
    than half of what it was.
    """
    batches = unit.batches.copy()
    before: Ints = batches["bytes_before"]
    sizes = np.diff(before)
    more = max(round((times_as_many - 1.0) * BATCH_OVERHEAD), -BATCH_OVERHEAD)
    is_produced = batches["visible_at"][:-1] > ALWAYS
    batches["bytes_before"][1:] = before[0] + np.cumsum(sizes + np.where(is_produced, np.maximum(more, -sizes // 2), 0))
    return unit._replace(batches=batches)


def factors(draws: np.random.Generator, differs: float, count: int) -> Floats:
    """How many times as long, or as many, something is in each of `count` runs: float64[count]."""
    return np.exp(differs * normal_draws(draws, count))


def normal_draws(draws: np.random.Generator, count: int) -> Floats:
    """The middles of equally likely parts of the normal distribution, in an order that is drawn: float64[count].

    So a few runs have its whole spread, as in a Latin hypercube.
    """
    return draws.permutation(normal_middles(count))


@cache
def normal_middles(count: int) -> Floats:
    """The middles of so many equally likely parts of the normal distribution, in rising order: float64[count]."""
    return read_only(np.array([NormalDist().inv_cdf((place + 0.5) / count) for place in range(count)]))
