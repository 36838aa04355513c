"""The ranges of figures of memory pools when the pace is drawn anew."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.replays.algorithm import OwnRows
from jobs.replays.ranged import range_ends
from schemas.tables.gold_memory import (
    BROKER_MEMORY,
    BROKER_MEMORY_RANGES,
    CONSUMER_MEMORY,
    CONSUMER_MEMORY_RANGES,
    PRODUCER_MEMORY,
    PRODUCER_MEMORY_RANGES,
)
from schemas.tables.table import Table

WAITS, LONGEST, MOST = map(str, (PRODUCER_MEMORY.waits, PRODUCER_MEMORY.wait_ms_max, PRODUCER_MEMORY.used_bytes_max))
"""The figures of all pools that are shown with a range."""
SMALLEST, DEPLETED = map(str, (BROKER_MEMORY.smallest_pool_bytes, BROKER_MEMORY.depleted_share))
"""Two more of them, which producers do not have."""
TABLES_OF_RANGES: Mapping[Table, Table] = {
    CONSUMER_MEMORY: CONSUMER_MEMORY_RANGES,
    BROKER_MEMORY: BROKER_MEMORY_RANGES,
    PRODUCER_MEMORY: PRODUCER_MEMORY_RANGES,
}
"""The table of ranges of each pool's table."""


def pool_ranges(own_rows: OwnRows, table: Table, *keys: str) -> DataFrame:
    """A row for each value of the keys, with a column for each figure that has its p10 and p90: for the number of waits
    the sums over clients or brokers, for the others the largest. A sum of ranges is wider than the range of the sum.

    table: that of the pools' results.
    """
    ends = [range_ends(WAITS, F.sum), *(range_ends(figure, F.max) for figure in (LONGEST, MOST, SMALLEST, DEPLETED))]
    return own_rows(TABLES_OF_RANGES[table]).groupBy(*keys).agg(*ends)
