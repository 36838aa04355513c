"""What Metadata shows of the topics that captured requests make and grow: how many partitions, and on which brokers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Bools, Ints
from udfs.columns.time_units import NEVER
from udfs.replay.partition_limits.events import Shown
from udfs.replay.partition_limits.history.topic_ids import TopicIds
from udfs.replay.partition_limits.history.topic_times import NONE
from udfs.replay.partition_limits.told_changes import Told
from udfs.replay.partition_limits.topics import AUTO, CREATE, GROW, MOVE


class Counts(NamedTuple):
    """By change, what Metadata shows of its topic, int64[changes]: partitions that it was made with, and replicas of
    each; of all ids of the name where the change's is not known; 0 where it shows none.
    """

    partitions: Ints
    factor: Ints


class Places(NamedTuple):
    """By change, where Metadata shows the topic's partitions, int64[changes]: those from 0 on whose replicas are as
    many as the first one's, and the place of their brokers among those of Shown.
    """

    at: Ints
    partitions: Ints
    width: Ints


def grown_from(told: Told, about: Ints, ids: TopicIds) -> Ints:
    """When partitions were first added to each id, NEVER for none: int64[ids]."""
    grown = (told.kind == GROW) & told.done & (about != NONE)
    first = np.full(len(ids.topic), NEVER)
    np.minimum.at(first, about[grown], told.time[grown])
    return first


def counts_of(told: Told, about: Ints, ids: TopicIds, shown: Shown, topics: int) -> Counts:
    """What Metadata shows of each change's topic, of so many names."""
    made = shown.time < grown_from(told, about, ids)[shown.topic_id]
    partitions = np.bincount(shown.topic_id[made], minlength=len(ids.topic))
    factor = np.zeros(len(ids.topic), np.int64)
    np.maximum.at(factor, shown.topic_id, shown.width)

    def of_change(by_id: Ints) -> Ints:
        by_topic = np.zeros(topics, np.int64)
        np.maximum.at(by_topic, ids.topic, by_id)
        return np.where(about != NONE, np.append(by_id, 0)[about], by_topic[told.topic])

    return Counts(of_change(partitions), of_change(factor))


def places_of(told: Told, about: Ints, ids: TopicIds, shown: Shown) -> Places:
    """Where Metadata shows what each change made: not where the partition was moved before it was first shown."""
    n, width = len(ids.topic), shown.width
    start = np.searchsorted(shown.topic_id, np.arange(n))
    in_row = (
        (shown.partition == np.arange(len(width)) - start[shown.topic_id])
        & (width == width[start[shown.topic_id]])
        & ~moved_before(told, about, shown)
    )
    ends = np.union1d(np.flatnonzero(~in_row), np.append(start, len(width)))
    whole = np.append(in_row, False)[start]
    stop = ends[np.searchsorted(ends, start + 1)] if n else start
    partitions = np.where(whole, stop - start, 0)
    makes = (told.kind == AUTO) | (np.isin(told.kind, (CREATE, GROW)) & told.done)
    of = np.where(makes, about, NONE)

    def of_change(by_id: Ints) -> Ints:
        return np.append(by_id, 0)[of]

    return Places(of_change(shown.at[start]), of_change(partitions), of_change(np.append(width, 0)[start]))


def moved_before(told: Told, about: Ints, shown: Shown) -> Bools:
    """Partitions that a captured request moved before Metadata first showed them: bool[partitions]."""
    moves = np.flatnonzero((told.kind == MOVE) & told.done)
    row = shown.rows_of(about[moves], told.partition[moves])
    late = (row >= 0) & (np.append(shown.time, 0)[row] > told.time[moves])
    found = np.zeros(len(shown.time), np.bool_)
    found[row[late]] = True
    return found
