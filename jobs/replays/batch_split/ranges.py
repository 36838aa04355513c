"""The ranges of a lane's figures when the pace of producers and brokers is drawn anew."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.replays.algorithm import OwnRows
from jobs.replays.ranged import range_ends
from schemas.tables.gold_splits import BATCH_SPLIT, BATCH_SPLIT_RANGES

SPLIT_RATE = str(BATCH_SPLIT.split_rate)
SUMMED = tuple(map(str, (BATCH_SPLIT.splits, BATCH_SPLIT.batches, BATCH_SPLIT.bytes_resent)))
"""The figures of a lane that have a range, besides the split rate. Those of several producers are added up."""


def split_ranges(own_rows: OwnRows, *keys: str) -> DataFrame:
    """A row for each value of the keys, with a column for each figure that has its p10 and p90: for the split rate the
    highest of any producer and topic, for the others the sums. A sum of ranges is wider than the range of the sum.
    """
    ends = [range_ends(SPLIT_RATE, F.max), *(range_ends(metric, F.sum) for metric in SUMMED)]
    return own_rows(BATCH_SPLIT_RANGES).groupBy(*keys).agg(*ends)
