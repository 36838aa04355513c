"""The ranges of producers' figures when the pace of brokers is drawn anew."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jobs.replays.algorithm import OwnRows
from jobs.replays.ranged import range_column
from schemas.tables.gold_memory import PRODUCER_MEMORY, PRODUCER_MEMORY_RANGES

WAITS, LONGEST, MOST = map(str, (PRODUCER_MEMORY.waits, PRODUCER_MEMORY.wait_ms_max, PRODUCER_MEMORY.used_bytes_max))
"""The figures of producers that are shown with a range."""


def producer_ranges(own_rows: OwnRows, *keys: str) -> DataFrame:
    """A row for each value of the keys, with a column for each figure that has its p10 and p90: for the number of waits
    the sums over producers, for the others the largest. A sum of ranges is wider than the range of the sum.
    """
    r = PRODUCER_MEMORY_RANGES

    def ends(metric: str, combined: Callable[[Column], Column]) -> Column:
        own = [combined(F.when(F.col(r.metric) == metric, F.col(end))).alias(end) for end in (r.p10, r.p90)]
        return F.struct(*own).alias(range_column(metric))

    return own_rows(r).groupBy(*keys).agg(ends(WAITS, F.sum), ends(LONGEST, F.max), ends(MOST, F.max))
