"""The summary's lines on KIP-74: what each lane would do to consumers and to followers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from jobs.replays.algorithm import OwnRows
from jobs.replays.fetch_max_bytes.producer_answers import producer_lanes_rows, producer_table
from jobs.replays.fetch_max_bytes.ranges import fetch_ranges, held_text, table_caveats
from jobs.replays.ranged import NOT_READ, time_with_range
from jobs.terminal.lane_rows import BETWEEN, NO_ROW, in_lane_order, merge_equal_lanes
from jobs.terminal.screen import Grid, grid_lines, size_text
from schemas.tables.gold import FETCH_CONSUMERS, FETCH_FAIRNESS, FETCH_MEMORY
from udfs.replay.fetch_max_bytes.closed_loop.events import FETCH_CAP
from udfs.replay.fetch_max_bytes.quotas import CONSUMER_QUOTA
from udfs.replay.fetch_max_bytes.rows import CLOSED_LOOP, OPEN_LOOP

TITLE = "fetch.max.bytes (KIP-74)"
LONGEST_WAIT = "the longest time in which a partition had records and got none"
CUT_TAILS = "bytes of batches that the end of a response cuts off, so that they are fetched again"
OPEN = "  open loop: each captured fetch answered under other limits"
OPEN_HEAD = ("reader", "lane", "p99", "largest", "empty", "longest wait", "Jain", "cut tails", "bound", "unknown")
BOUND = (
    "KIP-74's bound on memory, of the reader with the largest: min(brokers x fetch.max.bytes, partitions x "
    "max.partition.fetch.bytes)"
)
OPEN_COLUMNS = {
    "p99": "record bytes that 99 % of the worst reader's responses do not exceed",
    "largest": "record bytes of the largest response",
    "empty": "how often a partition came away empty from a fetch although it had records",
    "longest wait": LONGEST_WAIT,
    "Jain": "Jain's fairness index of the worst reader: 1 if each partition gets the same share of what it had",
    "cut tails": CUT_TAILS,
    "bound": BOUND,
    "unknown": "fetches whose result depends on something that the capture does not show",
}
CLOSED = "  closed loop: each reader goes on from what it received, until everything that the capture shows is read"
CLOSED_NOTES = (
    "In brackets is the range, p10 to p90, of replays in which the pace of clients, brokers and producers is drawn "
    "anew from the capture. A figure without brackets does not depend on pace.",
)
CLOSED_HEAD = ("reader", "lane", "catch-up", "longest wait", "of", "waiting", "requests", "cut tails", "held", "bound")
CLOSED_COLUMNS = {
    "catch-up": f"the time until the slowest partition's backlog is read; `{NOT_READ}` if one is not read to its end",
    "longest wait": LONGEST_WAIT,
    "of": "the partition that waited longest",
    "waiting": "partitions that came away empty from a fetch although they had records",
    "cut tails": CUT_TAILS,
    "held": "the most record bytes that a reader has received and the application has not taken yet",
    "bound": BOUND,
}


def open_lanes(own_rows: OwnRows) -> DataFrame:
    """A row for each reader and lane of the open loop."""
    c, f = FETCH_CONSUMERS, FETCH_FAIRNESS
    by_lane = own_rows(c).where(F.col(c.mode) == OPEN_LOOP).groupBy(c.reader, c.scenario).agg(
        F.max(c.response_bytes_p99).alias("p99"), F.max(c.response_bytes_max).alias("largest"),
        F.min(c.jain_index).alias("jain"), F.sum(c.empty_though_available).alias("empty"),
        F.sum(c.cut_tail_bytes).alias("cut"), F.max(c.memory_bound_bytes).alias("bound"),
        F.sum(c.unknown_requests).alias("unknown"), F.sum(c.first_batch_overrides).alias("overrides"),
        F.sum(c.bytes).alias("bytes"),
    )  # fmt: skip
    waits = own_rows(f).where(F.col(f.mode) == OPEN_LOOP).groupBy(f.reader, f.scenario)
    return by_lane.join(waits.agg(F.max(f.longest_wait_ms).alias("wait")), [str(c.reader), str(c.scenario)])


def closed_lanes(own_rows: OwnRows) -> DataFrame:
    """A row for each kind of reader and lane of the closed loop.

    own_bound: the memory bound of the reader that held most. unknown_users: the readers whose user is not known, in a
    lane with a quota of users. fetchers: the fetcher threads of followers. not_dealt: the captured readers that a lane
    with another number of fetchers leaves as they are; for consumers all of them.
    """
    c, f, m = FETCH_CONSUMERS, FETCH_FAIRNESS, FETCH_MEMORY
    is_throttled = F.col(c.throttle_time_ms) > 0
    has_quota = is_throttled | F.col(c.scenario).contains(CONSUMER_QUOTA)
    by_lane = own_rows(c).where(F.col(c.mode) == CLOSED_LOOP).groupBy(c.reader, c.scenario).agg(
        F.sum(c.requests).alias("requests"), F.sum(c.cut_tail_bytes).alias("cut"), F.max(c.catch_up_ms).alias("took"),
        F.max(F.col(c.catch_up_ms).isNull()).alias("never"), F.sum(c.left_out).alias("left_out"),
        F.sum(c.given_up).alias("given_up"), F.count("*").alias("readers"),
        F.count_if(is_throttled).alias("throttled"),
        F.count_if(has_quota & F.col(c.user).isNull()).alias("unknown_users"),
        F.sum(c.fetchers).alias("fetchers"), F.count_if(F.col(c.fetchers).isNull()).alias("not_dealt"),
    )  # fmt: skip
    name = F.concat_ws("-", f.topic, f.partition).alias("partition")
    # The largest struct has the longest wait; if several waits are equally long, it has the last name.
    waited = F.struct(f.longest_wait_ms, name, f.share_of_available, f.share_of_bytes, f.client_id)
    waits = own_rows(f).where(F.col(f.mode) == CLOSED_LOOP).groupBy(f.reader, f.scenario).agg(
        F.max(waited).alias("longest"), F.sum((F.col(f.empty_though_available) > 0).cast("int")).alias("waiting"),
    )  # fmt: skip
    most = F.max(F.struct(m.bytes_max, m.memory_bound_bytes))
    held = own_rows(m).groupBy(m.reader, m.scenario).agg(
        F.max(m.bytes_max).alias("held"), F.max(m.memory_bound_bytes).alias("bound"),
        most[m.memory_bound_bytes].alias("own_bound"),
    )  # fmt: skip
    keys = [str(c.reader), str(c.scenario)]
    return by_lane.join(waits, keys).join(held, keys).join(fetch_ranges(own_rows, *keys), keys, "left")


QUERIES = {"open": open_lanes, "closed": closed_lanes, "producers": producer_lanes_rows}


def closed_table(rows: list[Row], lane_names: Sequence[str]) -> Grid:
    """A row per reader and lane of the closed loop, in the order of the lanes."""
    cells, notes = cells_by_lane(rows, lane_names, closed_cells), (*CLOSED_NOTES, *table_caveats(rows), NO_ROW)
    return Grid(CLOSED_HEAD, cells, ("reader", "lane", "of"), notes, CLOSED_COLUMNS)


def open_table(rows: list[Row], lane_names: Sequence[str]) -> Grid:
    """A row per reader and lane of the open loop, in the order of the lanes."""
    return Grid(OPEN_HEAD, cells_by_lane(rows, lane_names, open_cells), ("reader", "lane"), (NO_ROW,), OPEN_COLUMNS)


def cells_by_lane(rows: list[Row], lane_names: Sequence[str], cells_of: Callable[[Row], list[str]]) -> list[list[str]]:
    """The rows of one of the tables, without lanes that change nothing for their reader."""
    ordered = sorted(in_lane_order(rows, lane_names), key=itemgetter("reader"))
    return merge_equal_lanes([[row["reader"], lane_for_reader(row), *cells_of(row)] for row in ordered])


def answer_lines(rows_by_query: Mapping[str, list[Row]], lane_names: Sequence[str]) -> Iterable[str]:
    """The summary's lines: for each loop a table with a row for each kind of reader and lane, in their order."""
    if producers := rows_by_query["producers"]:
        yield from grid_lines(producer_table(producers, lane_names))
    if not any((rows_by_query["closed"], rows_by_query["open"])):
        yield "  no fetch was captured"
        return
    yield CLOSED
    yield from grid_lines(closed_table(rows_by_query["closed"], lane_names))
    left_out = sum({row["reader"]: row["left_out"] for row in rows_by_query["closed"]}.values())
    if left_out:
        yield f"  ! {left_out:,} fetches are beyond the first {FETCH_CAP:,} of their connections, and left out"
    for reader, given_up in {
        row["reader"]: row["given_up"] for row in rows_by_query["closed"] if row["given_up"]
    }.items():
        yield f"  ! catch-up leaves out {given_up:,} backlogs that a {reader} left before they were read"
    yield OPEN
    yield from grid_lines(open_table(rows_by_query["open"], lane_names))


def lane_for_reader(row: Row) -> str:
    """The lane's name, without `consumer.` or `replica.` before settings of the row's own kind of reader."""
    return row["scenario"].replace(f"{row['reader']}.", "").replace(",", BETWEEN)


def open_cells(row: Row) -> list[str]:
    """The cells with the results of a lane of the open loop."""
    jain = "-" if row["jain"] is None else f"{row['jain']:.2f}"
    return [
        size_text(row["p99"]), size_text(row["largest"]), f"{row['empty']:,}", f"{row['wait']:,.0f} ms", jain,
        size_text(row["cut"]),
        size_text(row["bound"]), f"{row['unknown']:,}",
    ]  # fmt: skip


def closed_cells(row: Row) -> list[str]:
    """The cells with the results of a lane of the closed loop."""
    longest = row["longest"]
    waited = longest["longest_wait_ms"]
    return [
        NOT_READ if row["never"] else time_with_range(row["took"], row["catch_up_ms_range"]),
        time_with_range(waited, row["longest_wait_ms_range"]), longest["partition"] if waited else "-",
        f"{row['waiting']:,}", f"{row['requests']:,}", size_text(row["cut"]), held_text(row),
        size_text(row["bound"]),
    ]  # fmt: skip
