"""session_cache: KIP-227 on the silver tables. Each lane replays all caches and clients in closed loop."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.replays.algorithm import Algorithm, Source
from jobs.replays.lane_settings import lane_settings
from jobs.replays.session_cache.answers import QUERIES, TITLE, answer_lines
from jobs.replays.silver import Read, dealt_silver, mapped_silver, read_small_table
from jobs.replays.warm_up_set import warm_up_set
from jobs.session.one_shuffle import replay_shards, shard_count
from schemas.tables import algorithms
from schemas.tables.silver import CONNECTIONS, EXCHANGES, FETCH_PARTITIONS
from schemas.tables.silver_shares import SHARE_FETCHES
from schemas.wire.fetch import FETCH_REQUEST
from schemas.wire.fetch_sessions import FIRST_WITH_SESSIONS
from udfs.errors import CaptureError
from udfs.replay.session_cache.replay import replay_sessions
from udfs.replay.session_cache.settings import session_lanes, share_lanes
from udfs.replay.session_cache.share_sessions.replay import replay_share_sessions
from udfs.replay.session_cache.share_sessions.silver_events import (
    CONNECTION_IDS,
    SHARE_BROKERS,
    SHARE_COLUMNS,
    SHARE_CONNECTION_COLUMNS,
    connection_events,
    distinct_connections,
    share_connections,
    share_events,
)
from udfs.replay.session_cache.silver_events import (
    BROKERS,
    EXCHANGE_COLUMNS,
    LIFE_COLUMNS,
    PARTITION_COLUMNS,
    fetch_events,
    lives_of,
    partition_events,
)


def packed(source: Source) -> DataFrame:
    """Every fetch session of the capture set. If it continues another set, those that were left open there are
    included.

    Raises CaptureError if all fetches are older than sessions.
    """
    scenario, shards = source.run.scenario, shard_count(source.spark)
    check_sessions(source.rows(EXCHANGES))
    earlier, connections = warm_up_set(source), read_small_table(source, CONNECTIONS, LIFE_COLUMNS)
    lives = lives_of(connections if earlier is None else earlier.connections(connections, LIFE_COLUMNS))
    reads = [
        Read(EXCHANGES, EXCHANGE_COLUMNS, partial(fetch_events, lives=lives)),
        Read(FETCH_PARTITIONS, PARTITION_COLUMNS, partial(partition_events, lives=lives)),
    ]
    replay = partial(
        replay_sessions,
        lanes=replace(
            session_lanes(lane_settings(scenario, algorithms.SESSION_CACHE, source.run.in_force)),
            window=scenario.window if earlier is None else earlier.window(scenario.window),
        ),
        run_id=source.run_id,
        seed=scenario.without_window.scenario_id,
    )
    dealt = dealt_silver(source, BROKERS, reads, shards)
    if earlier is not None:
        dealt = dealt.unionByName(dealt_silver(earlier.source, BROKERS, list(map(earlier.read, reads)), shards))
    of_fetches = replay_shards(dealt, BROKERS, shards, replay)
    of_shares = packed_shares(source, shards)
    return of_fetches if of_shares is None else of_fetches.unionByName(of_shares)


def packed_shares(source: Source, shards: int) -> DataFrame | None:
    """Every share session of the capture set; None if no share group fetches."""
    ids = mapped_silver(
        source, [Read(SHARE_FETCHES, (SHARE_FETCHES.connection_id,), distinct_connections)], CONNECTION_IDS
    ).toArrow()
    if not ids.num_rows:
        return None
    connections = read_small_table(source, CONNECTIONS, SHARE_CONNECTION_COLUMNS)
    known = share_connections(ids["connection_id"].to_numpy(), connections)
    reads = [
        Read(SHARE_FETCHES, SHARE_COLUMNS, partial(share_events, known=known)),
        Read(CONNECTIONS, SHARE_CONNECTION_COLUMNS, partial(connection_events, known=known)),
    ]
    scenario = source.run.scenario
    lanes = lane_settings(scenario, algorithms.SESSION_CACHE, source.run.in_force)
    replay = partial(replay_share_sessions, lanes=share_lanes(lanes, scenario.window), run_id=source.run_id)
    return replay_shards(dealt_silver(source, SHARE_BROKERS, reads, shards), SHARE_BROKERS, shards, replay)


def check_sessions(exchanges: DataFrame) -> None:
    """Raises CaptureError if there are fetches, and none has a version with sessions."""
    x = EXCHANGES
    fetches = exchanges.where(F.col(x.api_key) == FETCH_REQUEST.api_key)
    (newest,) = fetches.agg(F.max(x.api_version)).first() or (None,)
    if newest is not None and newest < FIRST_WITH_SESSIONS:
        raise CaptureError(
            f"No fetch here can have a session: they came with version {FIRST_WITH_SESSIONS} of Fetch (KIP-227, "
            f"Kafka 1.1), and the newest captured is {newest}"
        )


SESSION_CACHE = Algorithm(algorithms.SESSION_CACHE, TITLE, packed, QUERIES, answer_lines)
