"""What Metadata shows of topics that captured requests create or grow: the number of partitions, and their brokers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Bools, Ints, Records, stretch_edges
from udfs.columns.records import int_fields
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import NEVER
from udfs.replay.partition_limits.events import TopicEvents
from udfs.replay.partition_limits.state import AUTO_CREATE, CREATE, GROW, MOVE

SHOWN_TOPIC = int_fields(
    "partitions",  # that the topic was created with, 0 if none are shown
    "replication_factor",
    "first_replica",  # where the brokers of its partition 0 begin
    "placed_partitions",  # partitions from 0 on that have as many replicas as partition 0
    "placed_factor",  # the number of those replicas
)
"""What Metadata shows of a request's topic. If the id is not known, the first two are for all ids of the name."""


class ShownPartitions(NamedTuple):
    """Partitions as they were first shown, in the order of topic id and partition.

    partitions: SIGHTING[partitions], whose topic_id is the index of the id in TOPIC_ID. brokers: int64[replicas].
    """

    partitions: Records
    brokers: Ints


def first_shown(events: TopicEvents, topic_id: Ints) -> ShownPartitions:
    """Each partition of a topic id as it was first shown. topic_id: int64[sightings], indices of ids."""
    sightings = events.sightings
    order = np.lexsort((sightings["time"], sightings["partition"], topic_id))
    key = topic_id[order] << 32 | sightings["partition"][order]
    order = order[np.append(True, np.diff(key) != 0)[: len(key)]]
    partitions = sightings[order]
    ends = stretch_edges(partitions["replicas"])
    moved_by = np.repeat(partitions["first_replica"] - ends[:-1], partitions["replicas"])
    partitions["topic_id"], partitions["first_replica"] = topic_id[order], ends[:-1]
    return ShownPartitions(partitions, events.shown_brokers[np.arange(ends[-1]) + moved_by])


def growth_times(requests: Records, ids: Records, subjects: Ints) -> Ints:
    """When partitions were first added to each id (us), NEVER if none were: int64[ids].

    requests: TOPIC_REQUEST[requests]. ids: TOPIC_ID[ids]. subjects: int64[requests], the row of the id that each is
    about.
    """
    grows = (requests["kind"] == GROW) & (requests["is_done"] == 1) & (subjects != NONE)
    first = np.full(len(ids), NEVER)
    np.minimum.at(first, subjects[grows], requests["time"][grows])
    return first


def shown_topics(events: TopicEvents, ids: Records, subjects: Ints, shown: ShownPartitions, growth: Ints) -> Records:
    """What Metadata shows of the topic of each request: SHOWN_TOPIC[requests].

    ids: TOPIC_ID[ids]. subjects: int64[requests], the row of the id that each is about. growth: int64[ids], from
    `growth_times`.
    """
    requests, topics = events.requests, np.zeros(len(events.requests), SHOWN_TOPIC)
    id_of = shown.partitions["topic_id"]
    is_created_so = shown.partitions["time"] < growth[id_of]
    partitions, factor = np.bincount(id_of[is_created_so], minlength=len(ids)), np.zeros(len(ids), np.int64)
    np.maximum.at(factor, id_of, shown.partitions["replicas"])
    for name, by_id in (("partitions", partitions), ("replication_factor", factor)):
        by_topic = np.zeros(events.topics, np.int64)
        np.maximum.at(by_topic, ids["topic"], by_id)
        topics[name] = np.where(subjects != NONE, np.append(by_id, 0)[subjects], by_topic[requests["topic"]])
    is_done = np.isin(requests["kind"], (CREATE, GROW)) & (requests["is_done"] == 1)
    makes = is_done | (requests["kind"] == AUTO_CREATE)
    made = np.where(makes, subjects, NONE)
    for name, by_id in placements_by_id(requests, len(ids), subjects, shown).items():
        topics[name] = np.append(by_id, 0)[made]
    return topics


def placements_by_id(requests: Records, ids: int, subjects: Ints, shown: ShownPartitions) -> dict[str, Ints]:
    """Where Kafka placed the partitions of each id: columns of SHOWN_TOPIC, int64[ids] each.

    Only partitions from 0 on count that Metadata shows with as many replicas as the first one, and that were not moved
    before they were first shown. requests: TOPIC_REQUEST[requests]. subjects: int64[requests], the row of the id that
    each is about.
    """
    partitions, width = shown.partitions, shown.partitions["replicas"]
    id_of, rows = partitions["topic_id"], np.arange(len(shown.partitions))
    start = np.searchsorted(id_of, np.arange(ids))
    is_nth, is_alike = partitions["partition"] == rows - start[id_of], width == width[start[id_of]]
    in_row = is_nth & is_alike & ~moved_before(requests, subjects, shown)
    ends = np.union1d(np.flatnonzero(~in_row), np.append(start, len(rows)))
    stop = ends[np.searchsorted(ends, start + 1)] if ids else start
    return {
        "first_replica": partitions["first_replica"][start],
        "placed_partitions": np.where(in_row[start], stop - start, 0),
        "placed_factor": width[start],
    }


def moved_before(requests: Records, subjects: Ints, shown: ShownPartitions) -> Bools:
    """Which partitions a captured request moved before Metadata first showed them: bool[partitions].

    requests: TOPIC_REQUEST[requests]. subjects: int64[requests], the row of the id that each is about.
    """
    moves = np.flatnonzero((requests["kind"] == MOVE) & (requests["is_done"] == 1))
    row = shown_rows_of(shown, subjects[moves], requests["partition"][moves])
    is_late = (row != NONE) & (np.append(shown.partitions["time"], 0)[row] > requests["time"][moves])
    moved = np.zeros(len(shown.partitions), np.bool_)
    moved[row[is_late]] = True
    return moved


def shown_rows_of(shown: ShownPartitions, topic_id: Ints, partition: Ints) -> Ints:
    """The row of each of these partitions in `shown`, NONE if it is not shown: int64[n].

    topic_id: int64[n], rows of ids, NONE for no id. partition: int64[n].
    """
    known = shown.partitions["topic_id"] << 32 | shown.partitions["partition"]
    wanted = topic_id << 32 | partition
    place = np.searchsorted(known, wanted)
    is_known = np.append(known, -1)[place] == wanted
    return np.where(is_known & (topic_id != NONE), place, NONE)
