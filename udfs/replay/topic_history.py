"""From what a capture tells of topics to the changes that the replay of partition limits does, lane by lane.

A topic that Metadata shows and that no captured request makes was there before: it appears first, and no limit refuses
it. So does what was made beside the captured path, as by the ZooKeeper-based tools that KIP-578 exempts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.tables.steps import TOPIC_EVENTS
from udfs.replay.assignments import Assigned, parse_assignments
from udfs.replay.brokers import Brokers, brokers_of
from udfs.replay.captured_errors import Reason, request_records, taken_as_captured
from udfs.replay.topic_state import APPEAR, AUTO, CREATE, DELETE, GROW, MOVE, NOTHING, Changes
from udfs.wire.arrays import Bools, Ints, read_only

BROKER, SIGHTING, CHANGE = range(3)
KINDS = {
    "create_topic": CREATE, "auto_create": AUTO, "create_partitions": GROW, "reassign_partition": MOVE,
    "delete_topic": DELETE,
}  # fmt: skip
INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state")
"""Those that KIP-578 names."""

STRICT_FROM = {CREATE: 6, GROW: 3, DELETE: 5}
"""Versions from which a request is refused where its controller mutation quota is used up (KIP-599)."""

MOST_REPLICAS = 1_000_000
"""Replicas of one change for which there is room; no release of Kafka makes a hundredth of that in one request."""

NEVER = (1 << 63) - 1
NO_ANSWER = -(1 << 15)


class Defaults(NamedTuple):
    """num.partitions and default.replication.factor of the brokers."""

    num_partitions: int
    replication_factor: int


class Shown(NamedTuple):
    """Partitions that Metadata shows, by topic and partition: int64[partitions] keys, int64[partitions + 1] where the
    brokers of each begin.
    """

    key: Ints
    at: Ints
    brokers: Ints

    @staticmethod
    def key_of(topic: Ints, partition: Ints) -> Ints:
        """What partitions are sorted by."""
        return topic << 32 | partition


class History(NamedTuple):
    """A capture's changes, with the rows of TOPIC_EVENTS they are of; the first rows are the topics there before.

    row: row of `asked` by change, -1 for what appears. reason: why a change could not be checked, "" where it can.
    captured: the captured error code by change, NO_ANSWER without one.
    """

    changes: Changes
    brokers: Brokers
    topics: list[str]
    asked: pa.Table
    row: Ints
    captured: Ints
    reason: list[str]
    shown: Shown


class Seen(NamedTuple):
    """What Metadata shows of each topic, int64[topics]: first time, partitions, and replicas of its first partition."""

    first: Ints
    partitions: Ints
    factor: Ints


def history_of(events: pa.Table, defaults: Defaults, seed: int, mutation_quota_known: bool = False) -> History:
    """The history that rows of TOPIC_EVENTS tell; changes in the order of their requests' times."""
    t = TOPIC_EVENTS
    events = events.sort_by([(str(c), "ascending") for c in (t.entry, t.time, t.connection_id, t.exchange_no, t.position)])
    of = {entry: events.filter(pc.equal(events[t.entry], entry)) for entry in (BROKER, SIGHTING, CHANGE)}
    names = pc.unique(pa.chunked_array([*of[SIGHTING][t.topic].chunks, *of[CHANGE][t.topic].chunks], pa.string()))
    assigned = parse_assignments(of[CHANGE][t.assignments])
    nodes, brokers = known_brokers(of[BROKER], of[SIGHTING], assigned)
    seen = sightings_of(of[SIGHTING], names)
    there = appearing(of[SIGHTING], of[CHANGE], names, seen, nodes)
    asked = Asked.of(of[CHANGE], names, seen, defaults, assigned, nodes, mutation_quota_known)
    return merged(there, asked, brokers, names, of[CHANGE], shown_in(of[SIGHTING], names, nodes), seed)


def numbers(column: pa.ChunkedArray[Any], missing: int) -> Ints:
    """A column as int64, `missing` for null."""
    filled: Ints = pc.fill_null(column.cast(pa.int64()), missing).to_numpy().astype(np.int64)
    return filled


