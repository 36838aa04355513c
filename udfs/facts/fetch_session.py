"""A fetch session as on the broker: partitions, with a hash table to find them, in the order in which they are read."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints, Records
from udfs.kernels.kernel import allocating_kernel, kernel
from udfs.wire.partition_hash import partition_hash

NOWHERE = -1
NO_HIGH_WATERMARK = -1

SESSION_ENTRY = np.dtype(
    [
        (name, np.int64)
        for name in (
            "topic",  # hash of its name or id
            "partition",
            "fetch_offset",
            "partition_max_bytes",
            "current_leader_epoch",
            "last_fetched_epoch",
            "reader_log_start_offset",
            "high_watermark",  # this and the next two: from the session's last response that has them
            "last_stable_offset",
            "log_start_offset",
            "requested",  # row in the current request, or NOWHERE
            "returned",  # row in the current response, or NOWHERE
            "has_served",  # 1: records of it were returned since the session was joined
            "moves_on",  # 1: the request has a higher offset, and the high watermark was not above the last one
            "is_live",  # the session has the partition
        )
    ],
    align=True,
)


class Session(NamedTuple):
    """A connection's fetch session.

    entries: SESSION_ENTRY[n], in the order in which they were added. order: int64[n], indices of entries in the order
    in which the broker reads them. moved: working memory. slots, stamps: hash table from partition to entry; a slot is
    in use only if its stamp is the current generation. state: int64[8], indexed by the constants below.
    """

    entries: Records
    order: Ints
    moved: Ints
    slots: Ints
    stamps: Ints
    state: Ints


SESSION_ID, IS_KNOWN, IS_READABLE, IS_BEHIND_GAP, ENTRIES, ORDERED, GENERATION, NEXT_EPOCH = range(8)


@allocating_kernel
def new_session(capacity: int) -> Session:
    """A session that is not open, with room for this many partitions."""
    slots = 8
    while slots < 2 * capacity:
        slots *= 2
    state = np.zeros(8, np.int64)
    state[GENERATION] = 1  # no slot has this stamp
    return Session(
        np.zeros(capacity, SESSION_ENTRY), np.empty(capacity, np.int64), np.empty(capacity, np.int64),
        np.empty(slots, np.int64), np.zeros(slots, np.int64), state,
    )  # fmt: skip


@kernel
def forget_all(session: Session) -> None:
    """Remove all partitions from the session."""
    session.state[ENTRIES] = session.state[ORDERED] = 0
    session.state[GENERATION] += 1


@kernel
def find_slot(session: Session, topic: int, partition: int) -> int:
    """The slot of a partition; if it is new, the empty slot for it."""
    mask = len(session.slots) - 1
    slot = partition_hash(topic, partition) & mask
    while session.stamps[slot] == session.state[GENERATION]:
        entry = session.entries[session.slots[slot]]
        if entry.topic == topic and entry.partition == partition:
            break
        slot = (slot + 1) & mask
    return slot


@kernel
def entry_number(session: Session, topic: int, partition: int) -> int:
    """The index of a partition's entry; the partition must have one."""
    return int(session.slots[find_slot(session, topic, partition)])


@kernel
def find_or_add_entry(session: Session, topic: int, partition: int) -> tuple[int, bool]:
    """(index of a partition's entry, whether it was added). A new or forgotten partition is added at the tail."""
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
        entry.requested = entry.returned = NOWHERE
        entry.has_served = entry.moves_on = 0
        entry.fetch_offset = entry.partition_max_bytes = entry.current_leader_epoch = -1
        entry.last_fetched_epoch = entry.reader_log_start_offset = -1
        entry.high_watermark = entry.last_stable_offset = entry.log_start_offset = NO_HIGH_WATERMARK
        session.order[state[ORDERED]] = index
        state[ORDERED] += 1
    return index, is_new


@kernel
def keep_ordered(session: Session) -> None:
    """Remove partitions that the session no longer has from the order."""
    n = 0
    for i in range(session.state[ORDERED]):
        index = session.order[i]
        if session.entries[index].is_live == 1:
            session.order[n] = index
            n += 1
    session.state[ORDERED] = n


@kernel
def clear_marks(session: Session) -> None:
    """Clear the entries' fields about the last request and response."""
    for i in range(session.state[ORDERED]):
        entry = session.entries[session.order[i]]
        entry.requested = entry.returned = NOWHERE
        entry.moves_on = 0


@allocating_kernel
def resize_session(session: Session, capacity: int) -> Session:
    """The same session with room for `capacity` more partitions."""
    larger = new_session(session.state[ORDERED] + capacity)
    for position in range(session.state[ORDERED]):
        old = session.entries[session.order[position]]
        index, _ = find_or_add_entry(larger, old.topic, old.partition)
        larger.entries[index] = old
    for slot in (SESSION_ID, IS_KNOWN, IS_READABLE, IS_BEHIND_GAP, NEXT_EPOCH):
        larger.state[slot] = session.state[slot]
    return larger
