"""The ranges of a lane's outcomes, in which they lie when the pace of clients and brokers is drawn anew."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jobs.replays.algorithm import OwnRows
from jobs.replays.ranged import range_column
from schemas.tables.gold import FETCH_RANGES

RANGED = ("catch_up_ms", "longest_wait_ms", "end_lag_bytes", "throttle_time_ms")
"""The outcomes of a lane that are shown with a range."""


def fetch_ranges(own_rows: OwnRows, *keys: str) -> DataFrame:
    """A row for each value of the keys, a column for each outcome: the reader for whom it is most, and its range."""
    r = FETCH_RANGES

    def of_most(metric: str) -> Column:
        own = F.when(F.col(r.metric) == metric, F.struct(r.value, r.p10, r.p90, r.client_id))
        return F.max(own).alias(range_column(metric))

    return own_rows(r).groupBy(*keys).agg(*map(of_most, RANGED))
