"""From what a capture tells of topics to the changes that the replay of partition limits does, lane by lane.

A topic that Metadata shows and that no captured request makes was there before: it appears first, and no limit refuses
it. So does what was made beside the captured path, as by the ZooKeeper-based tools that KIP-578 exempts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from schemas.tables.steps import TOPIC_EVENTS
from udfs.arrow import array_of
from udfs.arrow import compute as pc
from udfs.replay.limits.asked_changes import (
    NO_ANSWER,
    Asked,
    Defaults,
    client_numbers,
    is_strict,
    kinds_of,
    makers,
    request_times,
    requests,
    slots_of,
)
from udfs.replay.limits.assignments import parse_assignments
from udfs.replay.limits.brokers import Brokers
from udfs.replay.limits.topic_state import APPEAR, GROW, Changes
from udfs.replay.limits.topics_seen import (
    NEVER,
    Seen,
    Shown,
    known_brokers,
    numbers,
    shown_in,
    sightings_of,
    topic_numbers,
)
from udfs.wire.arrays import Ints, read_only

BROKER, SIGHTING, CHANGE = range(3)


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


def history_of(events: pa.Table, defaults: Defaults, seed: int, mutation_quota_known: bool = False) -> History:
    """The history that rows of TOPIC_EVENTS tell; changes in the order of their requests' times."""
    t = TOPIC_EVENTS
    events = events.sort_by(
        [(str(c), "ascending") for c in (t.entry, t.time, t.connection_id, t.exchange_no, t.position)]
    )
    of = {entry: events.filter(pc.equal(events[t.entry], entry)) for entry in (BROKER, SIGHTING, CHANGE)}
    names: pa.Array[Any] = pc.unique(
        pa.chunked_array([*of[SIGHTING][t.topic].chunks, *of[CHANGE][t.topic].chunks], pa.string())
    )
    assigned = parse_assignments(of[CHANGE][t.assignments])
    nodes, brokers = known_brokers(of[BROKER], of[SIGHTING], assigned)
    seen = sightings_of(of[SIGHTING], names)
    there = appearing(of[SIGHTING], of[CHANGE], names, seen, nodes)
    asked = Asked.of(of[CHANGE], names, seen, defaults, assigned, nodes, mutation_quota_known)
    return merged(there, asked, brokers, names, of[CHANGE], shown_in(of[SIGHTING], names, nodes), seed)


class There(NamedTuple):
    """Runs of partitions that appear, int64[runs], and their brokers."""

    topic: Ints
    partition: Ints
    size: Ints
    width: Ints
    exempt: Ints
    assigned: Ints


def appearing(sightings: pa.Table, asked: pa.Table, names: pa.Array[Any], seen: Seen, nodes: Ints) -> There:
    """Partitions of the topics that nothing in the capture makes, but for those that a captured request adds."""
    t = TOPIC_EVENTS
    made = makers(asked, names, seen)
    topic = topic_numbers(sightings[t.topic], names)
    grown = (kinds_of(asked) == GROW) & (numbers(asked[t.error_code], NO_ANSWER) == 0)
    growth = request_times(asked, names, grown, len(names))
    before = (made.created == NEVER) & (made.automatic == NEVER)
    kept = before[topic] & ((numbers(sightings[t.time], 0) < growth[topic]) | (seen.first >= growth)[topic])
    order = np.lexsort((numbers(sightings[t.partition], 0), topic))
    rows = sightings.take(array_of(order[kept[order]]))
    topic, width = topic_numbers(rows[t.topic], names), numbers(pc.list_value_length(rows[t.replica_nodes]), 0)
    partition = numbers(rows[t.partition], 0)
    changed = (np.diff(topic) != 0) | (np.diff(width) != 0) | (np.diff(partition) != 1)
    starts = np.flatnonzero(np.append(True, changed)) if len(topic) else np.zeros(0, np.int64)
    size = np.diff(np.append(starts, len(topic)))
    brokers = np.searchsorted(nodes, numbers(pc.list_flatten(rows[t.replica_nodes]), 0))
    return There(
        topic[starts], partition[starts], size, width[starts], numbers(rows[t.is_internal], 0)[starts], brokers
    )


def merged(
    there: There, asked: Asked, brokers: Brokers, names: pa.Array[Any], rows: pa.Table, shown: Shown, seed: int
) -> History:
    """What appears, then what is asked for, as one list of changes."""
    t, n, m = TOPIC_EVENTS, len(there.topic), len(asked.kind)
    time = numbers(rows[t.time], 0)
    request = requests(rows)
    appeared = np.append(0, np.cumsum(there.size * there.width))
    at = np.where(asked.assigned.partitions > 0, appeared[-1] + asked.assigned.first, -1)
    named = np.maximum(asked.assigned.partitions * asked.assigned.width, 0)

    def both(before: Ints | int, after: Ints) -> Ints:
        return np.concatenate([np.broadcast_to(np.asarray(before, np.int64), n), after.astype(np.int64)])

    columns = (
        both(int(time[0]) - 1 if m else 0, time),
        both(-2, request),
        both(APPEAR, asked.kind),
        both(there.topic, asked.topic),
        both(there.size, asked.partitions),
        both(there.width, asked.factor),
        both(0, numbers(rows[t.configs], 0)),
        both(there.partition, numbers(rows[t.partition], 0)),
        both(appeared[:-1], at),
        both(there.size * there.width, named),
        np.append(0, np.cumsum(both(there.size * there.width, slots_of(asked)))),
        both(0, asked.error),
        both(there.exempt, asked.exempt),
        both(0, numbers(rows[t.validate_only], 0)),
        both(0, is_strict(asked.kind, numbers(rows[t.api_version], 0))),
        both(0, client_numbers(rows)),
        seed + np.arange(n + m),
        np.concatenate([there.assigned, asked.brokers]),
    )
    return History(
        Changes(*(read_only(column.astype(np.int64)) for column in columns)),
        brokers,
        [str(name) for name in names.to_pylist()],
        rows,
        both(-1, np.arange(m)),
        both(NO_ANSWER, asked.captured),
        [""] * n + asked.reason,
        shown,
    )
