"""Between what an outcome of a lane lies when the pace of clients and brokers is drawn anew from the capture."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from jobs.replays.algorithm import OwnRows
from jobs.terminal.wording import duration, ends_said
from schemas.tables.gold import FETCH_RANGES

RANGED = ("catch_up_ms", "longest_wait_ms", "end_lag_bytes")
"""The outcomes of a lane that are shown with a range."""
NOT_READ = "not all"
"""In place of a time in which a backlog was read to its end."""
NO_DIFFERENCE = "no difference that this capture can tell"


class Span(NamedTuple):
    """An outcome at the captured pace and its range at others, in ms or bytes; inf for a backlog that is not read."""

    value: float
    low: float
    high: float


UNREAD = Span(inf, inf, inf)


def range_of(metric: str) -> str:
    """The column with the range of an outcome."""
    return f"{metric}_range"


def ranges(own_rows: OwnRows, *keys: str) -> DataFrame:
    """A row for each value of the keys, a column for each outcome: the reader for whom it is most, and its range."""
    r = FETCH_RANGES

    def of_most(metric: str) -> Column:
        own = F.when(F.col(r.metric) == metric, F.struct(r.value, r.p10, r.p90, r.client_id))
        return F.max(own).alias(range_of(metric))

    return own_rows(r).groupBy(*keys).agg(*map(of_most, RANGED))


def span(value: float, within: Row | None) -> Span:
    """An outcome with its range; a point where pace does not matter, or where no range is known.

    The value at the captured pace is always inside. A range without an end is of a backlog that a slow pace leaves.
    """
    others = () if within is None else (within["p10"], within["p90"])
    ends = [value, *(inf if end is None else end for end in others)]
    return Span(value, min(ends), max(ends))


def time_within(ms: float, within: Row | None) -> str:
    """A time with the range in which it lies at other paces, `146 ms (120 to 210 ms)`; alone where these do not matter.

    A backlog that is not read at a slow pace has no end of its range.
    """
    return span_said(span(ms, within), duration)


def span_said(of: Span, said: Callable[[float], str]) -> str:
    """The same of any outcome. said: writes one of its values."""
    value, low, high = (NOT_READ if end == inf else said(end) for end in of)
    return value if low == high else f"{value} ({ends_said(low, high)})"


def is_longer(one: Span, other: Span) -> bool:
    """Whether a time is longer than another at whatever pace: their ranges do not meet."""
    return one.low > other.high


def are_apart(one: Span, other: Span) -> bool:
    """Whether either of two times is longer at whatever pace."""
    return is_longer(one, other) or is_longer(other, one)
