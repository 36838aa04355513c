"""When a limit of KIP-578 (a proposal) is reached at the growth of a run."""

from __future__ import annotations

import numpy as np

from udfs.columns.arrays import Floats, Ints
from udfs.columns.time_units import US_PER_DAY

MAX_DAYS = 36_525
"""A breach that is farther away than a hundred years is none."""


def growth_per_day(counts: Ints, times: Ints) -> Floats:
    """Replicas a day from the first time to the last; 0 where no time passes. counts: int64[times, of what]."""
    if len(times) < 2:
        return np.zeros(counts.shape[1])
    return (counts[-1] - counts[0]) * (US_PER_DAY / (times[-1] - times[0]))


def breach_times(counts: Ints, times: Ints, limit: Ints, growth: Floats) -> Ints:
    """When each count comes to be at its limit: within the run, or at the growth afterwards; 0 for never, us.

    counts: int64[times, of what]; limit, growth: of what.
    """
    if len(times) == 0:
        return np.zeros(len(limit), np.int64)
    reached = counts >= limit
    within = times[np.argmax(reached, axis=0)]
    days = np.divide(limit - counts[-1], growth, out=np.full(len(limit), np.inf), where=growth > 0)
    after = times[-1] + np.minimum(days, MAX_DAYS) * US_PER_DAY
    later = np.where((days >= 0) & (days < MAX_DAYS), after, 0).astype(np.int64)
    return np.where(reached.any(axis=0), within, later)
