"""Figures of a run: outcomes of its replays in the captured lane, recommendations, and agreement with its capture."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jobs.comparison.figure_rows import Columns, figure_rows, share_columns
from jobs.replays.algorithm import OwnRows
from jobs.replays.consumer_memory.ranges import MOST, pool_ranges
from jobs.replays.ranged import range_column
from jobs.scenarios.scenario import CAPTURED_LANE
from jobs.terminal.lane_rows import SCENARIO
from schemas.tables import algorithms
from schemas.tables.gold import FETCH_RANGES, FIDELITY
from schemas.tables.gold_limits import PARTITIONS_PER_BROKER
from schemas.tables.gold_memory import BROKER_MEMORY, CONSUMER_MEMORY, PRODUCER_MEMORY
from schemas.tables.gold_recommendations import RECOMMENDATIONS
from schemas.tables.gold_sessions import SESSION_CACHE, SESSION_SLOTS
from schemas.tables.gold_splits import BATCH_SPLIT
from schemas.tables.table import Table

CLIENT, BROKER, REPLAY = "client", "broker", "replay"
FETCH_METRICS = ("longest_wait_ms", "catch_up_ms", "held_bytes")
"""The metrics of fetch_ranges that are compared. How often somebody fetches says little in addition."""
NEVER = float("inf")
"""The time of a backlog that is not read to its end."""
ADVISED, OF = "recommended", " of "
"""The metric of advice, and the text between a setting and its owner."""


def fetch_outcomes(own_rows: OwnRows, lane: Column | None = None) -> DataFrame:
    """The largest wait, catch-up and memory among the processes of each client, with their ranges."""
    t = FETCH_RANGES
    rows = (
        own_rows(t).where(is_in_captured_lane() if lane is None else lane).where(F.col(t.metric).isin(*FETCH_METRICS))
    )
    numbers = [F.coalesce(F.col(name), F.lit(NEVER)).alias(name) for name in (t.value, t.p10, t.p90)]
    most = F.max_by(F.struct(*numbers), F.coalesce(F.col(t.p50), F.lit(NEVER))).alias("most")
    of = rows.groupBy(t.client_id).pivot(t.metric, [*FETCH_METRICS]).agg(most)
    return figure_rows(of, CLIENT, str(t.client_id), {
        name: Columns(F.col(name)[str(t.value)], F.col(name)[str(t.p10)], F.col(name)[str(t.p90)])
        for name in FETCH_METRICS
    })  # fmt: skip


def memory_outcomes(own_rows: OwnRows) -> DataFrame:
    """The most memory in use of each client and broker, and how many of a producer's batches wait for memory."""
    c, b, p = CONSUMER_MEMORY, BROKER_MEMORY, PRODUCER_MEMORY
    most = F.col(range_column(MOST))
    used = {"used_bytes_max": Columns(F.col(c.used_bytes_max), most["p10"], most["p90"])}
    of_consumers = (
        rows_in_captured_lane(own_rows(c)).groupBy(c.client_id).agg(F.max(c.used_bytes_max).alias(c.used_bytes_max))
    )
    of_producers = rows_in_captured_lane(own_rows(p)).groupBy(p.client_id).agg(
        F.max(p.used_bytes_max).alias(p.used_bytes_max), F.sum(p.waits).alias("waits"),
        F.sum(p.batches_begun).alias("batches"),
    )  # fmt: skip
    of_brokers = rows_in_captured_lane(own_rows(b)).select(b.broker, b.used_bytes_max)
    produced = {
        "producer_used_bytes_max": Columns(F.col(p.used_bytes_max), most["p10"], most["p90"]),
        "waiting_batch_share": share_columns(F.col("waits"), F.col("batches")),
    }
    return (
        figure_rows(with_pool_ranges(of_consumers, own_rows, c, c.client_id), CLIENT, str(c.client_id), used)
        .unionByName(
            figure_rows(with_pool_ranges(of_producers, own_rows, p, p.client_id), CLIENT, str(p.client_id), produced)
        )
        .unionByName(figure_rows(with_pool_ranges(of_brokers, own_rows, b, b.broker), BROKER, str(b.broker), used))
    )


def with_pool_ranges(rows: DataFrame, own_rows: OwnRows, table: Table, key: str) -> DataFrame:
    """The rows, one for each value of the key, with the ranges of their pools' figures in the captured lane."""
    ranges = pool_ranges(lambda of: rows_in_captured_lane(own_rows(of)), table, key)
    return rows.join(ranges, str(key), "left")


