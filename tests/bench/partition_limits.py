"""KIP-578 (a proposal) on one core: many lanes compared with one, from rows of TOPIC_EVENTS to packed gold rows.

Every pass includes the history of the topics and the curve of first refusals, which are made once for all lanes.
"""

from __future__ import annotations

from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.tables.event_kinds import TopicEvent
from schemas.tables.steps import TOPIC_EVENTS
from schemas.tables.values import CREATE_PARTITIONS, CREATE_TOPIC, DELETE_TOPIC
from tests.bench.table import timed
from udfs.columns.arrow_columns import arrow_array
from udfs.columns.time_units import US_PER_S
from udfs.facts.arrow_tables import make_rows, nulls_besides
from udfs.replay.partition_limits.replay import replay_topics
from udfs.replay.partition_limits.settings import LimitLanes, limit_lanes
from udfs.replay.shared.lanes import LaneSettings

BROKERS, RACKS, CLIENTS, FACTOR, SEED = 50, ("a", "b", "c"), 20, 3, 578
GROWN, DELETED = 0.1, 0.1
"""Shares of the changes that add partitions to a topic, or delete one; all others create one."""


def event_rows(rows: int, **columns: Any) -> pa.RecordBatch:
    """Rows of TOPIC_EVENTS; all other columns are null."""
    return make_rows(TOPIC_EVENTS, {**columns, **nulls_besides(TOPIC_EVENTS, columns, rows)})


def broker_rows() -> pa.RecordBatch:
    """The cluster's brokers, assigned to the racks in turn."""
    racks = [RACKS[node % len(RACKS)] for node in range(BROKERS)]
    return event_rows(
        BROKERS, entry=np.full(BROKERS, TopicEvent.BROKER), node_id=np.arange(BROKERS), rack=pa.array(racks)
    )


def change_rows(changes: int, partitions: int) -> pa.RecordBatch:
    """Changes to topics, one per second, each in its own request. partitions: those of a topic when it is created."""
    rng, number = np.random.default_rng(SEED), np.arange(changes)
    drawn, client = rng.random(changes), rng.integers(CLIENTS, size=changes)
    is_growth, is_deletion = drawn < GROWN, (drawn >= GROWN) & (drawn < GROWN + DELETED)
    topic = np.where(is_growth | is_deletion, rng.integers(np.maximum(number, 1)), number)
    kinds = pa.array([CREATE_TOPIC, CREATE_PARTITIONS, DELETE_TOPIC])
    return event_rows(
        changes,
        entry=np.full(changes, TopicEvent.CHANGE),
        time=number * US_PER_S,
        topic=pa.array([f"team{of % CLIENTS}.topic-{of}" for of in topic.tolist()]),
        kind=kinds.take(arrow_array(np.where(is_growth, 1, np.where(is_deletion, 2, 0)))),
        connection_id=client,
        exchange_no=number,
        position=np.zeros(changes, np.int64),
        api_version=np.full(changes, 7),
        client_id=pa.array([f"client-{of}" for of in client.tolist()]),
        num_partitions=np.where(is_growth, 2 * partitions, partitions),
        replication_factor=np.full(changes, FACTOR),
        configs=np.zeros(changes, np.int64),
        validate_only=np.full(changes, False),
        error_code=np.zeros(changes, np.int64),
    )


def lanes_of(count: int, replicas: int) -> LimitLanes:
    """The captured lane, and limits on brokers up to what a cluster with this many replicas needs."""
    limits = np.linspace(1, replicas // BROKERS, count).astype(np.int64).tolist()[1:]
    changed = ({}, *({"max.broker.partitions": limit} for limit in limits))
    return limit_lanes(LaneSettings(tuple(f"lane-{i}" for i in range(count)), changed, {"kafka": "4.3"}))


def compare_lanes(changes: int, partitions: int, count: int) -> str:
    """Compare many limits with only the captured lane."""
    events = [broker_rows(), change_rows(changes, partitions)]

    def replay(settings: LimitLanes) -> None:
        for _ in replay_topics(events, settings, "bench", SEED):
            pass

    settings = lanes_of(count, changes * partitions * FACTOR)
    many = timed(f"{count} lanes", lambda: replay(settings), clock=process_time)
    one = timed("one lane", lambda: replay(settings.part(0, 1)), clock=process_time)
    lines = [f"{changes:,} changes to topics of {partitions} partitions, CPU time"]
    for timing, lanes in ((one, 1), (many, count)):
        rate = lanes * changes / min(timing.seconds)
        lines.append(f"  {timing.name:<10}{min(timing.seconds) * 1000:>10,.1f} ms{rate:>14,.0f} lane-changes/s")
    return "\n".join([*lines, f"  {count} lanes take {min(many.seconds) / min(one.seconds):.2f} times as long as one"])
