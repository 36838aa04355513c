"""Changes that requests ask for: their counts resolved, and which of their errors have to be taken as captured."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from schemas.tables.steps import TOPIC_EVENTS
from udfs.arrow import compute as pc
from udfs.replay.limits.assignments import Assigned
from udfs.replay.limits.captured_errors import Reason, request_records, taken_as_captured
from udfs.replay.limits.topic_state import AUTO, CREATE, DELETE, GROW, MOVE, NOTHING
from udfs.replay.limits.topics_seen import NEVER, Seen, internal, numbers, topic_numbers
from udfs.wire.arrays import Bools, Ints

KINDS = {
    "create_topic": CREATE, "auto_create": AUTO, "create_partitions": GROW, "reassign_partition": MOVE,
    "delete_topic": DELETE,
}  # fmt: skip
STRICT_FROM = {CREATE: 6, GROW: 3, DELETE: 5}
"""Versions from which a request is refused where its controller mutation quota is used up (KIP-599)."""

MOST_REPLICAS = 1_000_000
"""Replicas of one change for which there is room; no release of Kafka makes a hundredth of that in one request."""

NO_ANSWER = -(1 << 15)


class Defaults(NamedTuple):
    """num.partitions and default.replication.factor of the brokers."""

    num_partitions: int
    replication_factor: int


def request_times(asked: pa.Table, names: pa.Array[Any], which: Bools, n: int) -> Ints:
    """By topic the first time of the changes in `which`, NEVER for none."""
    first = np.full(n, NEVER)
    topic = topic_numbers(asked[TOPIC_EVENTS.topic], names)
    np.minimum.at(first, topic[which], numbers(asked[TOPIC_EVENTS.time], NEVER)[which])
    return first


class Makers(NamedTuple):
    """By topic, when a CreateTopics or a Metadata request in the capture first made it, NEVER for none."""

    created: Ints
    automatic: Ints


def makers(asked: pa.Table, names: pa.Array[Any], seen: Seen) -> Makers:
    """A Metadata request made a topic where Metadata showed it later, and nothing else can have."""
    t, n = TOPIC_EVENTS, len(names)
    kind = kinds_of(asked)
    done = (numbers(asked[t.error_code], NO_ANSWER) == 0) & (numbers(asked[t.validate_only], 0) == 0)
    created = request_times(asked, names, (kind == CREATE) & done, n)
    automatic = request_times(asked, names, kind == AUTO, n)
    made = (automatic < seen.first) & (seen.first < NEVER) & (created == NEVER)
    return Makers(created, np.where(made, automatic, NEVER))


def kinds_of(asked: pa.Table) -> Ints:
    """The kind of each change."""
    names = pa.array(list(KINDS))
    numbered = np.array([*KINDS.values(), NOTHING])
    kinds: Ints = numbered[numbers(pc.index_in(asked[TOPIC_EVENTS.kind], value_set=names), -1)]
    return kinds


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
        cls, asked: pa.Table, names: pa.Array[Any], seen: Seen, defaults: Defaults, assigned: Assigned, nodes: Ints,
        mutation_quota_known: bool,
    ) -> Asked:  # fmt: skip
        """The changes with their counts resolved: as asked, else as answered, else as seen, else the default."""
        t = TOPIC_EVENTS
        kind, topic = kinds_of(asked), topic_numbers(asked[t.topic], names)
        made = makers(asked, names, seen)
        kind = np.where((kind == AUTO) & (made.automatic[topic] == NEVER), NOTHING, kind)
        captured = numbers(asked[t.error_code], NO_ANSWER)
        partitions = first_known(
            assigned.partitions, numbers(asked[t.num_partitions], -1), numbers(asked[t.answered_num_partitions], -1),
            seen.partitions[topic], defaults.num_partitions,
        )  # fmt: skip
        factor = first_known(
            assigned.width, numbers(asked[t.replication_factor], -1),
            numbers(asked[t.answered_replication_factor], -1), seen.factor[topic], defaults.replication_factor,
        )  # fmt: skip
        records = request_records(requests(asked), partitions, numbers(asked[t.configs], 0))
        error, reason = taken_as_captured(kind, captured, records, NO_ANSWER, mutation_quota_known)
        untold = unseen_before(asked, kind, topic, captured, made, seen)
        return cls(
            np.where(untold, NOTHING, kind), topic, partitions, factor, assigned,
            np.searchsorted(nodes, assigned.nodes), error, captured, internal(names)[topic],
            np.where(untold, Reason.TOPIC_NOT_SEEN, reason).tolist(),
        )  # fmt: skip


def first_known(assigned: Ints, asked: Ints, answered: Ints, seen: Ints, default: int) -> Ints:
    """The first count that is told; asked for as -1 means the broker's default."""
    by_default = np.where(answered > 0, answered, np.where(seen > 0, seen, default))
    return np.where(assigned > 0, assigned, np.where(asked == -1, by_default, asked))


def unseen_before(asked: pa.Table, kind: Ints, topic: Ints, captured: Ints, made: Makers, seen: Seen) -> Bools:
    """Changes whose answer shows a topic that nothing before it does: what it had is not known."""
    time = numbers(asked[TOPIC_EVENTS.time], 0)
    known = (np.minimum(made.created, made.automatic)[topic] < time) | (
        (seen.first[topic] < NEVER) & (np.minimum(made.created, made.automatic)[topic] == NEVER)
    )
    grown = (kind == GROW) & (seen.first[topic] >= time) & (np.minimum(made.created, made.automatic)[topic] >= time)
    needs = np.isin(kind, (GROW, MOVE, DELETE)) & (captured == 0)
    exists = (kind == CREATE) & (captured == 36)
    untold: Bools = ((needs | exists) & ~known) | (grown & (captured == 0))
    return untold


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


def client_numbers(rows: pa.Table) -> Ints:
    """A number for each client.id."""
    clients = rows[TOPIC_EVENTS.client_id]
    return numbers(pc.index_in(clients, value_set=pc.unique(clients)), 0)


def is_strict(kind: Ints, version: Ints) -> Ints:
    """1 where a request of this version is refused when its quota is used up."""
    from_version = np.array([STRICT_FROM.get(known, NEVER) for known in range(NOTHING + 1)])
    return (from_version[kind] <= version).astype(np.int64)
