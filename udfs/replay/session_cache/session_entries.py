"""The partitions that each client fetches, as the client and the broker remember them.

One array holds the entries of all clients: each has a stretch of it in its own order, and a hash table beside it. A
client that needs more moves to the end; what it leaves is not used again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints, Record, Records
from udfs.kernels.kernel import kernel
from udfs.replay.shared.int_map import IntMap, new_map, roomy
from udfs.wire.fetch_sizes import TALLY
from udfs.wire.partition_hash import partition_hash

NOWHERE = -1
NOT_TOLD = -1
LEAST_ROOM = 4

ENTRY = np.dtype(
    [
        (name, np.int64)
        for name in (
            "topic",
            "partition",
            "name_length",
            "fetch_offset",
            "partition_max_bytes",
            "current_leader_epoch",
            "high_watermark",  # as the broker remembers to have told, or NOT_TOLD
            "log_start_offset",
            "row",  # of the fetch at hand, or NOWHERE
        )
    ],
    align=True,
)
CONTENTS = np.dtype([(name, np.int64) for name in ("first", "count", "room")], align=True)
"""A client's partitions: entries[first : first + count] in the client's order, with room for more."""

OF_TOPIC = np.dtype(
    [
        (name, np.int64)
        for name in ("answered", "answered_bytes", "returned", "returned_bytes", "captured", "captured_bytes")
    ],
    align=True,
)
"""Partitions of the topic at hand in the lists of responses, and bytes of their records."""

LISTED, FORGOTTEN, WANTED, ANSWERED, RETURNED, CAPTURED, TALLIES = range(7)


class Partitions(NamedTuple):
    """The partitions of fetches in the order in which the broker reads them, int64[rows] a column."""

    topic: Ints  # hash of its id or name
    name_length: Ints  # bytes of its name
    partition: Ints
    is_wanted: Ints  # 1: the broker reads it for the fetch
    is_listed: Ints  # 1: the captured request names it
    is_returned: Ints  # 1: the captured response has it
    fetch_offset: Ints
    partition_max_bytes: Ints
    current_leader_epoch: Ints
    records_bytes: Ints
    high_watermark: Ints
    log_start_offset: Ints
    error: Ints
    preferred_read_replica: Ints


class Memory(NamedTuple):
    """The partitions of all clients.

    clients: CONTENTS[clients]. entries: ENTRY[room]. slots: int64[2 * room], by client the hash table of its entries,
    twice as long as its room. end: int64[1], entries in use. To work in: tallies: TALLY[TALLIES]; places: int64[room],
    the entry of each row of a fetch; held: ENTRY[1]; of_topic: OF_TOPIC[1]; topics: a number for each topic that was
    ever forgotten; forgotten: int64[room], by such a number the partitions that the fetch at hand forgets.
    """

    clients: Records
    entries: Records
    slots: Ints
    end: Ints
    tallies: Records
    places: Ints
    held: Records
    of_topic: Records
    topics: IntMap
    forgotten: Ints


def new_memory() -> Memory:
    """No client and no partition yet."""
    return Memory(
        np.zeros(16, CONTENTS), np.zeros(1024, ENTRY), np.full(2048, NOWHERE), np.zeros(1, np.int64),
        np.zeros(TALLIES, TALLY), np.zeros(1024, np.int64), np.zeros(1, ENTRY),
        np.zeros(1, OF_TOPIC), new_map(), np.zeros(1024, np.int64),
    )  # fmt: skip


def larger_memory(memory: Memory) -> Memory:
    """The same with room for twice as many partitions."""
    room = 2 * len(memory.entries)
    entries, slots = np.zeros(room, ENTRY), np.full(2 * room, NOWHERE)
    entries[: len(memory.entries)], slots[: len(memory.slots)] = memory.entries, memory.slots
    return memory._replace(
        entries=entries, slots=slots, places=np.zeros(room, np.int64), forgotten=np.zeros(room, np.int64),
        topics=roomy(memory.topics, len(memory.topics.keys)),
    )  # fmt: skip


@kernel
def slot_for(memory: Memory, client: Record, topic: int, partition: int) -> int:
    """The slot of a partition in its client's hash table, or the empty one where it would go."""
    base, mask = 2 * client.first, 2 * client.room - 1
    slot = partition_hash(topic, partition) & mask
    while memory.slots[base + slot] != NOWHERE:
        entry = memory.entries[memory.slots[base + slot]]
        if entry.topic == topic and entry.partition == partition:
            break
        slot = (slot + 1) & mask
    return base + slot


@kernel
def index_entries(memory: Memory, client: Record) -> None:
    """Make the client's hash table anew."""
    memory.slots[2 * client.first : 2 * (client.first + client.room)] = NOWHERE
    for index in range(client.first, client.first + client.count):
        entry = memory.entries[index]
        memory.slots[slot_for(memory, client, entry.topic, entry.partition)] = index


@kernel
def make_room(memory: Memory, client: Record, more: int) -> None:
    """Move the client's entries to where there is room for so many more."""
    if client.count + more <= client.room:
        return
    room = LEAST_ROOM
    while room < client.count + more:
        room *= 2
    first = memory.end[0]
    memory.end[0] += room
    for i in range(client.count):
        memory.entries[first + i] = memory.entries[client.first + i]
    client.first, client.room = first, room
    index_entries(memory, client)


@kernel
def set_request(entry: Record, rows: Partitions, row: int) -> None:
    """What the client says of the partition: FetchRequest.PartitionData."""
    entry.fetch_offset = rows.fetch_offset[row]
    entry.partition_max_bytes = rows.partition_max_bytes[row]
    entry.current_leader_epoch = rows.current_leader_epoch[row]


@kernel
def is_altered(entry: Record, rows: Partitions, row: int) -> bool:
    """The client says something else than before."""
    return (
        entry.fetch_offset != rows.fetch_offset[row]
        or entry.partition_max_bytes != rows.partition_max_bytes[row]
        or entry.current_leader_epoch != rows.current_leader_epoch[row]
    )
