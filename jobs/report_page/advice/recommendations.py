"""All recommendations of a run: made from what its tables hold, kept in a table of their own, and read from there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jobs.gates.row_rules import Watch
from jobs.lake.delta_tables import has_table, rows_of
from jobs.lake.target import Target
from jobs.report_page.advice.aim_advice import with_aims
from jobs.report_page.advice.batch_sizes import batch_sizes, split_producers, split_topics
from jobs.report_page.advice.broker_partitions import broker_partitions
from jobs.report_page.advice.cache_slots import cache_slots
from jobs.report_page.advice.fetch_limits import consumer_lanes, fetch_limits
from jobs.report_page.advice.floors import below_floor
from jobs.report_page.advice.memory_pools import memory_pools, producer_lanes
from jobs.report_page.advice.recommendation import Recommendation, from_row, ranked, recommendation_rows
from jobs.report_page.advice.withheld import withheld
from jobs.report_page.question import Findings, Query
from schemas.tables import algorithms
from schemas.tables.gold_recommendations import RECOMMENDATIONS

PARTS: Mapping[str, Callable[[Findings], Iterable[Recommendation]]] = {
    algorithms.FETCH_MAX_BYTES: fetch_limits,
    algorithms.CONSUMER_MEMORY: memory_pools,
    algorithms.SESSION_CACHE: cache_slots,
    algorithms.BATCH_SPLIT: batch_sizes,
    algorithms.PARTITION_LIMITS: broker_partitions,
}
QUERIES: Mapping[str, tuple[Query, ...]] = {
    algorithms.FETCH_MAX_BYTES: (below_floor, consumer_lanes),
    algorithms.CONSUMER_MEMORY: (below_floor, producer_lanes),
    algorithms.SESSION_CACHE: (below_floor,),
    algorithms.BATCH_SPLIT: (below_floor, split_producers, split_topics),
    algorithms.PARTITION_LIMITS: (below_floor,),
}
"""What is asked of the tables of each replay for it, beside what questions ask."""


def recommended(findings: Findings) -> list[Recommendation]:
    """What the replays of a run carry, in the order in which it is shown."""
    made = (one for name, part in PARTS.items() if name in findings.lanes for one in part(findings))
    return ranked(withheld(findings, with_aims(findings, made)))


def write_recommendations(spark: SparkSession, lake: str, run_id: str, made: Iterable[Recommendation]) -> None:
    """Put them in the place of those that the run had."""
    Target(lake, run_id, Watch()).write_here(spark, recommendation_rows(run_id, made), RECOMMENDATIONS)


def read_recommendations(spark: SparkSession, lake: str, run_id: str) -> list[Recommendation]:
    """Those that a run has; none where it was ended before it had any."""
    t = RECOMMENDATIONS
    if not has_table(spark, lake, t):
        return []
    rows = rows_of(spark, lake, t, run_id).where(F.col(t.run_id) == run_id).orderBy(t.place).collect()
    return [from_row(row) for row in rows]
