"""A lane's outcomes at the captured pace, with their ranges when the pace is drawn anew."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import NamedTuple

from pyspark.sql import Column, Row
from pyspark.sql import functions as F

from jobs.terminal.wording import duration, range_text
from schemas.tables.gold import FETCH_RANGES

NOT_READ = "not all"
"""Stands for the time of a backlog that is not read to its end."""
NO_DIFFERENCE = "no difference that this capture can tell"
LEAST_MS = 10.0
"""Two times that differ by at most this many milliseconds are no reason to change a setting."""


class Ranged(NamedTuple):
    """An outcome and its range, in the outcome's unit; inf if it is not known or is a time without end."""

    value: float
    low: float
    high: float


UNREAD = Ranged(inf, inf, inf)


def without_range(value: float) -> Ranged:
    """An outcome that does not depend on pace."""
    return Ranged(value, value, value)


def range_column(metric: str) -> str:
    """The name of the column that has the range of an outcome."""
    return f"{metric}_range"


def range_ends(metric: str, combined: Callable[[Column], Column]) -> Column:
    """A column with p10 and p90 of an outcome, for an aggregation over rows of a table of ranges. combined: what is
    taken over several rows, such as their sum.
    """
    r = FETCH_RANGES  # all tables of ranges have these columns
    own = [combined(F.when(F.col(r.metric) == metric, F.col(end))).alias(end) for end in (r.p10, r.p90)]
    return F.struct(*own).alias(range_column(metric))


def with_range(value: float, within: Row | None) -> Ranged:
    """An outcome with its range, which always includes the value at the captured pace.

    within: the range, with p10 and p90; p90 is null for a backlog that is not read to its end at a slow pace. It is
    None if pace does not matter or no range is known; then both ends are the value.
    """
    others = () if within is None else (within["p10"], within["p90"])
    ends = [value, *(inf if end is None else end for end in others)]
    return Ranged(value, min(ends), max(ends))


def time_with_range(ms: float, within: Row | None) -> str:
    """A time with its range at other paces, `146 ms (120 to 210 ms)`, or only the time if it has no range.

    within: as in `with_range`.
    """
    return value_with_range(ms, within, duration)


def value_with_range(value: float, within: Row | None, worded: Callable[[float], str]) -> str:
    """Any outcome with its range, as `time_with_range` writes a time. worded: writes one value of the outcome."""
    return ranged_text(with_range(value, within), worded)


def ranged_text(outcome: Ranged, worded: Callable[[float], str]) -> str:
    """An outcome with its range, `41 (8 to 62)`, which is left out if both its ends read the same. worded: as above."""
    value, low, high = (NOT_READ if figure == inf else worded(figure) for figure in outcome)
    return value if low == high else f"{value} ({range_text(low, high)})"


def is_surely_larger(one: Ranged, other: Ranged) -> bool:
    """Whether an outcome is larger than another at any pace: its range is above the other's."""
    return one.low > other.high


def are_apart(one: Ranged, other: Ranged) -> bool:
    """Whether one of two outcomes is larger than the other at any pace: their ranges do not overlap."""
    return is_surely_larger(one, other) or is_surely_larger(other, one)
