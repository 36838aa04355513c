"""The summary's lines on quotas of producers: which are throttled in each lane, and how much longer sending takes."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from jobs.replays.algorithm import OwnRows
from jobs.replays.ranged import range_column, range_ends, time_with_range, value_with_range
from jobs.terminal.lane_rows import BETWEEN, grid_by_lane
from jobs.terminal.screen import Grid
from jobs.terminal.wording import client_name, duration, whole_number_text
from schemas.tables.gold import PRODUCER_THROTTLE_RANGES, PRODUCER_THROTTLES

PRODUCER_HEAD = ("lane", "throttled", "requests", "throttle time", "longest", "sending of", "takes", "captured")
PRODUCER_NOTES = (
    "Producers under quotas make each request when they made it in the capture, or later if they have to wait. In "
    "brackets is the range, p10 to p90, at other paces; the ranges of several brokers and producers are added up.",
)
PRODUCER_COLUMNS = {
    "throttled": "producers with throttled requests",
    "requests": "throttled requests of all producers",
    "throttle time": "the sum of the throttle times of all producers",
    "longest": "the sum of the throttle times of the producer that is throttled for longest",
    "sending of": "the producer whose sending is delayed most",
    "takes": "the time from its first request until the last one is answered",
    "captured": "that time in the capture",
}

RANGES_ARE_TOO_NARROW = (
    "in the lab such ranges contained 83 % of equal runs of Java producers for sending under a quota, 84 % for "
    "throttled requests and 58 % for throttle times, and 65, 57 and 74 % of librdkafka's; for sending without a quota "
    "46 and 22 %. They should contain 80 %"
)
"""The remark on ranges: VALIDATION.md (Bandwidth quotas of producers) has the figures."""
WAITS, SENDS, BLOCKED = (
    range_column(str(metric))
    for metric in (PRODUCER_THROTTLES.throttle_time_ms, PRODUCER_THROTTLES.sending_ms, PRODUCER_THROTTLES.blocked_ms)
)
"""The columns with the ranges of times."""


def producer_lanes_rows(own_rows: OwnRows) -> DataFrame:
    """A row for each lane, over all producers; none where no lane has a quota of producers.

    longest: the producer that is throttled for longest. slowest, quickest: the producers for which sending lasts the
    most and the least longer than captured. blocked: the one that waits longest for memory. shown_least, shown_most:
    the quotas that captured throttle times show. Outcomes of a lane and of one producer have their ranges.
    """
    t = PRODUCER_THROTTLES
    summed = (
        t.requests, t.throttled_requests, t.throttle_time_ms, t.expired_requests, t.captured_throttled_requests,
        t.captured_throttle_time_ms, t.replayed_throttle_time_ms,
    )  # fmt: skip
    most = (t.sending_ms, t.captured_sending_ms, t.blocked_ms)
    keys = [str(t.scenario), str(t.client_id), str(t.client_address)]
    of_client = own_rows(t).groupBy(*keys).agg(
        *(F.sum(column).alias(column) for column in summed), *(F.max(column).alias(column) for column in most),
        F.min(t.shown_byte_rate).alias("shown_least"), F.max(t.shown_byte_rate).alias("shown_most"),
        F.max(t.user).alias(t.user), F.max(t.byte_rate).alias(t.byte_rate),
    ).join(throttle_ranges(own_rows, *keys), keys, "left")  # fmt: skip
    longer = (F.col(t.sending_ms) - F.col(t.captured_sending_ms)).alias("longer")
    of_sending = F.struct(longer, t.sending_ms, t.captured_sending_ms, t.client_id, SENDS)
    by_lane = of_client.groupBy(t.scenario).agg(
        *(F.sum(column).alias(column) for column in summed),
        F.count("*").alias("producers"), F.count_if(F.col(t.throttled_requests) > 0).alias("throttled"),
        F.count_if(F.col(t.byte_rate).isNotNull() & F.col(t.user).isNull()).alias("unknown_users"),
        F.max(F.struct(t.throttle_time_ms, t.captured_throttle_time_ms, t.client_id, WAITS)).alias("longest"),
        F.max(of_sending).alias("slowest"), F.min(of_sending).alias("quickest"),
        F.max(F.struct(t.blocked_ms, t.client_id, BLOCKED)).alias("blocked"),
        F.min("shown_least").alias("shown_least"), F.max("shown_most").alias("shown_most"),
    )  # fmt: skip
    return by_lane.join(throttle_ranges(own_rows, str(t.scenario)), str(t.scenario), "left")


def throttle_ranges(own_rows: OwnRows, *keys: str) -> DataFrame:
    """A row for each value of the keys, with a column for each outcome that has its p10 and p90: for times of sending
    and of waiting for memory the largest, for the others the sums. A sum of ranges is wider than the range of the sum.
    """
    t = PRODUCER_THROTTLES
    ends = [
        *(range_ends(str(metric), F.sum) for metric in (t.throttled_requests, t.throttle_time_ms, t.expired_requests)),
        *(range_ends(str(metric), F.max) for metric in (t.sending_ms, t.blocked_ms)),
    ]
    return own_rows(PRODUCER_THROTTLE_RANGES).groupBy(*keys).agg(*ends)


def producer_table(rows: list[Row], lane_names: Sequence[str]) -> Grid:
    """A row for each lane with a quota of producers, and for the captured one."""
    notes = (*PRODUCER_NOTES, *(f"{caveat}." for caveat in producer_caveats(rows)))
    return grid_by_lane(PRODUCER_HEAD, producer_cells, rows, lane_names, notes, PRODUCER_COLUMNS)


def producer_cells(row: Row) -> list[str]:
    """The cells with the results of a lane."""
    t, slowest, longest = PRODUCER_THROTTLES, row["slowest"], row["longest"]
    return [
        row[t.scenario].replace(",", BETWEEN), f"{row['throttled']:,} of {row['producers']:,}",
        value_with_range(row[t.throttled_requests], row[range_column(str(t.throttled_requests))], whole_number_text),
        time_with_range(row[t.throttle_time_ms], row[WAITS]),
        time_with_range(longest[t.throttle_time_ms], longest[WAITS]), client_name(slowest[t.client_id]),
        time_with_range(slowest[t.sending_ms], slowest[SENDS]), duration(slowest[t.captured_sending_ms]),
    ]  # fmt: skip


def producer_caveats(rows: Sequence[Row]) -> list[str]:
    """The remark on ranges, if one is shown. rows: from `producer_lanes_rows`."""
    t = PRODUCER_THROTTLES
    of_lanes = ((row[t.throttle_time_ms], row[WAITS]) for row in rows)
    of_slowest = ((row["slowest"][t.sending_ms], row["slowest"][SENDS]) for row in rows)
    has_range = any(time_with_range(ms, within) != duration(ms) for ms, within in (*of_lanes, *of_slowest))
    return [RANGES_ARE_TOO_NARROW] if has_range else []
