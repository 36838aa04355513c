"""The ranges of a lane's outcomes, in which they lie when the pace of clients and brokers is drawn anew, and which of
them equal runs leave too often.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from jobs.replays.algorithm import OwnRows
from jobs.replays.ranged import range_column, value_with_range
from jobs.terminal.screen import rounded_size
from schemas.tables.gold import FETCH_RANGES

RANGED = ("catch_up_ms", "longest_wait_ms", "held_bytes", "end_lag_bytes", "throttle_time_ms")
"""The outcomes of a lane that are shown with a range."""
HELD_IS_TOO_NARROW = "of equal runs only 61 % held what lies in such a range, where 80 % should"
"""What is said beside memory with a range: VALIDATION.md (Starts of consumers) has the figure, of consumers."""


def fetch_ranges(own_rows: OwnRows, *keys: str) -> DataFrame:
    """A row for each value of the keys, a column for each outcome: the reader for whom it is most, and its range."""
    r = FETCH_RANGES

    def of_most(metric: str) -> Column:
        own = F.when(F.col(r.metric) == metric, F.struct(r.value, r.p10, r.p90, r.client_id))
        return F.max(own).alias(range_column(metric))

    return own_rows(r).groupBy(*keys).agg(*map(of_most, RANGED))


def held_text(row: Row) -> str:
    """What the reader holds that holds most in a lane, with its range. row: of `closed_lanes`."""
    return value_with_range(row["held"], row["held_bytes_range"], rounded_size)


def held_caveats(rows: Iterable[Row]) -> list[str]:
    """HELD_IS_TOO_NARROW, if what is held is shown with a range in any of these lanes. rows: of `closed_lanes`."""
    return [HELD_IS_TOO_NARROW] if any(held_text(row) != rounded_size(row["held"]) for row in rows) else []
