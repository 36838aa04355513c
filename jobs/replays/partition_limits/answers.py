"""The summary's lines on KIP-578, a proposal: what each lane refuses, and which limits would have refused nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from jobs.replays.algorithm import OwnRows
from jobs.terminal.lane_rows import BETWEEN, grid_by_lane
from jobs.terminal.screen import grid_lines, wrapped_lines
from schemas.tables.gold_limits import (
    PARTITION_LIMIT_CURVE,
    PARTITION_LIMIT_HEADROOM,
    PARTITION_LIMITS,
    PARTITIONS_PER_BROKER,
)

TITLE = "Partition limits (KIP-578, a proposal): each captured change to topics under limits that no release has"
HEAD = ("lane", "changes", "done", "max.broker.partitions", "max.partitions", "Kafka's own", "refused before",
        "failed otherwise", "headroom", "reached")  # fmt: skip
COUNTED = (
    PARTITION_LIMITS.tried, PARTITION_LIMITS.done, PARTITION_LIMITS.refused_by_broker_limit,
    PARTITION_LIMITS.refused_by_cluster_limit, PARTITION_LIMITS.refused_by_kafka, PARTITION_LIMITS.refused_before,
    PARTITION_LIMITS.otherwise_failed,
)  # fmt: skip
"""The numbers of changes with each result, in the order of HEAD: the first is the sum of the others."""
NOTES = ("Limits count replicas, without those of internal topics.",)
COLUMNS = {
    "changes": "changes to topics that were asked for, including Metadata requests that would create a topic; if that "
    "topic was refused, each further one counts",
    "done": "changes that the lane allows",
    "max.broker.partitions": "changes that this limit refuses",
    "max.partitions": "changes that this limit refuses",
    "Kafka's own": "changes that Kafka refuses today: 10,000 partitions in a request, or the controller mutation quota",
    "refused before": "changes that fail because their topic was refused earlier",
    "failed otherwise": "changes that fail for another reason, such as a topic that exists already",
    "headroom": "replicas until the nearest limit is reached",
    "reached": "the day on which it is reached at the growth of this run, if that spans a day or more",
}
LOWEST_LIMIT = 1
"""Where the curve of limits begins. A limit that refuses nothing from here on is one that no captured change meets."""
SPAN_FOR_A_DATE_MS = 86_400_000
"""Growth over less than a day makes no forecast."""


def lanes(own_rows: OwnRows) -> DataFrame:
    """A row for each lane: the results of its changes, and the headroom of its nearest limit."""
    t, h = PARTITION_LIMITS, PARTITION_LIMIT_HEADROOM
    sums = own_rows(t).groupBy(t.scenario).agg(*(F.sum(name).alias(name) for name in COUNTED))
    breach = F.min(F.when(F.col("span") >= SPAN_FOR_A_DATE_MS, F.col(h.breach_at)))
    room = own_rows(h).crossJoin(F.broadcast(counted_time(own_rows))).groupBy(h.scenario).agg(
        F.min(h.headroom).alias(h.headroom), F.date_format(breach, "yyyy-MM-dd").alias(h.breach_at)
    )  # fmt: skip
    return sums.join(room, str(t.scenario), "left")


def counted_time(own_rows: OwnRows) -> DataFrame:
    """(span): the time over which replicas are counted, ms."""
    p = PARTITIONS_PER_BROKER
    return own_rows(p).agg((F.unix_millis(F.max(p.at)) - F.unix_millis(F.min(p.at))).alias("span"))


def smallest_safe_limits(own_rows: OwnRows) -> DataFrame:
    """For each limit the smallest value at which nothing is refused."""
    c = PARTITION_LIMIT_CURVE
    return own_rows(c).where(F.col(c.limit_to).isNull()).select(c.refused_by, c.limit_from).orderBy(c.refused_by)


QUERIES = {"lanes": lanes, "safe": smallest_safe_limits}


def answer_lines(rows: Mapping[str, list[Row]], lane_names: Sequence[str]) -> Iterable[str]:
    """A line for each lane in their order, and a paragraph on the smallest limits that refuse nothing.

    rows: those of each of QUERIES.
    """
    if not rows["lanes"]:
        return ["  no change to topics was asked for"]
    lowest = f"From {safe_limits_text(rows['safe'])} on, nothing is refused."
    more = "The table partition_limit_curve has the first refusal of every other limit."
    return [*grid_lines(lanes_table(rows["lanes"], lane_names)), *wrapped_lines("  ", f"{lowest} {more}")]


def exceedable(rows: Iterable[Row]) -> list[Row]:
    """Those of the smallest safe limits that a captured change could have exceeded, had they been lower."""
    return [row for row in rows if row[PARTITION_LIMIT_CURVE.limit_from] > LOWEST_LIMIT]


def safe_limits_text(rows: Sequence[Row]) -> str:
    """The smallest limits that refuse nothing; only the exceedable ones, if there are any."""
    c = PARTITION_LIMIT_CURVE
    return " or ".join(f"{row[c.refused_by]}={row[c.limit_from]:,}" for row in exceedable(rows) or rows)


def answer_row(row: Row) -> list[str]:
    """The cells of a lane, in the order of HEAD."""
    t, h = PARTITION_LIMITS, PARTITION_LIMIT_HEADROOM
    room = "-" if row[h.headroom] is None else f"{row[h.headroom]:,}"
    counts = (f"{row[name]:,}" for name in COUNTED)
    return [row[t.scenario].replace(",", BETWEEN), *counts, room, row[h.breach_at] or "-"]


lanes_table = partial(grid_by_lane, HEAD, answer_row, notes=NOTES, columns=COLUMNS)
"""The table with a row for each lane, from rows of `lanes` and the lanes' names in order."""
