"""partition_limits: KIP-578, a proposal, on the silver tables: which creations fail at a limit of N.

The cluster is one unit: what is left for a topic depends on every topic before it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.captures.kafka_release import KAFKA_SETTING, PROPOSAL, releases
from jobs.replays.algorithm import Algorithm, Source
from jobs.replays.limit_answers import QUERIES, TITLE, answer_lines
from jobs.replays.limit_events import topic_events
from jobs.replays.limit_schedule import NONE, parse_schedule
from jobs.replays.one_shuffle import PACKED_COLUMNS
from jobs.scenarios.scenario import Lane
from jobs.scenarios.settings import Value, release_number
from schemas.tables.gold_limits import LIMIT_TABLES
from schemas.tables.silver import EXCHANGES, FETCH_PARTITIONS, RECORD_BATCHES
from schemas.tables.silver_topics import CLUSTER_METADATA, TOPIC_CHANGES
from udfs.replay.limits.asked_changes import Defaults
from udfs.replay.limits.limit_fidelity import ALGORITHM
from udfs.replay.limits.limit_replay import LimitLane, replay_topics


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


def replay(source: Source) -> DataFrame:
    """Packed rows of the gold tables."""
    tables = (CLUSTER_METADATA, TOPIC_CHANGES, EXCHANGES, RECORD_BATCHES, FETCH_PARTITIONS)
    metadata, changes, exchanges, batches, fetches = map(source.rows, tables)
    captured = source.run.in_force
    lanes = limit_lanes(source.run.scenario.lanes(ALGORITHM), captured, releases()[0])
    counts = (captured.get(key, 1) for key in ("broker.num.partitions", "broker.default.replication.factor"))
    defaults = Defaults(*map(int, counts))
    events = topic_events(metadata, changes, exchanges, batches, fetches)
    return replayed(events, lanes, defaults, seed_of(source.capture_id), source.run_id)


def replayed(events: DataFrame, lanes: tuple[LimitLane, ...], defaults: Defaults, seed: int, run_id: str) -> DataFrame:
    """Packed rows of the gold tables from rows of TOPIC_EVENTS."""

    def replay_cluster(rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from replay_topics(rows, lanes, defaults, seed, run_id)

    return events.repartitionById(1, F.lit(0)).mapInArrow(replay_cluster, PACKED_COLUMNS)


PARTITION_LIMITS = Algorithm(ALGORITHM, TITLE, LIMIT_TABLES, replay, QUERIES, answer_lines)
