"""What a lane comes to at the captured pace, and between what that lies when the pace is drawn anew."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import NamedTuple

from pyspark.sql import Row

from jobs.terminal.wording import duration, ends_said

NOT_READ = "not all"
"""In place of a time in which a backlog was read to its end."""
NO_DIFFERENCE = "no difference that this capture can tell"


class Ranged(NamedTuple):
    """An outcome and its range, in the outcome's unit; inf for what is not known, or never ends."""

    value: float
    low: float
    high: float


UNREAD = Ranged(inf, inf, inf)


def exact(value: float) -> Ranged:
    """An outcome that does not depend on pace."""
    return Ranged(value, value, value)


def range_of(metric: str) -> str:
    """The column with the range of an outcome."""
    return f"{metric}_range"


def ranged(value: float, within: Row | None) -> Ranged:
    """An outcome with its range; a point where pace does not matter, or where no range is known.

    The value at the captured pace is always inside. A range without an end is of a backlog that a slow pace leaves.
    """
    others = () if within is None else (within["p10"], within["p90"])
    ends = [value, *(inf if end is None else end for end in others)]
    return Ranged(value, min(ends), max(ends))


def time_within(ms: float, within: Row | None) -> str:
    """A time with the range in which it lies at other paces, `146 ms (120 to 210 ms)`; alone where these do not matter.

    A backlog that is not read at a slow pace has no end of its range.
    """
    return said_within(ms, within, duration)


def said_within(value: float, within: Row | None, worded: Callable[[float], str]) -> str:
    """The same of any outcome. said: writes one of its values."""
    return ranged_said(ranged(value, within), worded)


def ranged_said(of: Ranged, worded: Callable[[float], str]) -> str:
    """An outcome with its range, `41 (8 to 62)`; alone if both ends read the same."""
    value, low, high = (NOT_READ if end == inf else worded(end) for end in of)
    return value if low == high else f"{value} ({ends_said(low, high)})"


def is_larger(one: Ranged, other: Ranged) -> bool:
    """Whether an outcome is larger than another at whatever pace: their ranges do not meet."""
    return one.low > other.high


def are_apart(one: Ranged, other: Ranged) -> bool:
    """Whether either of two outcomes is larger at whatever pace."""
    return is_larger(one, other) or is_larger(other, one)
