"""partition_limits: KIP-578, a proposal, on the silver tables. It says which creations fail at a limit of N.

The whole cluster is one unit, because the room that is left for a topic depends on every topic before it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import partial

from pyspark.sql import DataFrame

from jobs.captures.kafka_release import releases
from jobs.replays.algorithm import Algorithm, Source
from jobs.replays.lane_settings import lane_settings
from jobs.replays.partition_limits.answers import QUERIES, TITLE, answer_lines
from jobs.replays.silver import Read, dealt_silver, read_small_table
from jobs.scenarios.scenario import Scenario
from jobs.session.one_shuffle import deal_again, replay_shards, shard_count
from schemas.tables import algorithms
from schemas.tables.silver import EXCHANGES, FETCH_PARTITIONS, RECORD_BATCHES
from schemas.tables.silver_topics import CLUSTER_METADATA, TOPIC_CHANGES
from udfs.replay.partition_limits.replay import replay_captured
from udfs.replay.partition_limits.settings import LimitLanes, limit_lanes
from udfs.replay.partition_limits.silver_events import (
    CHANGE_COLUMNS,
    CHANGED_TOPICS,
    CLUSTER,
    FETCH_COLUMNS,
    METADATA_COLUMNS,
    NAMING_COLUMNS,
    PRODUCE_COLUMNS,
    REQUEST_COLUMNS,
    change_events,
    changed_topics,
    fetch_uses,
    metadata_events,
    metadata_uses,
    produce_uses,
    request_events,
    used_changes,
)
from udfs.replay.shared.lanes import KAFKA_RELEASE, Value


def lanes_for_limits(scenario: Scenario, in_force: Mapping[str, Value]) -> LimitLanes:
    """The scenario's lanes as arrays. They follow the semantics of Kafka's newest release if `in_force` has none."""
    in_force = {KAFKA_RELEASE: releases()[0], **in_force}
    lanes = limit_lanes(lane_settings(scenario, algorithms.PARTITION_LIMITS, in_force))
    return lanes._replace(window=scenario.window)


def seed_of_draws(capture_id: str) -> int:
    """The seed of a capture set's draws. It is the same in every lane, so that lanes differ only by their settings."""
    return int.from_bytes(hashlib.sha256(capture_id.encode()).digest()[:4])


def packed(source: Source) -> DataFrame:
    """Replay all changes to topics of the capture set, in one task."""
    replay = partial(
        replay_captured,
        lanes=lanes_for_limits(source.run.scenario, source.run.in_force),
        seed=seed_of_draws(source.capture_id),
        run_id=source.run_id,
    )
    return replay_shards(dealt_changes(source), CLUSTER, 1, replay)


def dealt_changes(source: Source) -> DataFrame:
    """Rows of DEALT: brokers, partitions and changes, with what is known about requests that ask for or use them."""
    changed = changed_topics(read_small_table(source, TOPIC_CHANGES, CHANGE_COLUMNS))
    events = [
        Read(CLUSTER_METADATA, METADATA_COLUMNS, metadata_events),
        Read(TOPIC_CHANGES, CHANGE_COLUMNS, change_events),
    ]
    if not len(changed.begins):
        return dealt_silver(source, CLUSTER, events, 1)
    window = source.run.scenario.window
    events.append(Read(EXCHANGES, REQUEST_COLUMNS, partial(request_events, changed=changed)))
    uses = [
        Read(RECORD_BATCHES, PRODUCE_COLUMNS, partial(produce_uses, changed=changed, window=window)),
        Read(FETCH_PARTITIONS, FETCH_COLUMNS, partial(fetch_uses, changed=changed, window=window)),
        Read(CLUSTER_METADATA, NAMING_COLUMNS, partial(metadata_uses, changed=changed, window=window)),
    ]
    shards = shard_count(source.spark)
    dealt_uses = dealt_silver(source, CHANGED_TOPICS, uses, shards)
    used = deal_again(dealt_uses, CHANGED_TOPICS, CLUSTER, shards, partial(used_changes, changed=changed))
    return dealt_silver(source, CLUSTER, events, 1).unionByName(used)


PARTITION_LIMITS = Algorithm(algorithms.PARTITION_LIMITS, TITLE, packed, QUERIES, answer_lines)
