"""session_cache: KIP-227 on the silver tables, every broker's cache and every client in closed loop in every lane."""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.replays.algorithm import Algorithm, Prepared, Source
from jobs.replays.lane_settings import lane_settings
from jobs.replays.one_shuffle import shards_of
from jobs.replays.session_cache.answers import QUERIES, TITLE, answer_lines
from jobs.replays.session_cache.events import WITH_SESSIONS, session_events
from schemas.tables import algorithms
from schemas.tables.gold_sessions import SESSION_TABLES
from schemas.tables.silver import CONNECTIONS, EXCHANGES, FETCH_PARTITIONS
from schemas.tables.steps import SESSION_EVENTS
from schemas.wire.fetch import FETCH_REQUEST
from udfs.errors import CaptureError
from udfs.replay.session_cache.replay import replay_sessions
from udfs.replay.session_cache.settings import session_lanes

_T = SESSION_EVENTS
ORDER = (_T.broker, _T.request_time, _T.connection_id, _T.exchange_no, _T.position, _T.topic_key, _T.partition)


def prepare(source: Source) -> Prepared:
    """Every fetch session of the capture set. Raises CaptureError where all fetches are older than sessions."""
    scenario, exchanges = source.run.scenario, source.rows(EXCHANGES)
    check_sessions(exchanges)
    replay = partial(
        replay_sessions,
        lanes=session_lanes(lane_settings(scenario, algorithms.SESSION_CACHE, source.run.in_force)),
        run_id=source.run_id,
        seed=scenario.scenario_id,
    )
    shards = shards_of(source.spark)
    events = session_events(exchanges, source.rows(FETCH_PARTITIONS), source.rows(CONNECTIONS), shards)
    return Prepared(events, ORDER, replay, is_narrow=True)


def check_sessions(exchanges: DataFrame) -> None:
    """Raises CaptureError where there are fetches, and none is of a version with sessions."""
    x = EXCHANGES
    fetches = exchanges.where(F.col(x.api_key) == FETCH_REQUEST.api_key)
    (newest,) = fetches.agg(F.max(x.api_version)).first() or (None,)
    if newest is not None and newest < WITH_SESSIONS:
        raise CaptureError(
            f"No fetch here can have a session: they came with version {WITH_SESSIONS} of Fetch (KIP-227, Kafka 1.1), "
            f"and the newest captured is {newest}"
        )


SESSION_CACHE = Algorithm(algorithms.SESSION_CACHE, TITLE, SESSION_TABLES, prepare, QUERIES, answer_lines)
