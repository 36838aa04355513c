"""A cluster's topics while changes to them are replayed: how many replicas each broker has, and which."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints
from udfs.kernels.kernel import kernel

APPEAR, VANISH, CREATE, AUTO, GROW, MOVE, DELETE, NOTHING = range(8)
"""Kinds of change; APPEAR brings partitions that were there without a captured request, VANISH takes a topic away
likewise, NOTHING asks for nothing."""

UNPLACED = -1
MOVED = 1 << 20  # taken from the slots of partitions that were moved: their replicas are in the slots of the move
NO_CHUNK = -1


class Changes(NamedTuple):
    """Changes in the order of their times: int64[changes] but for the last column; cells are lane independent."""

    time: Ints  # us
    request: Ints  # changes of the same request have the same number and stand together
    kind: Ints
    topic: Ints  # number of the topic
    partitions: Ints  # asked for; of GROW all that shall be there
    factor: Ints  # replication factor asked for; of MOVE the replicas named
    configs: Ints  # configurations of a topic to be made
    partition: Ints  # of MOVE the partition, of APPEAR the first one
    assigned_at: Ints  # the brokers that the request names are assigned[assigned_at:]; -1: Kafka is to place them
    assigned_size: Ints  # how many brokers it names
    shown_at: Ints  # Metadata shows the topic's partitions from 0 on on the brokers assigned[shown_at:], ...
    shown_partitions: Ints  # ... so many; 0: it does not, or the change made none
    shown_width: Ints  # ... of so many replicas each
    slot: Ints  # int64[changes + 1]: where the change's replicas go
    error: Ints  # an error that no replay can derive, taken as captured; 0 for none
    exempt: Ints  # 1: an internal topic, which the limits of KIP-578 neither refuse nor count
    validate_only: Ints
    strict: Ints  # 1: a version that is refused where the controller mutation quota is used up (KIP-599)
    client: Ints  # number of the client.id
    connection: Ints  # number of the connection
    seed: Ints
    assigned: Ints  # broker numbers


class Topics(NamedTuple):
    """What there is of a lane: int64[brokers], int64[1], int64[topics] and int64[changes] columns."""

    counts: Ints  # replicas by broker, without those of internal topics
    total: Ints  # ... of all brokers
    there: Ints  # partitions by topic; 0: no such topic
    factor: Ints
    last: Ints  # the change that brought the topic's newest partitions, NO_CHUNK for none
    refused: Ints  # 1: the topic was refused and is not there
    slots: Ints  # brokers by slot
    first: Ints  # by change: the first partition it brought, how many, of how many replicas, and the change before
    size: Ints
    width: Ints
    before: Ints
    old: Ints  # int64[4 * changes]: there, factor, last and refused of the topic before the change
    moved_from: Ints  # by change: the slot of the partition before its move, -1 for none
    moved_width: Ints


def no_topics(changes: Changes, brokers: int, topics: int) -> Topics:
    """An empty cluster."""
    n = len(changes.time)
    sizes = (brokers, 1, topics, topics, topics, topics, int(changes.slot[-1]), n, n, n, n, 4 * n, n, n)
    state = Topics(*(np.zeros(size, np.int64) for size in sizes))
    state.last[:] = NO_CHUNK
    return state


@kernel
def remember(changes: Changes, topics: Topics, change: int) -> None:
    """Note what the change is about to alter, for `undo`."""
    topic = changes.topic[change]
    topics.old[4 * change] = topics.there[topic]
    topics.old[4 * change + 1] = topics.factor[topic]
    topics.old[4 * change + 2] = topics.last[topic]
    topics.old[4 * change + 3] = topics.refused[topic]
    topics.moved_from[change] = -1


@kernel
def undo(changes: Changes, topics: Topics, change: int) -> None:
    """Take back what the change did to topics; counts of brokers are the caller's to restore."""
    topic = changes.topic[change]
    topics.there[topic] = topics.old[4 * change]
    topics.factor[topic] = topics.old[4 * change + 1]
    topics.last[topic] = topics.old[4 * change + 2]
    topics.refused[topic] = topics.old[4 * change + 3]
    if topics.moved_from[change] >= 0:
        for slot in range(topics.moved_from[change], topics.moved_from[change] + topics.moved_width[change]):
            topics.slots[slot] += MOVED


@kernel
def copy_counts(counts: Ints, target: Ints) -> None:
    """Replicas by broker, int64[brokers], into another array."""
    for broker in range(len(counts)):
        target[broker] = counts[broker]


@kernel
def count(topics: Topics, first: int, size: int, sign: int) -> None:
    """Add the replicas in slots[first : first + size] to the counts, or take them away; not those moved elsewhere."""
    for slot in range(first, first + size):
        broker = topics.slots[slot]
        if broker >= UNPLACED:
            topics.total[0] += sign
        if broker >= 0:
            topics.counts[broker] += sign


@kernel
def add_chunk(changes: Changes, topics: Topics, change: int, first: int, size: int, width: int) -> None:
    """Give the topic the partitions whose replicas are in the change's slots."""
    topic = changes.topic[change]
    topics.first[change], topics.size[change], topics.width[change] = first, size, width
    topics.before[change] = topics.last[topic]
    topics.last[topic] = change
    if not changes.exempt[change]:
        count(topics, changes.slot[change], size * width, 1)


@kernel
def remove_topic(changes: Changes, topics: Topics, change: int) -> None:
    """Delete the change's topic."""
    topic = changes.topic[change]
    chunk = topics.last[topic]
    while chunk != NO_CHUNK:
        if not changes.exempt[change]:
            count(topics, changes.slot[chunk], topics.size[chunk] * topics.width[chunk], -1)
        chunk = topics.before[chunk]
    topics.there[topic], topics.factor[topic], topics.last[topic] = 0, 0, NO_CHUNK


@kernel
def chunk_of(changes: Changes, topics: Topics, topic: int, partition: int) -> int:
    """The change in whose slots the partition's replicas are, NO_CHUNK where there is none."""
    chunk: int = topics.last[topic]
    while chunk != NO_CHUNK:
        nth = partition - topics.first[chunk]
        if 0 <= nth < topics.size[chunk]:
            at = changes.slot[chunk] + nth * topics.width[chunk]
            if topics.width[chunk] > 0 and topics.slots[at] >= UNPLACED:
                break
        chunk = topics.before[chunk]
    return chunk


@kernel
def move_partition(changes: Changes, topics: Topics, change: int, chunk: int) -> None:
    """Let the partition have the replicas in the change's slots in the place of those it had."""
    width = topics.width[chunk]
    at = changes.slot[chunk] + (changes.partition[change] - topics.first[chunk]) * width
    if not changes.exempt[change]:
        count(topics, at, width, -1)
    for slot in range(at, at + width):
        topics.slots[slot] -= MOVED
    topics.moved_from[change], topics.moved_width[change] = at, width
    add_chunk(changes, topics, change, changes.partition[change], 1, changes.factor[change])
