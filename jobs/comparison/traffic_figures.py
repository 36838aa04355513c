"""Figures of a capture set's traffic: clients, topics, rates, versions of clients, and limits in their requests."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jobs.comparison.figure_rows import Columns, figure_rows, share_columns
from jobs.replays.algorithm import OwnRows
from jobs.report_page.advice.fetch_limits import SHOWN
from jobs.report_page.traffic import FETCH, PRODUCE, batches_of_producers
from schemas.tables.silver import EXCHANGES, FETCH_PARTITIONS, RECORD_BATCHES
from schemas.tables.values import CONSUMER, FOLLOWER
from schemas.wire.errors import FETCH_SESSION_ID_NOT_FOUND
from udfs.columns.time_units import US_PER_S

SLICES = 10
"""A capture's time is divided into this many slices. The rates without the lowest and the highest are a range that has
80 % of the slices, as between p10 and p90."""
LOWEST, HIGHEST = 1, SLICES - 2
MOST_VALUES = 5
CLIENT, TOPIC = "client", "topic"
RATE, PRODUCED, CONSUMED = "requests_per_s", "produced_bytes_per_s", "consumed_bytes_per_s"
SOFTWARE = "software"
LIMITS: Mapping[str, Mapping[str, str]] = {
    CONSUMER: SHOWN,
    FOLLOWER: {
        "replica.fetch.response.max.bytes": FETCH_PARTITIONS.max_bytes,
        "replica.fetch.max.bytes": FETCH_PARTITIONS.partition_max_bytes,
        "replica.fetch.min.bytes": FETCH_PARTITIONS.min_bytes,
        "replica.fetch.wait.max.ms": FETCH_PARTITIONS.max_wait_ms,
    },
}
"""The settings that the fetches of a kind of reader show, by kind and by column."""


class TimeSpan(NamedTuple):
    """The time that a capture set covers: when it begins (microseconds since 1970), and how long it is, in seconds."""

    first_us: int
    seconds: float


def span_of(first: datetime | None, last: datetime | None) -> TimeSpan:
    """The span from the first request to the last. If they came at the same time, it counts as one second."""
    if first is None or last is None:
        return TimeSpan(0, 1.0)
    return TimeSpan(
        round(first.timestamp() * US_PER_S), max((last - first).total_seconds(), 1e-6) if last > first else 1.0
    )


def whole_span(own_rows: OwnRows) -> DataFrame:
    """(first, last): the times of the first and the last request."""
    x = EXCHANGES
    return own_rows(x).agg(F.min(x.request_time).alias("first"), F.max(x.request_time).alias("last"))


def client_figures(own_rows: OwnRows, span: TimeSpan) -> DataFrame:
    """How much each client asks for, and how its fetches are answered."""
    x = EXCHANGES
    rows = own_rows(x).where(F.col(x.request_time).isNotNull())
    fetch = F.col(x.api_name) == FETCH
    sums = {
        "requests": F.count("*"),
        "bytes": F.sum(F.col(x.request_bytes) + F.col(x.response_bytes)),
        "fetches": F.count_if(fetch),
        "full": F.count_if(fetch & (F.col(x.fetch_session_epoch) <= 0)),
        "not_found": F.count_if(fetch & (F.col(x.error_code) == FETCH_SESSION_ID_NOT_FOUND)),
    }
    of = sums_with_slices(rows, x.client_id, x.request_time, sums, span)
    fetches = F.col("fetches")
    return figure_rows(of, CLIENT, str(x.client_id), {
        RATE: rate_columns("requests", span),
        "bytes_per_s": rate_columns("bytes", span),
        "full_fetch_share": share_columns(F.col("full"), fetches),
        "not_found_share": share_columns(F.col("not_found"), fetches),
    })  # fmt: skip


def topic_figures(own_rows: OwnRows, span: TimeSpan) -> DataFrame:
    """How much is produced to and consumed from each topic."""
    b, f = RECORD_BATCHES, FETCH_PARTITIONS
    sent = sums_with_slices(
        batches_of_producers(own_rows), b.topic, b.request_time, {"bytes": F.sum(b.size_bytes)}, span
    )
    consumed = own_rows(f).where((F.col(f.reader) == CONSUMER) & (F.col(f.returned_bytes) > 0))
    read = sums_with_slices(consumed, f.topic, f.request_time, {"bytes": F.sum(f.returned_bytes)}, span)
    return figure_rows(sent, TOPIC, str(b.topic), {PRODUCED: rate_columns("bytes", span)}).unionByName(
        figure_rows(read, TOPIC, str(f.topic), {CONSUMED: rate_columns("bytes", span)})
    )


def version_figures(own_rows: OwnRows) -> DataFrame:
    """The software of each client with its version, and the versions of Fetch and Produce that the client uses."""
    x = EXCHANGES
    software = F.concat_ws(" ", x.client_software_name, x.client_software_version)
    named = F.when(F.col(x.client_software_name).isNotNull(), software)
    fetch, produce = (F.when(F.col(x.api_name) == api, F.col(x.api_version)) for api in (FETCH, PRODUCE))
    of = own_rows(x).groupBy(x.client_id).agg(
        first_values_text(named).alias(SOFTWARE), first_values_text(fetch).alias("fetch"),
        first_values_text(produce).alias("produce"),
    )  # fmt: skip
    return figure_rows(of, CLIENT, str(x.client_id), {
        SOFTWARE: Columns(text=F.col(SOFTWARE)),
        "fetch_version": Columns(text=F.col("fetch")),
        "produce_version": Columns(text=F.col("produce")),
    })  # fmt: skip


def limit_figures(own_rows: OwnRows) -> DataFrame:
    """The limits in the fetches of each client, named by the settings that they come from."""
    f = FETCH_PARTITIONS
    figures = {
        key: Columns(text=F.when(F.col(f.reader) == reader, F.col(column)))
        for reader, of_reader in LIMITS.items()
        for key, column in of_reader.items()
    }
    return figure_rows(limits_by_client(own_rows), CLIENT, str(f.client_id), figures)


def limits_by_client(own_rows: OwnRows) -> DataFrame:
    """(client_id, reader, and the values of each column of SHOWN as a text): the limits in the fetches of a client."""
    f = FETCH_PARTITIONS
    limits = (first_values_text(F.col(column)).alias(column) for column in SHOWN.values())
    return own_rows(f).groupBy(f.client_id, f.reader).agg(*limits)


def first_values_text(column: Column) -> Column:
    """The first values in ascending order, as one text; null if there are none."""
    first = F.slice(F.array_sort(F.collect_set(column)), 1, MOST_VALUES)
    return F.when(F.size(first) > 0, F.array_join(first.cast("array<string>"), ", "))


def sums_with_slices(rows: DataFrame, of: str, at: str, sums: Mapping[str, Column], span: TimeSpan) -> DataFrame:
    """A row for each value of the column `of`, with sums over its rows.

    Each sum has a second column with the suffix `_by_slice`: the sums in the slices of the span, ascending.

    at: the column with the time of a row. sums: the aggregates over rows, by name.
    """
    place = F.floor((F.unix_micros(F.col(at)) - span.first_us) * SLICES / (span.seconds * US_PER_S))
    slice_no = F.greatest(F.least(place, F.lit(SLICES - 1)), F.lit(0)).alias("slice_no")
    by_slice = rows.groupBy(of, slice_no).agg(*(column.alias(name) for name, column in sums.items()))
    sums_by_thing = by_slice.groupBy(of).agg(
        *(F.sum(name).alias(name) for name in sums),
        *(F.collect_list(F.col(name).cast("double")).alias(f"{name}_by_slice") for name in sums),
    )

    def with_empty_slices(name: str) -> Column:
        empty = F.array_repeat(F.lit(0.0), F.lit(SLICES) - F.size(name))
        return F.sort_array(F.concat(F.col(name), empty))

    return sums_by_thing.withColumns({f"{name}_by_slice": with_empty_slices(f"{name}_by_slice") for name in sums})


def rate_columns(name: str, span: TimeSpan) -> Columns:
    """The columns of a rate: a sum of `sums_with_slices` per second, with the range of the rates of most slices."""
    by_slice, seconds = F.col(f"{name}_by_slice"), span.seconds / SLICES
    return Columns(F.col(name) / span.seconds, by_slice[LOWEST] / seconds, by_slice[HIGHEST] / seconds)
