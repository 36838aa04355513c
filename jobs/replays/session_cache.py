"""session_cache: KIP-227 on the silver tables, every broker's cache and every client in closed loop in every lane."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.captures.kafka_release import KAFKA_SETTING, PROPOSAL
from jobs.replays.algorithm import Algorithm, Source
from jobs.replays.one_shuffle import packed_in_order, shards_of
from jobs.replays.session_answers import QUERIES, TITLE, answer_lines
from jobs.replays.session_events import WITH_SESSIONS, session_events
from jobs.scenarios.scenario import Lane, values_in
from jobs.scenarios.settings import Value
from schemas.tables.gold_sessions import SESSION_TABLES
from schemas.tables.silver import CONNECTIONS, EXCHANGES, FETCH_PARTITIONS
from schemas.tables.steps import SESSION_EVENTS
from schemas.wire.fetch import FETCH_REQUEST
from udfs.columns.arrays import Ints
from udfs.errors import CaptureError
from udfs.replay.sessions.session_cache import CURRENT, KIP_TEXT, OLDEST_CREATED, SHARDS, CacheSettings
from udfs.replay.sessions.session_lanes import SessionLanes
from udfs.replay.sessions.session_replay import replay_sessions
from udfs.replay.sessions.session_report import ALGORITHM

SLOTS = "broker.max.incremental.fetch.session.cache.slots"
EVICTION_MS = "broker.min.incremental.fetch.session.eviction.ms"
CACHE_SHARDS = "broker.NumFetchSessionCacheShards"
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


def replay(source: Source) -> DataFrame:
    """Replay every fetch session of the capture set: packed rows of the gold tables, after one shuffle by broker.

    Raises CaptureError where all fetches are older than sessions.
    """
    scenario = source.run.scenario
    lanes = session_lanes(scenario.lanes(ALGORITHM), source.run.in_force)
    exchanges = source.rows(EXCHANGES)
    check_sessions(exchanges)
    shards = shards_of(source.spark)
    events = session_events(exchanges, source.rows(FETCH_PARTITIONS), source.rows(CONNECTIONS), shards)
    return replayed(events, lanes, source.run_id, scenario.scenario_id, shards)


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


def replayed(events: DataFrame, lanes: SessionLanes, run_id: str, seed: str, shards: int) -> DataFrame:
    """Packed rows of the gold tables from rows of SESSION_EVENTS."""
    t = SESSION_EVENTS

    def replay_brokers(rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from replay_sessions(rows, lanes, run_id, seed)

    order = (t.broker, t.request_time, t.connection_id, t.exchange_no, t.position, t.topic_key, t.partition)
    return packed_in_order(events, shards, order, replay_brokers)


SESSION_CACHE_REPLAY = Algorithm(
    ALGORITHM, TITLE, SESSION_TABLES, replay, QUERIES, answer_lines, is_narrow=lambda _: True
)
