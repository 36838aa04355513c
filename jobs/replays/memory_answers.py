"""The summary's lines on memory: what consumers, brokers and producers would hold in each lane."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from jobs.replays.algorithm import OwnRows
from jobs.replays.lane_rows import distinct_lanes, in_lane_order
from jobs.screen import Grid, grid_lines, size
from schemas.tables.gold_memory import BROKER_MEMORY, CONSUMER_MEMORY, PRODUCER_MEMORY
from schemas.tables.table import Table

TITLE = "Memory: buffer.memory of consumers (KIP-81, a proposal), queued.max.request.bytes, buffer.memory of producers"
HEAD = ("of", "lane", "p99", "most", "no wait from*", "waits", "longest wait", "depleted", "throughput", "stuck")
NOTES = (
    "  * the smallest pool in which nobody waits. All columns: of the worst client or broker. Capture times tell when",
    "    memory was held; a bound delays what comes behind it. stuck: connections, with nothing left to free memory.",
)


def worst(rows: DataFrame, side: str, smallest: Column, depleted: Column, ratio: Column, stuck: Column) -> DataFrame:
    """A row per lane of one side's table."""
    t: Table = CONSUMER_MEMORY
    return rows.groupBy(t.scenario).agg(
        F.lit(side).alias("of"), F.max(t.used_bytes_p99).alias("p99"), F.max(t.used_bytes_max).alias("most"),
        F.max(smallest).alias("smallest"), F.sum(t.waits).alias("waits"), F.max(t.wait_ms_max).alias("longest"),
        F.max(depleted).alias("depleted"), F.min(ratio).alias("ratio"), F.sum(stuck).alias("stuck"),
    )  # fmt: skip


def lanes(own_rows: OwnRows) -> DataFrame:
    """A row per side and lane."""
    c, b, p = CONSUMER_MEMORY, BROKER_MEMORY, PRODUCER_MEMORY
    none = F.lit(None).cast("double")
    pool = (F.col(c.smallest_pool_bytes), F.col(c.depleted_share), F.col(c.throughput_ratio))
    consumers = worst(own_rows(c), "consumers", *pool, F.col(c.stuck_connections) + F.col(c.larger_than_pool))
    brokers = worst(own_rows(b), "brokers", *pool, F.col(b.larger_than_limit))
    refused = F.col(p.exhausted) + F.col(p.larger_than_buffer)
    producers = worst(own_rows(p), "producers", F.col(p.used_bytes_max), none, none, refused)
    return consumers.unionByName(brokers).unionByName(producers)


QUERIES = {"lanes": lanes}
SIDES = ("consumers", "brokers", "producers")


def lanes_table(rows: list[Row], lane_names: Sequence[str]) -> Grid:
    """A row per side and lane, in the order of the lanes, without lanes that change nothing for their side."""
    ordered = sorted(in_lane_order(rows, lane_names), key=lambda row: SIDES.index(row["of"]))
    return Grid(HEAD, distinct_lanes([answer_row(row) for row in ordered]), ("of", "lane"), NOTES)


def answer_lines(found: Mapping[str, list[Row]], lane_names: Sequence[str]) -> Iterable[str]:
    """The table as lines."""
    return grid_lines(lanes_table(found["lanes"], lane_names))


def answer_row(row: Row) -> list[str]:
    """One lane's cells."""
    lane = row[CONSUMER_MEMORY.scenario].replace(f"{row['of'][:-1]}.", "").replace(",", "  ")
    depleted = "-" if row["depleted"] is None else f"{100 * row['depleted']:.1f} %"
    ratio = "-" if row["ratio"] is None else f"{row['ratio']:.2f}"
    return [
        row["of"], lane, size(row["p99"]), size(row["most"]), size(row["smallest"]), f"{row['waits']:,}",
        f"{row['longest']:,.0f} ms", depleted, ratio, f"{row['stuck']:,}",
    ]  # fmt: skip
