"""Changes that requests ask for: their counts resolved, and which of their errors have to be taken as captured."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from schemas.tables.steps import TOPIC_EVENTS
from schemas.wire.errors import TOPIC_ALREADY_EXISTS
from udfs.columns.arrays import Bools, Ints
from udfs.columns.arrow_columns import compute as pc
from udfs.columns.time_units import ALWAYS, NEVER
from udfs.replay.partition_limits.assignments import Assigned
from udfs.replay.partition_limits.captured_errors import Reason, request_records, taken_as_captured
from udfs.replay.partition_limits.events import internal, numbers
from udfs.replay.partition_limits.history.shown_partitions import Counts
from udfs.replay.partition_limits.history.topic_ids import TopicIds
from udfs.replay.partition_limits.history.topic_times import NONE
from udfs.replay.partition_limits.told_changes import NO_ANSWER, Told
from udfs.replay.partition_limits.topics import AUTO, CREATE, DELETE, GROW, MOVE, NOTHING

STRICT_FROM = {CREATE: 6, GROW: 3, DELETE: 5, AUTO: 0}
"""Versions from which a request is refused where its controller mutation quota is used up (KIP-599). For a Metadata
request the broker asks the controller by the newest version (AutoTopicCreationManager)."""

MOST_REPLICAS = 1_000_000
"""Replicas of one change for which there is room; no release of Kafka makes a hundredth of that in one request."""


class Defaults(NamedTuple):
    """num.partitions and default.replication.factor of the brokers."""

    num_partitions: int
    replication_factor: int


class Asked(NamedTuple):
    """Changes asked for, int64[changes] but for `assigned` and `reason`."""

    kind: Ints
    topic: Ints
    partitions: Ints
    factor: Ints
    assigned: Assigned
    brokers: Ints
    error: Ints
    captured: Ints
    exempt: Ints
    reason: list[str]

    @classmethod
    def of(
        cls, asked: pa.Table, names: pa.Array[Any], told: Told, ids: TopicIds, counts: Counts, defaults: Defaults,
        assigned: Assigned, nodes: Ints, quota_is_known: bool,
    ) -> Asked:  # fmt: skip
        """The changes with their counts resolved: as asked, else as answered, else as seen, else the default."""
        t = TOPIC_EVENTS
        kind = np.where((told.kind == AUTO) & ~ids.makes_itself(told), NOTHING, told.kind)
        captured = numbers(asked[t.error_code], NO_ANSWER)
        partitions = first_known(
            assigned.partitions, numbers(asked[t.num_partitions], -1), numbers(asked[t.answered_num_partitions], -1),
            counts.partitions, defaults.num_partitions,
        )  # fmt: skip
        factor = first_known(
            assigned.width, numbers(asked[t.replication_factor], -1),
            numbers(asked[t.answered_replication_factor], -1), counts.factor, defaults.replication_factor,
        )  # fmt: skip
        records = request_records(requests(asked), partitions, numbers(asked[t.configs], 0))
        error, reason = taken_as_captured(kind, captured, records, NO_ANSWER, quota_is_known)
        untold = unseen_before(told, kind, captured, ids)
        return cls(
            np.where(untold, NOTHING, kind), told.topic, partitions, factor, assigned,
            np.searchsorted(nodes, assigned.nodes), error, captured, internal(names)[told.topic],
            np.where(untold, Reason.TOPIC_NOT_SEEN, reason).tolist(),
        )  # fmt: skip


def first_known(assigned: Ints, asked: Ints, answered: Ints, seen: Ints, default: int) -> Ints:
    """The first count that is told; asked for as -1 means the broker's default."""
    by_default = np.where(answered > 0, answered, np.where(seen > 0, seen, default))
    return np.where(assigned > 0, assigned, np.where(asked == -1, by_default, asked))


def unseen_before(told: Told, kind: Ints, captured: Ints, ids: TopicIds) -> Bools:
    """Changes whose answer shows a topic that nothing before it does: what it had is not known."""
    about, time = ids.about(told), np.append(told.time, ALWAYS)
    created = time[told.times(CREATE).last(told.topic, told.time - 1)]
    is_created = (created != ALWAYS) & (created > time[told.times(DELETE).last(told.topic, told.time - 1)])
    known = (about != NONE) | is_created | ids.has_no_id(told)
    is_before = np.append(ids.maker == NONE, False)[about] & (np.append(ids.first, ALWAYS)[about] >= told.time)
    needs = np.isin(kind, (GROW, MOVE, DELETE)) & (captured == 0)
    exists = (kind == CREATE) & (captured == TOPIC_ALREADY_EXISTS)
    return ((needs | exists) & ~known) | ((kind == GROW) & is_before & (captured == 0))


def requests(asked: pa.Table) -> Ints:
    """A number for the request of each change."""
    t = TOPIC_EVENTS
    exchange = np.stack([numbers(asked[t.connection_id], 0), numbers(asked[t.exchange_no], 0)])
    return np.cumsum(np.append(0, np.any(np.diff(exchange, axis=1) != 0, axis=0)))[: asked.num_rows]


def slots_of(asked: Asked) -> Ints:
    """Room for the replicas of each change: growing topics have the factor of what made them."""
    makes = np.isin(asked.kind, (CREATE, AUTO))
    topics = int(asked.topic.max(initial=-1)) + 1
    widest = np.full(topics, 3)
    np.maximum.at(widest, asked.topic[makes], np.clip(asked.factor[makes], 0, 1 << 15))
    width = np.where(asked.kind == GROW, widest[asked.topic], np.clip(asked.factor, 0, 1 << 15))
    partitions = np.where(asked.kind == MOVE, 1, np.clip(asked.partitions, 0, MOST_REPLICAS))
    needs = np.isin(asked.kind, (CREATE, AUTO, GROW, MOVE))
    room = np.where(needs, np.clip(partitions * width, 0, MOST_REPLICAS), 0)
    return np.maximum(room, np.where(needs, asked.assigned.partitions * asked.assigned.width, 0))


def numbered(values: pa.ChunkedArray[Any]) -> Ints:
    """A number for each value, as for each client.id."""
    return numbers(pc.index_in(values, value_set=pc.unique(values)), 0)


def is_strict(kind: Ints, version: Ints) -> Ints:
    """1 where a request of this version is refused when its quota is used up."""
    from_version = np.array([STRICT_FROM.get(known, NEVER) for known in range(NOTHING + 1)])
    return (from_version[kind] <= version).astype(np.int64)
