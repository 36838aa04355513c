"""The summary's lines on quotas of producers: which are throttled in each lane, and how much longer sending takes."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from jobs.replays.algorithm import OwnRows
from jobs.terminal.lane_rows import BETWEEN, grid_by_lane
from jobs.terminal.screen import Grid
from jobs.terminal.wording import client_name, duration
from schemas.tables.gold import PRODUCER_THROTTLES

PRODUCER_HEAD = ("lane", "throttled", "requests", "throttle time", "longest", "sending of", "takes", "captured")
PRODUCER_NOTES = (
    "Producers under quotas make each request when they made it in the capture, or later if they have to wait.",
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


def producer_lanes_rows(own_rows: OwnRows) -> DataFrame:
    """A row for each lane, over all producers; none where no lane has a quota of producers.

    longest: the producer that is throttled for longest. slowest, quickest: the producers for which sending lasts the
    most and the least longer than captured. blocked: the one that waits longest for memory. shown_least, shown_most:
    the quotas that captured throttle times show.
    """
    t = PRODUCER_THROTTLES
    summed = (
        t.requests, t.throttled_requests, t.throttle_time_ms, t.expired_requests, t.captured_throttled_requests,
        t.captured_throttle_time_ms, t.replayed_throttle_time_ms,
    )  # fmt: skip
    most = (t.sending_ms, t.captured_sending_ms, t.blocked_ms)
    of_client = own_rows(t).groupBy(t.scenario, t.client_id, t.client_address).agg(
        *(F.sum(column).alias(column) for column in summed), *(F.max(column).alias(column) for column in most),
        F.min(t.shown_byte_rate).alias("shown_least"), F.max(t.shown_byte_rate).alias("shown_most"),
        F.max(t.user).alias(t.user), F.max(t.byte_rate).alias(t.byte_rate),
    )  # fmt: skip
    longer = (F.col(t.sending_ms) - F.col(t.captured_sending_ms)).alias("longer")
    of_sending = F.struct(longer, t.sending_ms, t.captured_sending_ms, t.client_id)
    return of_client.groupBy(t.scenario).agg(
        *(F.sum(column).alias(column) for column in summed),
        F.count("*").alias("producers"), F.count_if(F.col(t.throttled_requests) > 0).alias("throttled"),
        F.count_if(F.col(t.byte_rate).isNotNull() & F.col(t.user).isNull()).alias("unknown_users"),
        F.max(F.struct(t.throttle_time_ms, t.captured_throttle_time_ms, t.client_id)).alias("longest"),
        F.max(of_sending).alias("slowest"), F.min(of_sending).alias("quickest"),
        F.max(F.struct(t.blocked_ms, t.client_id)).alias("blocked"),
        F.min("shown_least").alias("shown_least"), F.max("shown_most").alias("shown_most"),
    )  # fmt: skip


def producer_table(rows: list[Row], lane_names: Sequence[str]) -> Grid:
    """A row for each lane with a quota of producers, and for the captured one."""
    return grid_by_lane(PRODUCER_HEAD, producer_cells, rows, lane_names, PRODUCER_NOTES, PRODUCER_COLUMNS)


def producer_cells(row: Row) -> list[str]:
    """The cells with the results of a lane."""
    t, slowest = PRODUCER_THROTTLES, row["slowest"]
    return [
        row[t.scenario].replace(",", BETWEEN), f"{row['throttled']:,} of {row['producers']:,}",
        f"{row[t.throttled_requests]:,}", duration(row[t.throttle_time_ms]),
        duration(row["longest"][t.throttle_time_ms]), client_name(slowest[t.client_id]),
        duration(slowest[t.sending_ms]), duration(slowest[t.captured_sending_ms]),
    ]  # fmt: skip
