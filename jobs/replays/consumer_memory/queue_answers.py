"""The summary's lines on the queues of librdkafka consumers: what they hold for the application in each lane."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from jobs.replays.algorithm import OwnRows
from jobs.scenarios.scenario import CAPTURED_LANE
from jobs.terminal.lane_rows import BETWEEN, NO_ROW, in_lane_order, merge_equal_lanes
from jobs.terminal.screen import Grid, size_text
from jobs.terminal.wording import duration, percent
from schemas.tables.gold_memory import LIBRDKAFKA_QUEUE
from schemas.tables.values import (
    CAPTURE_TOO_SHORT,
    NEVER_FULL,
    OTHER_FETCH_LIMITS,
    SEVERAL_PROCESSES,
    SIZES_NOT_MEASURED,
)

TITLE = "  Queues of librdkafka consumers: queued.max.messages.kbytes, queued.min.messages, fetch.queue.backoff.ms"
SUBJECT = "consumers"
HEAD = ("of", "lane", "clients", "asks below", "on top", "bound", "memory", "most", "full", "idle", "remarks")
NOTES = ("All figures are of the client whose bound is largest. Bytes are those of uncompressed values.", NO_ROW)
COLUMNS = {
    "asks below": "the client asks for more while its queue has less than this",
    "on top": "what can still come then: a response of each broker",
    "bound": "the most that the queue can have, whatever the application does: the two columns before, added up",
    "memory": "the bound, and 350 bytes for each message",
    "most": "the most that the queue has in the replay, at the application's captured pace; if it is not replayed, the "
    "most that the capture allows for",
    "full": "the share of the time in which the queue is full",
    "idle": "the time in which the application had nothing to do only because of a backoff",
}
WHY = {
    NEVER_FULL: "pace unknown: never full",
    SIZES_NOT_MEASURED: "sizes not measured",
    OTHER_FETCH_LIMITS: "not replayed: other fetch limits",
    SEVERAL_PROCESSES: "several processes, not told apart",
    CAPTURE_TOO_SHORT: "the capture does not fill it",
}
"""The column `unknown_for` in words."""


def largest_queues(own_rows: OwnRows) -> DataFrame:
    """A row for each lane: the client whose bound is largest, and the number of clients."""
    q = LIBRDKAFKA_QUEUE
    columns = (
        q.client_id, q.client_address, q.librdkafka, q.brokers, q.max_queued_bytes, q.min_queued_messages,
        q.threshold_bytes, q.overshoot_bytes, q.bound_bytes, q.memory_bound_bytes, q.queued_bytes_at_most,
        q.queued_bytes_max, q.full_share, q.idle_ms, q.unknown_for,
    )  # fmt: skip
    by_bound = F.struct(F.coalesce(q.bound_bytes, F.lit(-1)), F.col(q.messages), q.client_id, q.client_address)
    largest = F.max_by(F.struct(*columns), by_bound).alias("largest")
    return own_rows(q).groupBy(q.scenario).agg(F.count("*").alias("clients"), largest).select(
        q.scenario, "clients", "largest.*"
    )  # fmt: skip


def queues_table(rows: list[Row], lane_names: Sequence[str]) -> Grid:
    """A row for each lane, in the order of the lanes, without lanes that change nothing for queues."""
    captured = [row for row in rows if row[LIBRDKAFKA_QUEUE.scenario] == CAPTURED_LANE]
    cells = [queue_row(row, most_queued_bytes(row, captured)) for row in in_lane_order(rows, lane_names)]
    return Grid(HEAD, merge_equal_lanes(cells), ("of", "lane", "remarks"), NOTES, COLUMNS)


def most_queued_bytes(row: Row, captured: Sequence[Row]) -> int | None:
    """The most bytes that a lane's queue has in the replay. If it is not replayed, because the lane changes nothing for
    queues, the most that the capture allows for.
    """
    q = LIBRDKAFKA_QUEUE
    of_queue = (q.threshold_bytes, q.overshoot_bytes, q.unknown_for)
    at_most = [of[q.queued_bytes_at_most] for of in captured if all(of[name] == row[name] for name in of_queue)]
    return next(iter(at_most), None) if row[q.queued_bytes_max] is None else row[q.queued_bytes_max]


def queue_row(row: Row, most: int | None) -> list[str]:
    """One lane's cells. most: bytes in its queue."""
    q = LIBRDKAFKA_QUEUE
    lane = row[q.scenario].replace(f"{SUBJECT[:-1]}.", "").replace(",", BETWEEN)
    share = row[q.full_share]
    bounds = (q.threshold_bytes, q.overshoot_bytes, q.bound_bytes, q.memory_bound_bytes)
    return [
        SUBJECT, lane, f"{row['clients']:,}", *(size_text(row[name]) for name in bounds),
        size_text(most), "-" if share is None else percent(share), duration(row[q.idle_ms]),
        WHY.get(row[q.unknown_for] or "", "-"),
    ]  # fmt: skip
