"""Turns the window of a run into times of its capture set: `5m` becomes five minutes after the set's begin."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.captures.clusters import rows_of_cluster
from jobs.lake.delta_tables import stored_rows
from jobs.run import Run
from jobs.scenarios.moment import Moment, utc_datetime
from jobs.scenarios.scenario import Scenario
from jobs.terminal.wording import utc_time
from schemas.tables.silver import CAPTURES, CONNECTIONS, EXCHANGES
from udfs.errors import ArgumentError


def with_window(spark: SparkSession, run: Run, capture_id: str) -> Run:
    """The run with the begin and the end of its window as times. One that cuts off nothing of the capture is None.

    Raises ArgumentError if the window is empty or has no request; the message names the capture's begin and end.
    """
    scenario = run.scenario
    if scenario.begin is None and scenario.end is None:
        return run
    first, last = capture_span(spark, run.lake, capture_id)
    within = with_window_as_times(scenario, first, last)
    if within.begin is not None and within.end is not None and within.begin.us >= within.end.us:
        raise ArgumentError(f"--from is not before --to: {window_and_capture_text(within, first, last)}")
    if within.begin is not None or within.end is not None:
        exchanges = rows_of_cluster(spark, run.lake, EXCHANGES, capture_id, run.cluster_id)
        if requests_in_window(exchanges, within).isEmpty():
            text = window_and_capture_text(within, first, last)
            raise ArgumentError(f"no request of the capture is in the window: {text}")
    return replace(run, scenario=within)


def capture_span(spark: SparkSession, lake: str, capture_id: str) -> tuple[int, int]:
    """The first and the last time of a capture set's packets or logged messages, us since 1970."""
    c, t = CONNECTIONS, CAPTURES
    offset = F.coalesce(F.col(t.clock_offset_us), F.lit(0))
    times = [
        stored_rows(spark, lake, c, capture_id).select(
            micros_since_1970(c.first_time).alias("first"), micros_since_1970(c.last_time).alias("last")
        ),
        stored_rows(spark, lake, t, capture_id).select(
            (micros_since_1970(t.first_time) + offset).alias("first"),
            (micros_since_1970(t.last_time) + offset).alias("last"),
        ),
    ]
    first, last = times[0].unionByName(times[1]).agg(F.min("first"), F.max("last")).collect()[0]
    return int(first), int(last)


def micros_since_1970(column: str) -> Column:
    """A column of times as us since 1970."""
    return F.unix_micros(F.col(column))


def with_window_as_times(scenario: Scenario, first: int, last: int) -> Scenario:
    """The scenario with begin and end of its window as times; None for one that is outside the capture.

    first, last: the first and the last time of the capture, us since 1970.
    """
    begin = None if scenario.begin is None else scenario.begin.in_capture(first)
    end = None if scenario.end is None else scenario.end.in_capture(first)
    return replace(
        scenario,
        begin=None if begin is None or begin <= first else Moment(begin),
        end=None if end is None or end > last else Moment(end),
    )


def requests_in_window(exchanges: DataFrame, scenario: Scenario) -> DataFrame:
    """The exchanges whose requests are in the window."""
    return rows_in_window(exchanges, EXCHANGES.request_time, scenario.begin, scenario.end)


def rows_in_window(rows: DataFrame, column: str, begin: Moment | None, end: Moment | None) -> DataFrame:
    """The rows whose time in a column is at or after the begin and before the end."""
    if begin is not None:
        rows = rows.where(F.col(column) >= F.lit(utc_datetime(begin.us)))
    return rows if end is None else rows.where(F.col(column) < F.lit(utc_datetime(end.us)))


def window_and_capture_text(scenario: Scenario, first: int, last: int) -> str:
    """A window, with the capture's begin and end."""
    begin, end = (
        None if end_of_window is None else utc_datetime(end_of_window.us)
        for end_of_window in (scenario.begin, scenario.end)
    )
    whole = f"the capture goes from {utc_time(utc_datetime(first))} to {utc_time(utc_datetime(last))}"
    return f"{window_text(begin, end)}; {whole}"


def window_text(begin: datetime | None, end: datetime | None) -> str:
    """`from 2026-01-31 12:00:00 UTC to 2026-01-31 12:05:00 UTC`, or only one of the two."""
    ends = (("from", begin), ("to", end))
    return " ".join(f"{word} {utc_time(at)}" for word, at in ends if at is not None)
