"""The ranges of a lane's outcomes when the pace of clients and brokers is drawn anew, and which are too narrow."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from jobs.replays.algorithm import OwnRows
from jobs.replays.ranged import UNREAD, Ranged, range_column, value_with_range, with_range
from jobs.terminal.screen import rounded_size
from schemas.tables.gold import FETCH_RANGES
from schemas.tables.values import CONSUMER, FOLLOWER

RANGED = ("catch_up_ms", "longest_wait_ms", "held_bytes", "end_lag_bytes", "throttle_time_ms")
"""The outcomes of a lane that are shown with a range."""
HELD_IS_TOO_NARROW = {
    CONSUMER: "such a range contained only 70 % of equal runs of consumers in the lab, and should contain 80 %",
    FOLLOWER: "such a range contained only 50 % of equal runs of followers in the lab, and should contain 80 %",
}
"""The remark on memory with a range, by kind of reader: VALIDATION.md (Starts of consumers) has the figures."""
CATCH_UP_IS_TOO_NARROW = (
    "such a range contained only 66 % of equal runs of consumers that start beside their producers, not 80 %"
)
"""The remark on catch-up with a range: VALIDATION.md as above."""


def fetch_ranges(own_rows: OwnRows, *keys: str) -> DataFrame:
    """A row for each value of the keys, with a column for each outcome: the reader with the largest, and its range."""
    r = FETCH_RANGES

    def of_most(metric: str) -> Column:
        own = F.when(F.col(r.metric) == metric, F.struct(r.value, r.p10, r.p90, r.client_id))
        return F.max(own).alias(range_column(metric))

    return own_rows(r).groupBy(*keys).agg(*map(of_most, RANGED))


def held_text(row: Row) -> str:
    """The held bytes of the reader that holds most in a lane, with their range. row: from `closed_lanes`."""
    return value_with_range(row["held"], row["held_bytes_range"], rounded_size)


def held_caveats(rows: Iterable[Row]) -> list[str]:
    """The remark for each kind of reader whose held bytes are shown with a range. rows: from `closed_lanes`."""
    shown = {row["reader"] for row in rows if held_text(row) != rounded_size(row["held"])}
    return [caveat for reader, caveat in HELD_IS_TOO_NARROW.items() if reader in shown]


def catch_up_time(row: Row) -> Ranged:
    """The time of the slowest backlog of a lane, in ms, with its range at other paces. row: from `closed_lanes`."""
    return UNREAD if row["never"] else with_range(row["took"], row["catch_up_ms_range"])


def table_caveats(rows: Iterable[Row]) -> list[str]:
    """The remarks on ranges in a table of lanes, each after the name of its column. rows: from `closed_lanes`."""
    rows = [*rows]
    times = [catch_up_time(row) for row in rows if row["reader"] == CONSUMER]
    caught_up = [f"catch-up: {CATCH_UP_IS_TOO_NARROW}."] if any(time.low < time.high for time in times) else []
    return [*(f"held: {caveat}." for caveat in held_caveats(rows)), *caught_up]
