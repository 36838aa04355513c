"""How much the next run may differ from the captured one: in pace, and in the batches that its producers make.

A capture shows one run only. The differences between its own stretches tell something about the differences between
runs: on a machine that other work keeps busy, both are large. A few responses tell little, so the differences between
equal runs in the lab count as well. VALIDATION.md says what was measured.
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
"""The number of stretches into which a capture's times are split, to compare them and to draw from them."""
LEAST_TIMES = 2 * STRETCHES
"""The fewest times of a node whose stretches are compared."""
PACE_DIFFERS = 0.5
"""How much equal runs in the lab differ in pace. This and the next constants up to BATCHES_DIFFER are standard
deviations of logarithms."""
PACE_DIFFERS_AT_MOST = 1.0
"""The most that runs are taken to differ in pace, however few and uneven a capture's times are."""
TIMES_DIFFER = 1.4
"""How much single times of one reader differ for equal amounts. It widens the difference between runs where a capture
has few times."""
STARTS_DIFFER = 0.4
"""How much equal runs in the lab differ in when a reader starts, and in when batches are produced."""
BATCHES_DIFFER = 0.5
"""How much equal runs in the lab differ in how many batches producers make of the same records."""
BATCH_OVERHEAD = 110
"""How many bytes each further batch of the same records adds: 61 bytes of header, and fewer records compress less well.
In the lab it was 63 bytes without compression, and 120 to 190 bytes with it."""


def pace_differs(timings: Timings) -> float:
    """The standard deviation, from one run to the next, of the logarithm of a reader's times; estimated from its
    captured times.
    """
    variances = [of for node in np.unique(timings.node) if (of := variance_of_stretches(timings, node)) is not None]
    # The stretches of the capture have the same weight as the runs in the lab.
    of_runs = mean([PACE_DIFFERS**2, mean(variances)]) if variances else PACE_DIFFERS**2
    of_mean = TIMES_DIFFER**2 / max(len(timings.time), 1)
    return min(math.sqrt(of_runs + of_mean), PACE_DIFFERS_AT_MOST)


def variance_of_stretches(timings: Timings, node: int) -> float | None:
    """How much one node's stretches differ: the variance of the logarithm of each stretch's time, divided by the time
    that its amounts take on average. None if the node has fewer than LEAST_TIMES times, or all of them are 0.
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
    """The unit if producers had made `times_as_many` times the captured number of batches of the same records.

    Only the bytes change: each batch that the capture shows being produced gets the overhead of that many batches. No
    batch becomes smaller than half of its captured size.
    """
    batches = unit.batches.copy()
    before: Ints = batches["bytes_before"]
    sizes = np.diff(before)
    more = max(round((times_as_many - 1.0) * BATCH_OVERHEAD), -BATCH_OVERHEAD)
    is_produced = batches["visible_at"][:-1] > ALWAYS
    batches["bytes_before"][1:] = before[0] + np.cumsum(sizes + np.where(is_produced, np.maximum(more, -sizes // 2), 0))
    return unit._replace(batches=batches)


def factors(draws: np.random.Generator, differs: float, count: int) -> Floats:
    """A factor for each of `count` runs, with the logarithm's standard deviation `differs`: float64[count]."""
    return np.exp(differs * normal_draws(draws, count))


def normal_draws(draws: np.random.Generator, count: int) -> Floats:
    """The middles of `count` equally likely parts of the normal distribution, in a drawn order: float64[count].

    So even a few runs cover the whole distribution, as in Latin hypercube sampling.
    """
    return draws.permutation(normal_middles(count))


@cache
def normal_middles(count: int) -> Floats:
    """The middles of `count` equally likely parts of the normal distribution, in rising order: float64[count]."""
    return read_only(np.array([NormalDist().inv_cdf((place + 0.5) / count) for place in range(count)]))