def topic_numbers(column: pa.ChunkedArray[Any], names: pa.Array[Any]) -> Ints:
    """The number of each topic."""
    found: Ints = numbers(pc.index_in(column, value_set=names), -1)
    return found


def known_brokers(listed: pa.Table, sightings: pa.Table, assigned: Assigned) -> tuple[Ints, Brokers]:
    """Node ids, ascending, and the brokers: those that only replicas name are down."""
    t = TOPIC_EVENTS
    up = numbers(listed[t.node_id], -1)
    racks = dict(zip(up.tolist(), listed[t.rack].to_pylist(), strict=True))
    nodes = np.unique(np.concatenate([up, numbers(pc.list_flatten(sightings[t.replica_nodes]), -1), assigned.nodes]))
    nodes = nodes[nodes >= 0]
    return nodes, brokers_of(nodes.tolist(), [racks.get(n) for n in nodes.tolist()], [n in racks for n in nodes.tolist()])


def sightings_of(sightings: pa.Table, names: pa.Array[Any]) -> Seen:
    """By topic; a topic never seen has a first time of NEVER."""
    t = TOPIC_EVENTS
    topic = topic_numbers(sightings[t.topic], names)
    first, factor = np.full(len(names), NEVER), np.zeros(len(names), np.int64)
    np.minimum.at(first, topic, numbers(sightings[t.time], NEVER))
    np.maximum.at(factor, topic, numbers(pc.list_value_length(sightings[t.replica_nodes]), 0))
    return Seen(first, np.bincount(topic, minlength=len(names)), factor)


def request_times(asked: pa.Table, names: pa.Array[Any], which: Bools, n: int) -> Ints:
    """By topic the first time of the changes in `which`, NEVER for none."""
    first = np.full(n, NEVER)
    topic = topic_numbers(asked[TOPIC_EVENTS.topic], names)
    np.minimum.at(first, topic[which], numbers(asked[TOPIC_EVENTS.time], NEVER)[which])
    return first


class Makers(NamedTuple):
    """By topic the first time of what made it within the capture, NEVER for none: a request, or a Metadata request."""

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


class There(NamedTuple):
    """Runs of partitions that appear, int64[runs], and their brokers."""

    topic: Ints
    partition: Ints
    size: Ints
    width: Ints
    exempt: Ints
    assigned: Ints


def appearing(
    sightings: pa.Table, asked: pa.Table, names: pa.Array[Any], seen: Seen, nodes: Ints
) -> There:
    """Partitions of the topics that nothing in the capture makes, but for those that a captured request adds."""
    t = TOPIC_EVENTS
    made = makers(asked, names, seen)
    topic = topic_numbers(sightings[t.topic], names)
    grown = (kinds_of(asked) == GROW) & (numbers(asked[t.error_code], NO_ANSWER) == 0)
    growth = request_times(asked, names, grown, len(names))
    before = (made.created == NEVER) & (made.automatic == NEVER)
    kept = before[topic] & ((numbers(sightings[t.time], 0) < growth[topic]) | (seen.first >= growth)[topic])
    rows = sightings.take(pa.array(np.lexsort((numbers(sightings[t.partition], 0), topic))))
    rows = rows.filter(pa.array(kept[np.lexsort((numbers(sightings[t.partition], 0), topic))]))
    topic, width = topic_numbers(rows[t.topic], names), numbers(pc.list_value_length(rows[t.replica_nodes]), 0)
    partition = numbers(rows[t.partition], 0)
    changed = (np.diff(topic) != 0) | (np.diff(width) != 0) | (np.diff(partition) != 1)
    starts = np.flatnonzero(np.append(True, changed)) if len(topic) else np.zeros(0, np.int64)
    size = np.diff(np.append(starts, len(topic)))
    brokers = np.searchsorted(nodes, numbers(pc.list_flatten(rows[t.replica_nodes]), 0))
    return There(
        topic[starts], partition[starts], size, width[starts], numbers(rows[t.is_internal], 0)[starts], brokers
    )


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
        records = request_records(requests(asked), partitions)
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


