"""A fetch session as the broker holds it: partitions, found by a hash table, in the order in which it reads them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints, Records
from udfs.kernels.kernel import allocating_kernel, kernel
from udfs.wire.partition_hash import partition_hash

NOWHERE = -1
NO_HIGH_WATERMARK = -1

ENTRY = np.dtype(
    [
        (name, np.int64)
        for name in (
            "topic",  # hash of its name or id
            "partition",
            "fetch_offset",
            "partition_max_bytes",
            "current_leader_epoch",
            "high_watermark",  # as last told in the session
            "last_stable_offset",
            "log_start_offset",
            "wanted",  # row in the request at hand, or NOWHERE
            "returned",  # row in the response at hand, or NOWHERE
            "is_live",
        )
    ],
    align=True,
)


class Session(NamedTuple):
    """A connection's fetch session: entries as they were first seen, and the order in which the broker reads them.

    slots, stamps: hash table from partition to entry; a slot counts only with the present generation as its stamp.
    """

    entries: Records  # ENTRY
    order: Ints
    moved: Ints  # room to work in
    slots: Ints
    stamps: Ints
    state: Ints


SESSION_ID, IS_KNOWN, ENTRIES, ORDERED, GENERATION, NEXT_EPOCH = range(6)


@allocating_kernel
def new_session(capacity: int) -> Session:
    """A closed session with room for so many partitions."""
    slots = 8
    while slots < 2 * capacity:
        slots *= 2
    state = np.zeros(6, np.int64)
    state[GENERATION] = 1  # which no slot has as its stamp
    return Session(
        np.zeros(capacity, ENTRY), np.empty(capacity, np.int64), np.empty(capacity, np.int64),
        np.empty(slots, np.int64), np.zeros(slots, np.int64), state,
    )  # fmt: skip


@kernel
def forget_all(session: Session) -> None:
    """Empty the session."""
    session.state[ENTRIES] = session.state[ORDERED] = 0
    session.state[GENERATION] += 1


@kernel
def find_slot(session: Session, topic: int, partition: int) -> int:
    """The slot of a partition, or the empty one where it would go."""
    mask = len(session.slots) - 1
    slot = partition_hash(topic, partition) & mask
    while session.stamps[slot] == session.state[GENERATION]:
        entry = session.entries[session.slots[slot]]
        if entry.topic == topic and entry.partition == partition:
            break
        slot = (slot + 1) & mask
    return slot


@kernel
def entry_of(session: Session, topic: int, partition: int) -> tuple[int, bool]:
    """Index of a partition's entry, which is added at the tail when it is new or was forgotten; and whether it was."""
    slot = find_slot(session, topic, partition)
    state = session.state
    if session.stamps[slot] != state[GENERATION]:
        index = state[ENTRIES]
        state[ENTRIES] += 1
        session.stamps[slot], session.slots[slot] = state[GENERATION], index
        session.entries[index].topic, session.entries[index].partition = topic, partition
        session.entries[index].is_live = 0
    index = session.slots[slot]
    entry = session.entries[index]
    is_new = entry.is_live == 0
    if is_new:
        entry.is_live = 1
        entry.wanted = entry.returned = NOWHERE
        entry.fetch_offset = entry.partition_max_bytes = entry.current_leader_epoch = -1
        entry.high_watermark = entry.last_stable_offset = entry.log_start_offset = NO_HIGH_WATERMARK
        session.order[state[ORDERED]] = index
        state[ORDERED] += 1
    return index, is_new


@kernel
def keep_ordered(session: Session) -> None:
    """Close the gaps that forgotten partitions leave in the order."""
    n = 0
    for i in range(session.state[ORDERED]):
        index = session.order[i]
        if session.entries[index].is_live == 1:
            session.order[n] = index
            n += 1
    session.state[ORDERED] = n


@kernel
def clear_marks(session: Session) -> None:
    """Make the entries ready for the next fetch."""
    for i in range(session.state[ORDERED]):
        entry = session.entries[session.order[i]]
        entry.wanted = entry.returned = NOWHERE


@allocating_kernel
def resized(session: Session, capacity: int) -> Session:
    """The same session with room for `capacity` more partitions."""
    larger = new_session(session.state[ORDERED] + capacity)
    for position in range(session.state[ORDERED]):
        old = session.entries[session.order[position]]
        index, _ = entry_of(larger, old.topic, old.partition)
        larger.entries[index] = old
    for of in (SESSION_ID, IS_KNOWN, NEXT_EPOCH):
        larger.state[of] = session.state[of]
    return larger
