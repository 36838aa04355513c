"""partition_limits: KIP-578, a proposal, on the silver tables: which creations fail at a limit of N.

The cluster is one unit: what is left for a topic depends on every topic before it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.captures.kafka_release import KAFKA_SETTING, releases
from jobs.replays.algorithm import Algorithm, Prepared, Source
from jobs.replays.lane_settings import lane_settings
from jobs.replays.one_shuffle import SHARD
from jobs.replays.partition_limits.answers import QUERIES, TITLE, answer_lines
from jobs.replays.partition_limits.events import topic_events
from jobs.scenarios.scenario import Scenario
from schemas.tables import algorithms
from schemas.tables.gold_limits import LIMIT_TABLES
from schemas.tables.silver import EXCHANGES, FETCH_PARTITIONS, RECORD_BATCHES
from schemas.tables.silver_topics import CLUSTER_METADATA, TOPIC_CHANGES
from udfs.replay.partition_limits.replay import replay_topics
from udfs.replay.partition_limits.settings import LimitSettings, limit_lanes
from udfs.replay.shared.lanes import Value


def limit_settings(scenario: Scenario, in_force: Mapping[str, Value]) -> LimitSettings:
    """The scenario's lanes as arrays. They follow Kafka's newest release if `in_force` has none."""
    in_force = {KAFKA_SETTING: releases()[0], **in_force}
    return limit_lanes(lane_settings(scenario, algorithms.PARTITION_LIMITS, in_force))


def seed_of(capture_id: str) -> int:
    """The seed of a capture set's draws. It is the same in every lane, so that lanes differ by their settings alone."""
    return int.from_bytes(hashlib.sha256(capture_id.encode()).digest()[:4])


def prepare(source: Source) -> Prepared:
    """Replay all changes to topics of the capture set."""
    tables = (CLUSTER_METADATA, TOPIC_CHANGES, EXCHANGES, RECORD_BATCHES, FETCH_PARTITIONS)
    metadata, changes, exchanges, batches, fetches = map(source.rows, tables)
    events = topic_events(metadata, changes, exchanges, batches, fetches)
    settings = limit_settings(source.run.scenario, source.run.in_force)
    return prepared(events, settings, seed_of(source.capture_id), source.run_id)


def prepared(events: DataFrame, settings: LimitSettings, seed: int, run_id: str) -> Prepared:
    """Replay rows of TOPIC_EVENTS, which one task takes in any order."""
    replay = partial(replay_topics, settings=settings, seed=seed, run_id=run_id)
    return Prepared(events.withColumn(SHARD, F.lit(0)), (), replay, shards=1)


PARTITION_LIMITS = Algorithm(algorithms.PARTITION_LIMITS, TITLE, LIMIT_TABLES, prepare, QUERIES, answer_lines)
