"""Clusters as rows of TOPIC_EVENTS (requests for changes to topics, and what Metadata shows), and their replay."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from schemas.tables.event_kinds import TopicEvent
from schemas.tables.gold import FIDELITY
from schemas.tables.gold_limits import LIMIT_TABLES, PARTITION_LIMIT_REFUSALS, PARTITIONS_PER_BROKER
from schemas.tables.steps import TOPIC_EVENTS
from schemas.tables.table import Table
from tests.packed import unpack
from udfs.facts.arrow_tables import arrow_schema
from udfs.replay.partition_limits.replay import replay_topics
from udfs.replay.partition_limits.schedule import UNLIMITED, Schedule, format_schedule
from udfs.replay.partition_limits.settings import LimitLanes, limit_lanes
from udfs.replay.shared.lanes import LaneSettings, Value

Row = dict[str, Any]
Rows = list[Row]
Settings = Mapping[str, Value]
"""The settings that a lane changes, by key."""

BROKER_LIMIT, CLUSTER_LIMIT, MUTATION_RATE = "max.broker.partitions", "max.partitions", "controller_mutation_rate"
PROPOSAL: Settings = {"kafka": "kip"}
IN_FORCE: Settings = {"kafka": "4.3", "broker.num.partitions": 4, "broker.default.replication.factor": 2}
SEED = 7
BROKERS: Rows = [{"entry": TopicEvent.BROKER, "node_id": node} for node in (1, 2, 3)]


def requested(time: int, kind: str, topic: str, error: int | None = 0, **more: Any) -> Row:
    """A change requested at a time in us, alone in its request unless `exchange_no` says otherwise."""
    row = {"entry": TopicEvent.CHANGE, "time": time, "kind": kind, "topic": topic, "error_code": error}
    return row | {"client_id": "c", "connection_id": 1, "exchange_no": time, "position": 0, "api_version": 7} | more


def created(time: int, topic: str, partitions: int, factor: int = 1, **more: Any) -> Row:
    """A topic in a CreateTopics request."""
    return requested(time, "create_topic", topic, num_partitions=partitions, replication_factor=factor, **more)


def grown(time: int, topic: str, partitions: int, **more: Any) -> Row:
    """A topic in a CreatePartitions request, with the number of partitions that it is to have."""
    return requested(time, "create_partitions", topic, num_partitions=partitions, **more)


def shown(topic: str, replicas: Sequence[Sequence[int]], time: int = 0, is_internal: bool = False) -> Rows:
    """The partitions of a topic as Metadata shows them at a time in us: the brokers of each."""
    same = {"entry": TopicEvent.SIGHTING, "time": time, "topic": topic, "is_internal": is_internal}
    return [same | {"partition": i, "replica_nodes": list(nodes)} for i, nodes in enumerate(replicas)]


def changing(value: int, *later: tuple[int, int]) -> str:
    """A limit that changes. later: (us, value) of each change."""
    times, values = (-UNLIMITED, *(time for time, _ in later)), (value, *(value for _, value in later))
    return format_schedule(Schedule(times, values))


def settings_of(lanes: Mapping[str, Settings], in_force: Settings = IN_FORCE) -> LimitLanes:
    """The settings of the captured lane, and of others by name."""
    return limit_lanes(LaneSettings(("captured", *lanes), ({}, *lanes.values()), in_force))


def event_table(rows: Iterable[Row]) -> pa.Table:
    """Rows of TOPIC_EVENTS. Columns that a row leaves out are null."""
    listed = [{str(column): row.get(column) for column in TOPIC_EVENTS.columns} for row in rows]
    return pa.Table.from_pylist(listed, schema=arrow_schema(TOPIC_EVENTS))


def replay(
    rows: Iterable[Row], lanes: Mapping[str, Settings] | None = None, *, batch_rows: int = 10_000,
    brokers: Rows = BROKERS, in_force: Settings = IN_FORCE,
) -> dict[Table, Rows]:  # fmt: skip
    """The rows of each table; the cluster has three brokers unless others are given."""
    batches = event_table([*brokers, *rows]).to_batches(max_chunksize=batch_rows)
    tables: dict[str, Rows] = {table.name: [] for table in (FIDELITY, *LIMIT_TABLES)}
    for packed in replay_topics(batches, settings_of(lanes or {}, in_force), "run", SEED):
        for i, name in enumerate(packed["table"].to_pylist()):
            for part in unpack([packed.slice(i, 1)]):
                tables[str(name)] += part.to_pylist()
    return {table: tables[table.name] for table in (FIDELITY, *LIMIT_TABLES)}


def on_brokers(rows: Iterable[Row], settings: Settings | None = None) -> list[int]:
    """Replicas on each of the three brokers at the end of the captured lane, or of one with these settings."""
    p, lanes = PARTITIONS_PER_BROKER, {} if settings is None else {"lane": settings}
    name = "captured" if settings is None else "lane"
    return [row[p.partitions] for row in replay(rows, lanes)[p] if row[p.scenario] == name][-3:]


def refusals(rows: Iterable[Row], settings: Settings) -> list[tuple[str, int, str]]:
    """(topic, error code, what refused it) of each refusal in a lane with these settings."""
    r = PARTITION_LIMIT_REFUSALS
    refused = replay(rows, {"lane": settings})[r]
    return [(row[r.topic], row[r.error_code], row[r.refused_by]) for row in refused if row[r.scenario] == "lane"]