def internal(names: pa.Array[Any]) -> Ints:
    """1 for Kafka's internal topics."""
    found: Ints = pc.is_in(names, value_set=pa.array(INTERNAL_TOPICS)).to_numpy(zero_copy_only=False).astype(np.int64)
    return found


def unseen_before(asked: pa.Table, kind: Ints, topic: Ints, captured: Ints, made: Makers, seen: Seen) -> Bools:
    """Changes whose answer shows a topic that nothing before it does: what it had is not known."""
    time = numbers(asked[TOPIC_EVENTS.time], 0)
    known = (np.minimum(made.created, made.automatic)[topic] < time) | (
        (seen.first[topic] < NEVER) & (np.minimum(made.created, made.automatic)[topic] == NEVER)
    )
    grown = (kind == GROW) & (seen.first[topic] >= time) & (np.minimum(made.created, made.automatic)[topic] >= time)
    needs = np.isin(kind, (GROW, MOVE, DELETE)) & (captured == 0)
    exists = (kind == CREATE) & (captured == 36)
    return ((needs | exists) & ~known) | (grown & (captured == 0))


def requests(asked: pa.Table) -> Ints:
    """A number for the request of each change."""
    t = TOPIC_EVENTS
    exchange = np.stack([numbers(asked[t.connection_id], 0), numbers(asked[t.exchange_no], 0)])
    return np.cumsum(np.append(0, np.any(np.diff(exchange, axis=1) != 0, axis=0)))[: asked.num_rows]


def shown_in(sightings: pa.Table, names: pa.Array[Any], nodes: Ints) -> Shown:
    """The partitions seen, in order."""
    t = TOPIC_EVENTS
    key = Shown.key_of(topic_numbers(sightings[t.topic], names), numbers(sightings[t.partition], 0))
    order = np.argsort(key)
    lists = sightings[t.replica_nodes].take(pa.array(order))
    ends = np.cumsum(numbers(pc.list_value_length(lists), 0))
    return Shown(key[order], np.append(0, ends), np.searchsorted(nodes, numbers(pc.list_flatten(lists), 0)))


def merged(
    there: There, asked: Asked, brokers: Brokers, names: pa.Array[Any], rows: pa.Table, shown: Shown, seed: int
) -> History:
    """What appears, then what is asked for, as one list of changes."""
    t, n, m = TOPIC_EVENTS, len(there.topic), len(asked.kind)
    time = numbers(rows[t.time], 0)
    request = requests(rows)
    version = numbers(rows[t.api_version], 0)
    strict = np.array([STRICT_FROM.get(kind, NEVER) for kind in range(NOTHING + 1)])[asked.kind] <= version
    appeared = np.append(0, np.cumsum(there.size * there.width))
    at = np.where(asked.assigned.partitions > 0, appeared[-1] + asked.assigned.first, -1)
    named = np.maximum(asked.assigned.partitions * asked.assigned.width, 0)

    def both(before: Ints | int, after: Ints) -> Ints:
        return np.concatenate([np.broadcast_to(np.asarray(before, np.int64), n), after.astype(np.int64)])

    partition = both(there.partition, numbers(rows[t.partition], 0))
    size = both(there.size * there.width, slots_of(asked))
    columns = (
        both(int(time[0]) - 1 if m else 0, time), both(-2, request), both(APPEAR, asked.kind),
        both(there.topic, asked.topic), both(there.size, asked.partitions), both(there.width, asked.factor), partition,
        both(appeared[:-1], at), both(there.size * there.width, named), np.append(0, np.cumsum(size)), both(0, asked.error), both(there.exempt, asked.exempt),
        both(0, numbers(rows[t.validate_only], 0)), both(0, strict), both(0, client_numbers(rows)),
        seed + np.arange(n + m), np.concatenate([there.assigned, asked.brokers]),
    )  # fmt: skip
    return History(
        Changes(*(read_only(column.astype(np.int64)) for column in columns)), brokers, names.to_pylist(), rows,
        both(-1, np.arange(m)), both(NO_ANSWER, asked.captured), [""] * n + asked.reason, shown,
    )  # fmt: skip


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
