"""All recommendations of a run: made from the run's tables, stored in a table of their own, and read from there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jobs.lake.delta_tables import has_table, stored_rows
from jobs.lake.target import Target
from jobs.report_page.advice.aim_advice import replace_by_aims
from jobs.report_page.advice.batch_sizes import advise_batch_sizes, split_producers, split_topics
from jobs.report_page.advice.broker_partitions import advise_partition_limits
from jobs.report_page.advice.cache_slots import advise_cache_slots
from jobs.report_page.advice.fetch_limits import advise_fetch_limits, consumer_lanes
from jobs.report_page.advice.floors import metrics_below_floor
from jobs.report_page.advice.memory_pools import advise_memory_pools, producer_lanes
from jobs.report_page.advice.recommendation import (
    Recommendation,
    rank_recommendations,
    recommendation_from_row,
    recommendation_rows,
)
from jobs.report_page.advice.share_sessions import advise_share_sessions
from jobs.report_page.advice.withheld import withhold_untrusted
from jobs.report_page.fetch_max_bytes.rack_reads import QUERIES as OF_RACKS
from jobs.report_page.fetch_max_bytes.throttles import throttled_clients
from jobs.report_page.question import Findings, Query
from schemas.tables import algorithms
from schemas.tables.gold_recommendations import RECOMMENDATIONS

PARTS: Mapping[str, tuple[Callable[[Findings], Iterable[Recommendation]], ...]] = {
    algorithms.FETCH_MAX_BYTES: (advise_fetch_limits,),
    algorithms.CONSUMER_MEMORY: (advise_memory_pools,),
    algorithms.SESSION_CACHE: (advise_cache_slots, advise_share_sessions),
    algorithms.BATCH_SPLIT: (advise_batch_sizes,),
    algorithms.PARTITION_LIMITS: (advise_partition_limits,),
}
QUERIES: Mapping[str, tuple[Query, ...]] = {
    algorithms.FETCH_MAX_BYTES: (metrics_below_floor, consumer_lanes, *OF_RACKS, throttled_clients),
    algorithms.CONSUMER_MEMORY: (metrics_below_floor, producer_lanes),
    algorithms.SESSION_CACHE: (metrics_below_floor,),
    algorithms.BATCH_SPLIT: (metrics_below_floor, split_producers, split_topics),
    algorithms.PARTITION_LIMITS: (metrics_below_floor,),
}
"""The queries that recommendations need in addition to those of the questions, by replay."""


def make_recommendations(findings: Findings) -> list[Recommendation]:
    """The recommendations that follow from the replays of a run, in the order in which they are shown."""
    parts = (part for name, of_replay in PARTS.items() if name in findings.lanes for part in of_replay)
    made = (one for part in parts for one in part(findings))
    return rank_recommendations(withhold_untrusted(findings, replace_by_aims(findings, made)))


def write_recommendations(spark: SparkSession, lake: str, run_id: str, made: Iterable[Recommendation]) -> None:
    """Write a run's recommendations to `recommendations`, instead of those that it had there."""
    Target(lake, run_id).write_here(spark, recommendation_rows(run_id, made), RECOMMENDATIONS)


def read_recommendations(spark: SparkSession, lake: str, run_id: str) -> list[Recommendation]:
    """The recommendations of a run, from the table; none if the run ended before it wrote any."""
    t = RECOMMENDATIONS
    if not has_table(spark, lake, t):
        return []
    rows = stored_rows(spark, lake, t, run_id).where(F.col(t.run_id) == run_id).orderBy(t.place).collect()
    return [recommendation_from_row(row) for row in rows]
