"""partition_limits: KIP-578, a proposal, on the silver tables: which creations fail at a limit of N.

The cluster is one unit: what is left for a topic depends on every topic before it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.captures.kafka_release import KAFKA_SETTING, PROPOSAL, releases
from jobs.replays.algorithm import Algorithm, Prepared, Source
from jobs.replays.one_shuffle import SHARD
from jobs.replays.partition_limits.answers import QUERIES, TITLE, answer_lines
from jobs.replays.partition_limits.events import topic_events
from jobs.scenarios.limit_schedule import NONE, parse_schedule
from jobs.scenarios.scenario import Lane
from jobs.scenarios.settings import Value, release_number
from schemas.tables import algorithms
from schemas.tables.gold_limits import LIMIT_TABLES
from schemas.tables.silver import EXCHANGES, FETCH_PARTITIONS, RECORD_BATCHES
from schemas.tables.silver_topics import CLUSTER_METADATA, TOPIC_CHANGES
from udfs.replay.partition_limits.history.requested_changes import Defaults
from udfs.replay.partition_limits.replay import LimitLane, replay_topics


def limit_lanes(lanes: Sequence[Lane], captured: Mapping[str, Value], kafka: str) -> tuple[LimitLane, ...]:
    """The scenario's lanes as the replay takes them; kafka: the release where none is stated."""

    def lane_of(lane: Lane) -> LimitLane:
        def value(key: str, default: Value) -> Value:
            return lane.settings.get(key, captured.get(key, default))

        followed, rate = str(value(KAFKA_SETTING, kafka)), value("controller_mutation_rate", NONE)
        return LimitLane(
            lane.name,
            parse_schedule(str(value("max.broker.partitions", NONE))),
            parse_schedule(str(value("max.partitions", NONE))),
            None if followed == PROPOSAL else release_number(followed),
            0.0 if rate == NONE else float(rate),
        )

    return tuple(lane_of(lane) for lane in lanes)


def seed_of(capture_id: str) -> int:
    """Where the draws of a capture set begin: the same in every lane, so that lanes differ by their settings alone."""
    return int.from_bytes(hashlib.sha256(capture_id.encode()).digest()[:4])


def prepare(source: Source) -> Prepared:
    """All changes to topics of the capture set."""
    tables = (CLUSTER_METADATA, TOPIC_CHANGES, EXCHANGES, RECORD_BATCHES, FETCH_PARTITIONS)
    metadata, changes, exchanges, batches, fetches = map(source.rows, tables)
    captured = source.run.in_force
    counts = (captured.get(key, 1) for key in ("broker.num.partitions", "broker.default.replication.factor"))
    lanes = limit_lanes(source.run.scenario.lanes(algorithms.PARTITION_LIMITS), captured, releases()[0])
    return prepared(
        topic_events(metadata, changes, exchanges, batches, fetches), lanes, Defaults(*map(int, counts)),
        seed_of(source.capture_id), source.run_id,
    )  # fmt: skip


def prepared(events: DataFrame, lanes: tuple[LimitLane, ...], defaults: Defaults, seed: int, run_id: str) -> Prepared:
    """The same from rows of TOPIC_EVENTS, which one task takes in any order."""
    replay = partial(replay_topics, lanes=lanes, defaults=defaults, seed=seed, run_id=run_id)
    return Prepared(events.withColumn(SHARD, F.lit(0)), (), replay, shards=1)


PARTITION_LIMITS = Algorithm(algorithms.PARTITION_LIMITS, TITLE, LIMIT_TABLES, prepare, QUERIES, answer_lines)
