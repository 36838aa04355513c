"""A partition limit over time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints

UNLIMITED = (1 << 63) - 1


class Schedule(NamedTuple):
    """A limit over time: the value from each time (us) on; the first time is before all."""

    times: tuple[int, ...]
    values: tuple[int, ...]

    def at(self, times: Ints) -> Ints:
        """The value in force at each time."""
        return np.array(self.values, np.int64)[np.searchsorted(self.times, times, "right") - 1]


NO_SCHEDULE = Schedule((-UNLIMITED,), (UNLIMITED,))