def session_outcomes(own_rows: OwnRows) -> DataFrame:
    """The sessions that each broker has, refuses and loses, and the slots that it needs."""
    c, s = SESSION_CACHE, SESSION_SLOTS
    of = rows_in_captured_lane(own_rows(c)).groupBy(c.broker).agg(*session_sums(), F.max(c.live_sessions).alias("live"))
    needed = rows_in_captured_lane(own_rows(s))
    return figure_rows(of, BROKER, str(c.broker), {
        "live_sessions": Columns(F.col("live")), **session_shares(),
    }).unionByName(
        figure_rows(needed, BROKER, str(s.broker), {"zero_harm_slots": Columns(F.col(s.zero_harm_slots))})
    )  # fmt: skip


def session_sums() -> list[Column]:
    """Sums over rows of session_cache."""
    c = SESSION_CACHE
    return [F.sum(column).alias(column) for column in (c.fetches, c.full_fetches, c.created, c.refused, c.not_found)]


def session_shares() -> dict[str, Columns]:
    """The shares that follow from the sums of `session_sums`, by metric."""
    c = SESSION_CACHE
    return {
        "full_fetch_share": share_columns(F.col(c.full_fetches), F.col(c.fetches)),
        "refused_share": share_columns(F.col(c.refused), F.col(c.created) + F.col(c.refused)),
        "not_found_share": share_columns(F.col(c.not_found), F.col(c.fetches)),
    }


def split_outcomes(own_rows: OwnRows, lane: Column | None = None) -> DataFrame:
    """How many batches of each producer are split, how many fail, and the largest batch."""
    t = BATCH_SPLIT
    of = own_rows(t).where(is_in_captured_lane() if lane is None else lane).groupBy(t.client_id).agg(
        F.sum(t.splits).alias("splits"), F.sum(F.col(t.batches) + F.col(t.split_batches)).alias("sent"),
        F.sum(t.failed_batches).alias("failed"), F.max(t.batch_bytes_max).alias("largest"),
    )  # fmt: skip
    return figure_rows(of, CLIENT, str(t.client_id), {
        "split_share": share_columns(F.col("splits"), F.col("sent")),
        "failed_batches": Columns(F.col("failed")),
        "batch_bytes_max": Columns(F.col("largest")),
    })  # fmt: skip


def partition_outcomes(own_rows: OwnRows) -> DataFrame:
    """The replicas of each broker at the end."""
    t = PARTITIONS_PER_BROKER
    of = rows_in_captured_lane(own_rows(t)).groupBy(t.broker).agg(F.max_by(t.partitions, t.at).alias("partitions"))
    return figure_rows(of, BROKER, F.col(t.broker).cast("string"), {"partitions": Columns(F.col("partitions"))})


def advice_figures(own_rows: OwnRows) -> DataFrame:
    """What to do about each setting of each client, topic or cluster."""
    t = RECOMMENDATIONS
    whose = F.concat(t.setting, F.when(F.col(t.scope) == "", "").otherwise(F.concat(F.lit(OF), t.scope)))
    to = F.coalesce(F.col(t.recommended), F.lit("not known"))
    return figure_rows(own_rows(t), "setting", whose, {ADVISED: Columns(text=F.concat_ws(" ", t.verdict, to))})


def agreement_figures(own_rows: OwnRows) -> DataFrame:
    """How often the captured settings give what was captured, by replay and metric."""
    t = FIDELITY
    of = own_rows(t).groupBy(t.algorithm, t.metric, t.reader).agg(
        F.sum(t.checked).alias(t.checked), F.sum(t.agreed).alias(t.agreed)
    )  # fmt: skip
    name = F.concat_ws(" ", t.algorithm, t.metric, t.reader)
    return figure_rows(of, REPLAY, name, {"agreement": share_columns(F.col(t.agreed), F.col(t.checked))})


def rows_in_captured_lane(rows: DataFrame) -> DataFrame:
    """The rows of the lane that replays the settings in force."""
    return rows.where(is_in_captured_lane())


def is_in_captured_lane() -> Column:
    """Whether a row belongs to the lane that replays the settings in force."""
    return F.col(SCENARIO) == CAPTURED_LANE


OUTCOMES: Mapping[str, Callable[[OwnRows], DataFrame]] = {
    algorithms.FETCH_MAX_BYTES: fetch_outcomes,
    algorithms.CONSUMER_MEMORY: memory_outcomes,
    algorithms.SESSION_CACHE: session_outcomes,
    algorithms.BATCH_SPLIT: split_outcomes,
    algorithms.PARTITION_LIMITS: partition_outcomes,
}
"""The function that makes figures of a replay's outcomes, by the replay's name."""
