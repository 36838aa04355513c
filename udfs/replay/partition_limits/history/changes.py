"""From what a capture tells of topics to the changes that the replay of partition limits does, lane by lane.

A topic that Metadata shows and that no captured request makes was there before: it appears first, and no limit refuses
it. So does what was made beside the captured path, as by the ZooKeeper-based tools that KIP-578 exempts; where that is
another topic than the name had stood for (another id), it appears when it was first seen.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from schemas.tables.steps import TOPIC_EVENTS
from udfs.columns.arrays import Ints, edges, read_only
from udfs.columns.arrow_columns import compute as pc
from udfs.columns.time_units import ALWAYS, NEVER
from udfs.replay.partition_limits.assignments import parse_assignments
from udfs.replay.partition_limits.events import Shown, known_brokers, numbers
from udfs.replay.partition_limits.history.requested_changes import (
    Asked,
    Defaults,
    is_strict,
    numbered,
    requests,
    slots_of,
)
from udfs.replay.partition_limits.history.shown_partitions import Places, counts_of, grown_from, places_of
from udfs.replay.partition_limits.history.topic_ids import TopicIds, topic_ids
from udfs.replay.partition_limits.history.topic_times import NONE
from udfs.replay.partition_limits.placement.brokers import Brokers
from udfs.replay.partition_limits.told_changes import NO_ANSWER, Told
from udfs.replay.partition_limits.topics import APPEAR, CREATE, VANISH, Changes

BROKER, SIGHTING, CHANGE = range(3)


class History(NamedTuple):
    """A capture's changes, with the rows of TOPIC_EVENTS they are of.

    row: row of `asked` by change, -1 for what appears or vanishes. reason: why a change could not be checked, "" where
    it can. captured: the captured error code by change, NO_ANSWER without one.
    """

    changes: Changes
    brokers: Brokers
    topics: list[str]
    asked: pa.Table
    row: Ints
    captured: Ints
    reason: list[str]


def history_of(events: pa.Table, defaults: Defaults, seed: int, quota_is_known: bool) -> History:
    """The history that rows of TOPIC_EVENTS tell; changes in the order of their requests' times.

    seed: of the draws by which Kafka places. quota_is_known: the controller mutation quota that was in force is stated.
    """
    t = TOPIC_EVENTS
    order = (t.entry, t.time, t.connection_id, t.exchange_no, t.position, t.topic, t.topic_id, t.partition, t.node_id)
    events = events.sort_by([(str(c), "ascending") for c in order])
    of = {entry: events.filter(pc.equal(events[t.entry], entry)) for entry in (BROKER, SIGHTING, CHANGE)}
    names: pa.Array[Any] = pc.unique(
        pa.chunked_array([*of[SIGHTING][t.topic].chunks, *of[CHANGE][t.topic].chunks], pa.string())
    )
    assigned = parse_assignments(of[CHANGE][t.assignments])
    nodes, brokers = known_brokers(of[BROKER], of[SIGHTING], assigned)
    told = Told.of(of[CHANGE], names)
    ids, shown = topic_ids(of[SIGHTING], names, told, nodes)
    about = ids.about(told)
    counts, places = counts_of(told, about, ids, shown, len(names)), places_of(told, about, ids, shown)
    asked = Asked.of(of[CHANGE], names, told, ids, counts, defaults, assigned, nodes, quota_is_known)
    there = there_by_itself(told, ids, shown, grown_from(told, about, ids))
    return merged(there, asked, brokers, names, of[CHANGE], places, shown.brokers, seed)


class There(NamedTuple):
    """What comes and goes without a captured request, int64[runs]: topics that vanish, and runs of partitions that
    appear, in this order; and the brokers of those.
    """

    kind: Ints
    time: Ints
    topic: Ints
    partition: Ints
    size: Ints
    width: Ints
    exempt: Ints
    assigned: Ints


def there_by_itself(told: Told, ids: TopicIds, shown: Shown, growth: Ints) -> There:
    """What no captured request makes or deletes, though Metadata shows it; growth: when ids had partitions added."""
    topic, time = vanishing(told, ids)
    runs, assigned = appearing(ids, shown, growth)
    none = np.zeros(len(topic), np.int64)
    gone = (np.full(len(topic), VANISH), time, topic, none, none, none, none)
    return There(*[*(np.concatenate(pair) for pair in zip(gone, runs, strict=True)), assigned])


def vanishing(told: Told, ids: TopicIds) -> tuple[Ints, Ints]:
    """(topic, time) where a name is made, or stands for another id, though the one before was not seen deleted."""
    rows = np.union1d(np.flatnonzero((told.kind == CREATE) & told.done), ids.maker[ids.maker != NONE])
    beside = (ids.maker == NONE) & (ids.begin != ALWAYS)
    topic = np.concatenate([told.topic[rows], ids.topic[beside]])
    time = np.concatenate([told.time[rows], ids.begin[beside]])
    gone = ids.gone_before(told, topic, time)
    return topic[gone], time[gone]


def appearing(ids: TopicIds, shown: Shown, growth: Ints) -> tuple[tuple[Ints, ...], Ints]:
    """Partitions of the ids that nothing in the capture makes, but for those that a captured request adds: columns of
    There, and their brokers.
    """
    of = shown.topic_id
    kept = (ids.maker == NONE)[of] & ((shown.time < growth[of]) | (ids.first >= growth)[of])
    rows = np.flatnonzero(kept)
    of, partition, width = of[rows], shown.partition[rows], shown.width[rows]
    changed = (np.diff(of) != 0) | (np.diff(width) != 0) | (np.diff(partition) != 1)
    starts = np.flatnonzero(np.append(True, changed)) if len(rows) else rows
    size = np.diff(np.append(starts, len(rows)))
    first = of[starts]
    brokers = shown.brokers[np.repeat(kept, shown.width)]
    n = len(starts)
    columns = (
        np.full(n, APPEAR), ids.begin[first], ids.topic[first], partition[starts], size, width[starts],
        shown.exempt[rows][starts],
    )  # fmt: skip
    return columns, brokers


class Merged(NamedTuple):
    """Two kinds of changes as one list: those that come by themselves, before those that are asked for at one time.

    order: int64[changes], the place of each among both one behind the other. by_themselves: how many are.
    """

    order: Ints
    by_themselves: int

    def column(self, by_themselves: Ints | int, asked: Ints) -> Ints:
        """A column of the list, int64[changes], from those of both; a number stands for each that comes by itself."""
        first = np.broadcast_to(np.asarray(by_themselves, np.int64), self.by_themselves)
        return np.concatenate([first, asked.astype(np.int64)])[self.order]


def came_at(there: There, asked: Ints) -> Ints:
    """When what comes by itself does, int64[there]: what was always there, just before all else that has a time.

    asked: times of what is asked for, us.
    """
    known = np.append(asked, there.time[there.time != ALWAYS])
    return np.where(there.time == ALWAYS, known.min(initial=NEVER) - 1 if len(asked) else 0, there.time)


def merged(
    there: There, asked: Asked, brokers: Brokers, names: pa.Array[Any], rows: pa.Table, places: Places,
    shown_brokers: Ints, seed: int,
) -> History:  # fmt: skip
    """What comes and goes by itself, and what is asked for, as one list of changes in the order of their times."""
    n, time = len(there.topic), numbers(rows[TOPIC_EVENTS.time], 0)
    came = came_at(there, time)
    both = Merged(np.argsort(np.append(came, time), kind="stable"), n)
    changes = changes_in_order(both, there, came, asked, rows, places)._replace(
        seed=seed + np.arange(len(both.order)),
        assigned=np.concatenate([there.assigned, asked.brokers, shown_brokers]),
    )
    return History(
        Changes(*(read_only(column.astype(np.int64)) for column in changes)),
        brokers,
        [str(name) for name in names.to_pylist()],
        rows,
        both.column(-1, np.arange(len(time))),
        both.column(NO_ANSWER, asked.captured),
        [([""] * n + asked.reason)[place] for place in both.order.tolist()],
    )


def changes_in_order(both: Merged, there: There, came: Ints, asked: Asked, rows: pa.Table, places: Places) -> Changes:
    """The columns of changes that are of one change each; without seeds and brokers."""
    t, column = TOPIC_EVENTS, both.column
    appeared = edges(there.size * there.width)
    requested = appeared[-1] + len(asked.brokers)
    at = np.where(asked.assigned.partitions > 0, appeared[-1] + asked.assigned.first, -1)
    named = np.maximum(asked.assigned.partitions * asked.assigned.width, 0)
    none = np.zeros(0, np.int64)
    return Changes(
        time=column(came, numbers(rows[t.time], 0)),
        request=column(-2, requests(rows)),
        kind=column(there.kind, asked.kind),
        topic=column(there.topic, asked.topic),
        partitions=column(there.size, asked.partitions),
        factor=column(there.width, asked.factor),
        configs=column(0, numbers(rows[t.configs], 0)),
        partition=column(there.partition, numbers(rows[t.partition], 0)),
        assigned_at=column(appeared[:-1], at),
        assigned_size=column(there.size * there.width, named),
        shown_at=column(0, requested + places.at),
        shown_partitions=column(0, places.partitions),
        shown_width=column(0, places.width),
        slot=edges(column(there.size * there.width, slots_of(asked))),
        error=column(0, asked.error),
        exempt=column(there.exempt, asked.exempt),
        validate_only=column(0, numbers(rows[t.validate_only], 0)),
        strict=column(0, is_strict(asked.kind, numbers(rows[t.api_version], 0))),
        client=column(0, numbered(rows[t.client_id])),
        connection=column(0, numbered(rows[t.connection_id])),
        seed=none,
        assigned=none,
    )
