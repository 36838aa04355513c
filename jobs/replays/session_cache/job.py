"""session_cache: KIP-227 on the silver tables, every broker's cache and every client in closed loop in every lane."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.replays.algorithm import Algorithm, Source
from jobs.replays.lane_settings import lane_settings
from jobs.replays.session_cache.answers import QUERIES, TITLE, answer_lines
from jobs.replays.silver import Read, dealt_silver, read_small_table
from jobs.session.one_shuffle import replay_shards, shard_count
from schemas.tables import algorithms
from schemas.tables.gold_sessions import SESSION_TABLES
from schemas.tables.silver import CONNECTIONS, EXCHANGES, FETCH_PARTITIONS
from schemas.wire.fetch import FETCH_REQUEST
from udfs.errors import CaptureError
from udfs.replay.session_cache.replay import replay_sessions
from udfs.replay.session_cache.settings import session_lanes
from udfs.replay.session_cache.silver_events import (
    BROKERS,
    EXCHANGE_COLUMNS,
    FIRST_WITH_SESSIONS,
    LIFE_COLUMNS,
    PARTITION_COLUMNS,
    fetch_events,
    lives_of,
    partition_events,
)


def packed(source: Source) -> DataFrame:
    """Every fetch session of the capture set. Raises CaptureError where all fetches are older than sessions."""
    scenario, shards = source.run.scenario, shard_count(source.spark)
    check_sessions(source.rows(EXCHANGES))
    lives = lives_of(read_small_table(source, CONNECTIONS, LIFE_COLUMNS))
    reads = [
        Read(EXCHANGES, EXCHANGE_COLUMNS, partial(fetch_events, lives=lives)),
        Read(FETCH_PARTITIONS, PARTITION_COLUMNS, partial(partition_events, lives=lives)),
    ]
    replay = partial(
        replay_sessions,
        lanes=replace(
            session_lanes(lane_settings(scenario, algorithms.SESSION_CACHE, source.run.in_force)),
            window=scenario.window,
        ),
        run_id=source.run_id,
        seed=scenario.without_window.scenario_id,
    )
    return replay_shards(dealt_silver(source, BROKERS, reads, shards), BROKERS, shards, replay)


def check_sessions(exchanges: DataFrame) -> None:
    """Raises CaptureError where there are fetches, and none is of a version with sessions."""
    x = EXCHANGES
    fetches = exchanges.where(F.col(x.api_key) == FETCH_REQUEST.api_key)
    (newest,) = fetches.agg(F.max(x.api_version)).first() or (None,)
    if newest is not None and newest < FIRST_WITH_SESSIONS:
        raise CaptureError(
            f"No fetch here can have a session: they came with version {FIRST_WITH_SESSIONS} of Fetch (KIP-227, "
            f"Kafka 1.1), and the newest captured is {newest}"
        )


SESSION_CACHE = Algorithm(algorithms.SESSION_CACHE, TITLE, SESSION_TABLES, packed, QUERIES, answer_lines)
