"""The summary's lines on KIP-74: what each lane would do to consumers and to followers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from jobs.algorithm import OwnRows
from jobs.screen import aligned, size
from schemas.tables.gold import FETCH_CONSUMERS, FETCH_FAIRNESS

TITLE = "fetch.max.bytes (KIP-74), open loop: each captured fetch answered under other limits"
NOTES = (
    "  * reads that gave nothing though there was something. p99, largest: of record bytes in a response, the",
    "    worst reader's. bound: min(brokers x fetch.max.bytes, partitions x max.partition.fetch.bytes), the largest's.",
)
HEAD = ("reader", "lane", "p99", "largest", "empty*", "longest wait", "Jain", "cut tails", "bound", "unknown")


def lanes(own_rows: OwnRows) -> DataFrame:
    """A row per reader and lane."""
    c, f = FETCH_CONSUMERS, FETCH_FAIRNESS
    by_lane = own_rows(c).groupBy(c.reader, c.scenario).agg(
        F.max(c.response_bytes_p99).alias("p99"), F.max(c.response_bytes_max).alias("largest"),
        F.min(c.jain_index).alias("jain"), F.sum(c.empty_though_available).alias("empty"),
        F.sum(c.cut_tail_bytes).alias("cut"), F.max(c.memory_bound_bytes).alias("bound"),
        F.sum(c.unknown_requests).alias("unknown"),
    )  # fmt: skip
    waits = own_rows(f).groupBy(f.reader, f.scenario).agg(F.max(f.longest_wait_ms).alias("wait"))
    return by_lane.join(waits, [str(c.reader), str(c.scenario)])


QUERIES = {"lanes": lanes}


def answer_lines(found: Mapping[str, list[Row]], lane_names: Sequence[str]) -> Iterable[str]:
    """A line per reader and lane, in the order of the lanes."""
    c = FETCH_CONSUMERS
    rows = sorted(found["lanes"], key=lambda row: (row[c.reader], lane_names.index(row[c.scenario])))
    return aligned(HEAD, distinct_lanes([answer_row(row) for row in rows]), ("reader", "lane"), NOTES)


def answer_row(row: Row) -> list[str]:
    """One lane's cells; the reader's own settings without saying again whose they are."""
    lane = row["scenario"].replace(f"{row['reader']}.", "").replace(",", "  ")
    jain = "-" if row["jain"] is None else f"{row['jain']:.2f}"
    return [
        row["reader"], lane, size(row["p99"]), size(row["largest"]), f"{row['empty']:,}", f"{row['wait']:,.0f} ms",
        jain, size(row["cut"]), size(row["bound"]), f"{row['unknown']:,}",
    ]  # fmt: skip


def distinct_lanes(table: list[list[str]]) -> list[list[str]]:
    """Without lanes that change nothing for their reader: followers under consumers' settings, and vice versa."""
    captured = {row[0]: row[2:] for row in table if row[1] == "captured"}
    return [row for row in table if row[1] == "captured" or row[2:] != captured.get(row[0])]
