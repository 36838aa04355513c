"""session_cache: KIP-227 on the silver tables, every broker's cache and every client in closed loop in every lane."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.captures.kafka_release import KAFKA_SETTING, PROPOSAL
from jobs.replays.algorithm import Algorithm, Prepared, Source
from jobs.replays.one_shuffle import shards_of
from jobs.replays.session_cache.answers import QUERIES, TITLE, answer_lines
from jobs.replays.session_cache.events import WITH_SESSIONS, session_events
from jobs.scenarios.scenario import Lane, values_in
from jobs.scenarios.settings import Value
from schemas.tables import algorithms
from schemas.tables.gold_sessions import SESSION_TABLES
from schemas.tables.silver import CONNECTIONS, EXCHANGES, FETCH_PARTITIONS
from schemas.tables.steps import SESSION_EVENTS
from schemas.wire.fetch import FETCH_REQUEST
from udfs.columns.arrays import Ints
from udfs.errors import CaptureError
from udfs.replay.session_cache.session_cache import CURRENT, KIP_TEXT, OLDEST_CREATED, SHARDS, CacheSettings
from udfs.replay.session_cache.session_lanes import SessionLanes
from udfs.replay.session_cache.session_replay import replay_sessions

SLOTS = "broker.max.incremental.fetch.session.cache.slots"
EVICTION_MS = "broker.min.incremental.fetch.session.eviction.ms"
CACHE_SHARDS = "broker.NumFetchSessionCacheShards"
_T = SESSION_EVENTS
ORDER = (_T.broker, _T.request_time, _T.connection_id, _T.exchange_no, _T.position, _T.topic_key, _T.partition)
PROFILES: Mapping[Value | None, tuple[int, int]] = {
    "3.7": (1, CURRENT),  # before KAFKA-9401
    "2.4": (1, OLDEST_CREATED),  # before KAFKA-9137
    PROPOSAL: (1, KIP_TEXT),
}
"""(shards, rules of eviction) where they are not today's."""


def session_lanes(lanes: Sequence[Lane], captured: Mapping[str, Value]) -> SessionLanes:
    """The scenario's lanes as the replay takes them; what a lane does not change is as captured."""

    def column(key: str, unset: Ints | int = 0) -> Ints:
        told = values_in(lanes, key, captured)
        return np.where([value is None for value in told], unset, [int(value or 0) for value in told])

    followed = values_in(lanes, KAFKA_SETTING, captured)
    shards, rules = np.array([PROFILES.get(release, (SHARDS, CURRENT)) for release in followed], np.int64).T
    shards = column(CACHE_SHARDS, shards)
    settings = CacheSettings(column(SLOTS) // shards, shards, column(EVICTION_MS), rules)
    return SessionLanes(tuple(lane.name for lane in lanes), settings)


def prepare(source: Source) -> Prepared:
    """Every fetch session of the capture set. Raises CaptureError where all fetches are older than sessions."""
    scenario, exchanges = source.run.scenario, source.rows(EXCHANGES)
    check_sessions(exchanges)
    replay = partial(
        replay_sessions,
        lanes=session_lanes(scenario.lanes(algorithms.SESSION_CACHE), source.run.in_force),
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
