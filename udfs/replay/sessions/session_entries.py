"""The partitions that each client fetches, as the client and the broker remember them.

One array holds the entries of all clients: each has a stretch of it in its own order, and a hash table beside it. A
client that needs more moves to the end; what it leaves is not used again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.replay.sessions.int_map import IntMap, new_map, roomy
from udfs.wire.arrays import Ints, Record, Records
from udfs.wire.fetch_sizes import TALLY
from udfs.wire.kernel import kernel
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
    the entry of each row of a fetch; held: ENTRY[1]; topics: a number for each topic that was ever forgotten;
    forgotten: int64[room], by such a number the partitions that the fetch at hand forgets.
    """

    clients: Records
    entries: Records
    slots: Ints
    end: Ints
    tallies: Records
    places: Ints
    held: Records
    topics: IntMap
    forgotten: Ints


def new_memory() -> Memory:
    """No client and no partition yet."""
    return Memory(
        np.zeros(16, CONTENTS), np.zeros(1024, ENTRY), np.full(2048, NOWHERE), np.zeros(1, np.int64),
        np.zeros(TALLIES, TALLY), np.zeros(1024, np.int64), np.zeros(1, ENTRY), new_map(), np.zeros(1024, np.int64),
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
    found: int = base + slot
    return found


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
    found: bool = (
        entry.fetch_offset != rows.fetch_offset[row]
        or entry.partition_max_bytes != rows.partition_max_bytes[row]
        or entry.current_leader_epoch != rows.current_leader_epoch[row]
    )
    return found


@kernel
def place_of_row(memory: Memory, client: Record, rows: Partitions, row: int, likely: int) -> int:
    """The entry of a row, which is new where there is none. likely: where it is when the order is as before."""
    topic, partition = rows.topic[row], rows.partition[row]
    if client.first <= likely < client.first + client.count:
        entry = memory.entries[likely]
        if entry.topic == topic and entry.partition == partition:
            return likely
    slot = slot_for(memory, client, topic, partition)
    if memory.slots[slot] == NOWHERE:
        memory.slots[slot] = client.first + client.count
        client.count += 1
        entry = memory.entries[memory.slots[slot]]
        entry.topic, entry.partition = topic, partition
        entry.name_length, entry.row = rows.name_length[row], NOWHERE
        entry.high_watermark = entry.log_start_offset = NOT_TOLD
        set_request(entry, rows, row)
    return int(memory.slots[slot])


@kernel
def take_wanted(
    memory: Memory, client: Record, rows: Partitions, first: int, end: int, is_incremental: bool
) -> tuple[int, bool]:  # fmt: skip
    """Note with each entry the row that wants it; new entries come behind the others.

    Returns how many are wanted, and whether the client says anything else of one than before or, in an incremental
    request, names one.
    """
    wanted, changes, likely = 0, False, client.first
    for row in range(first, end):
        if rows.is_wanted[row] == 0:
            memory.places[row - first] = NOWHERE
            continue
        place = place_of_row(memory, client, rows, row, likely)
        likely = place + 1
        memory.places[row - first] = place
        entry = memory.entries[place]
        wanted += entry.row == NOWHERE
        entry.row = row
        changes = changes or is_altered(entry, rows, row) or (is_incremental and rows.is_listed[row] == 1)
    return wanted, changes


@kernel
def take_order(memory: Memory, client: Record, rows: int, first: int) -> None:
    """A full fetch gives the client's partitions their order anew, and ends those that it does not want.

    rows: how many the fetch has, from `first` on.
    """
    wanted, in_order = 0, True
    for row in range(first, first + rows):
        place = memory.places[row - first]
        if place != NOWHERE and memory.entries[place].row == row:
            in_order = in_order and place == client.first + wanted
            memory.places[wanted] = place - client.first
            wanted += 1
    if in_order and wanted == client.count:
        return
    for target in range(wanted):
        source = memory.places[target]
        while source < target:  # it had to make place, and went to where that one came from
            source = memory.places[source]
        swap_entries(memory, client.first + target, client.first + source)
    client.count = wanted
    index_entries(memory, client)


@kernel
def swap_entries(memory: Memory, one: int, other: int) -> None:
    """Exchange two entries."""
    if one != other:
        memory.held[0] = memory.entries[one]
        memory.entries[one] = memory.entries[other]
        memory.entries[other] = memory.held[0]


@kernel
def drop_forgotten(memory: Memory, client: Record) -> None:
    """Close the gaps that forgotten partitions leave."""
    kept = 0
    for i in range(client.count):
        if memory.entries[client.first + i].row != NOWHERE:
            memory.entries[client.first + kept] = memory.entries[client.first + i]
            kept += 1
    client.count = kept
    index_entries(memory, client)
