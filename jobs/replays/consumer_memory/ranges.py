"""The ranges of producers' figures when the pace of brokers is drawn anew."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.replays.algorithm import OwnRows
from jobs.replays.ranged import range_ends
from schemas.tables.gold_memory import PRODUCER_MEMORY, PRODUCER_MEMORY_RANGES

WAITS, LONGEST, MOST = map(str, (PRODUCER_MEMORY.waits, PRODUCER_MEMORY.wait_ms_max, PRODUCER_MEMORY.used_bytes_max))
"""The figures of producers that are shown with a range."""


def producer_ranges(own_rows: OwnRows, *keys: str) -> DataFrame:
    """A row for each value of the keys, with a column for each figure that has its p10 and p90: for the number of waits
    the sums over producers, for the others the largest. A sum of ranges is wider than the range of the sum.
    """
    ends = range_ends(WAITS, F.sum), range_ends(LONGEST, F.max), range_ends(MOST, F.max)
    return own_rows(PRODUCER_MEMORY_RANGES).groupBy(*keys).agg(*ends)
