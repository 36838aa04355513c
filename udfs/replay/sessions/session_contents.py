"""What is in a fetch, were it full and were it incremental: partitions listed and answered, and bytes on the wire.

A client keeps its session equal to what it wants (org.apache.kafka.clients.FetchSessionHandler), and so what an
incremental request lists is the difference between this fetch and the client's last, whatever the lane. What an
incremental response lists is the difference between two answers (FetchSession.CachedPartition, kafka-semantics 3.6),
whatever the lane as well. Both are found here, once for all lanes.

An answer with an error has no high watermark: a broker remembers the same of it after a full response, which has -1,
and after an incremental one, for which it sets -1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.replay.sessions.int_map import ABSENT, IntMap, new_map, place_of, put, roomy
from udfs.wire.arrays import Ints, Record, Records
from udfs.wire.fetch_sizes import (
    FORGOTTEN_BYTES,
    TALLY,
    FetchSizes,
    beyond_least,
    name_bytes,
    record_length_bytes,
    tallied,
    tally,
)
from udfs.wire.kernel import kernel

NOWHERE = -1
NOT_TOLD = -1
# Odd 64-bit constants of splitmix64 and xorshift64*, as int64: they spread a key over the hash table.
MIX_PARTITION, MIX_BOTH = -7046029254386353131, 2685821657736338717
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

MEASURED = np.dtype(
    [
        (name, np.int64)
        for name in (
            "size",  # partitions wanted
            "listed",  # partitions that an incremental request names
            "mislisted",  # ... and the captured incremental request does not
            "returned",  # partitions that an incremental response has
            "misreturned",  # partitions on which that and the captured incremental response differ
            "request_full",  # bytes of the bodies
            "request_incremental",
            "response_full",
            "response_incremental",
            "response_captured",
            "response_empty",
        )
    ],
    align=True,
)
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


@kernel
def slot_for(memory: Memory, client: Record, topic: int, partition: int) -> int:
    """The slot of a partition in its client's hash table, or the empty one where it would go."""
    base, mask = 2 * client.first, 2 * client.room - 1
    slot = (((topic ^ (partition * MIX_PARTITION)) * MIX_BOTH) >> 20) & mask
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
def must_return(entry: Record, rows: Partitions, row: int) -> bool:
    """CachedPartition.maybeUpdateResponseData: does an incremental response have the partition?"""
    found: bool = (
        rows.records_bytes[row] > 0
        or entry.high_watermark != rows.high_watermark[row]
        or entry.log_start_offset != rows.log_start_offset[row]
        or rows.preferred_read_replica[row] >= 0
        or rows.error[row] != 0
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
def take_wanted(memory: Memory, client: Record, rows: Partitions, first: int, end: int) -> int:
    """Note with each entry the row that wants it; new entries come behind the others. Returns how many are wanted."""
    wanted = 0
    for row in range(first, end):
        if rows.is_wanted[row] == 0:
            memory.places[row - first] = NOWHERE
            continue
        likely = NOWHERE if row == first else memory.places[row - first - 1] + 1
        place = place_of_row(memory, client, rows, row, likely)
        memory.places[row - first] = place
        entry = memory.entries[place]
        wanted += entry.row == NOWHERE
        entry.row = row
    return wanted


@kernel
def list_entry(memory: Memory, entry: Record, sizes: FetchSizes, version: int) -> None:
    """Write an entry in an incremental request's list."""
    flexible = sizes.is_flexible[version]
    topic = sizes.request_topic[version] + name_bytes(entry.name_length, version, flexible)
    tally(memory.tallies[LISTED], entry.topic, topic, sizes.request_partition[version], flexible)


@kernel
def topic_number(memory: Memory, topic: int) -> int:
    """The number of a topic of which partitions are forgotten."""
    number: int = memory.topics.values[place_of(memory.topics, topic)]
    if number == ABSENT:
        number = memory.topics.used[0]
        put(memory.topics, topic, number)
    return number


@kernel
def list_forgotten(memory: Memory, client: Record, old: int, sizes: FetchSizes, version: int) -> None:
    """Write entries that no row wants: a topic has one place in this list, be its partitions neighbours or not."""
    held, flexible = memory.tallies[FORGOTTEN], sizes.is_flexible[version]
    for index in range(client.first, client.first + old):
        entry = memory.entries[index]
        if entry.row == NOWHERE:
            number = topic_number(memory, entry.topic)
            if memory.forgotten[number] == 0:
                held.topics += 1
                held.bytes += sizes.forgotten_topic[version] + name_bytes(entry.name_length, version, flexible)
            memory.forgotten[number] += 1
            held.partitions += 1
            held.bytes += FORGOTTEN_BYTES
    for index in range(client.first, client.first + old):
        if memory.entries[index].row == NOWHERE:
            number = topic_number(memory, memory.entries[index].topic)
            held.bytes += beyond_least(memory.forgotten[number], flexible)
            memory.forgotten[number] = 0


@kernel
def list_changes(
    memory: Memory, client: Record, old: int, rows: Partitions, is_incremental: bool, sizes: FetchSizes, version: int,
    measured: Record,
) -> bool:  # fmt: skip
    """The lists of an incremental request: new partitions, altered ones in the client's order, forgotten ones.

    old: entries before this fetch. is_incremental: the captured request is, and shows by itself what was altered.
    Returns whether any is forgotten.
    """
    for index in range(client.first + old, client.first + client.count):
        list_entry(memory, memory.entries[index], sizes, version)
        measured.mislisted += is_incremental and rows.is_listed[memory.entries[index].row] == 0
    forgets = False
    for index in range(client.first, client.first + old):
        entry = memory.entries[index]
        if entry.row == NOWHERE:
            forgets = True
            continue
        altered, is_listed = is_altered(entry, rows, entry.row), rows.is_listed[entry.row] == 1
        measured.mislisted += is_incremental and altered and not is_listed
        if altered or (is_incremental and is_listed):
            set_request(entry, rows, entry.row)
            list_entry(memory, entry, sizes, version)
    if forgets:
        list_forgotten(memory, client, old, sizes, version)
    return forgets


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


@kernel
def answer_row(
    memory: Memory, place: int, rows: Partitions, row: int, is_told: bool, is_incremental: bool, sizes: FetchSizes,
    version: int, measured: Record,
) -> None:  # fmt: skip
    """Write one wanted partition in the lists that it is in. is_told: the broker remembers what it tells."""
    flexible = sizes.is_flexible[version]
    name = name_bytes(rows.name_length[row], version, flexible)
    topic, answered_topic = rows.topic[row], sizes.response_topic[version] + name
    each = sizes.response_partition[version] + record_length_bytes(rows.records_bytes[row], flexible)
    tally(memory.tallies[ANSWERED], topic, answered_topic, each, flexible)
    entry = memory.entries[place]
    returns = must_return(entry, rows, row)
    if returns:
        tally(memory.tallies[RETURNED], topic, answered_topic, each, flexible)
    if rows.is_returned[row] == 1:
        tally(memory.tallies[CAPTURED], topic, answered_topic, each, flexible)
    measured.misreturned += is_incremental and is_told and returns != (rows.is_returned[row] == 1)
    if is_told:
        entry.high_watermark = NOT_TOLD if rows.error[row] != 0 else rows.high_watermark[row]
        entry.log_start_offset = rows.log_start_offset[row]


@kernel
def answer(
    memory: Memory, rows: Partitions, first: int, end: int, is_told: bool, is_incremental: bool,
    sizes: FetchSizes, version: int, measured: Record,
) -> None:  # fmt: skip
    """The lists of responses: partitions in the order in which they are read, then those with errors."""
    errors = 0
    for row in range(first, end):
        if rows.is_wanted[row] == 1 and rows.error[row] != 0:
            errors += 1
        elif rows.is_wanted[row] == 1:
            place = memory.places[row - first]
            answer_row(memory, place, rows, row, is_told, is_incremental, sizes, version, measured)
    if errors:
        for row in range(first, end):
            if rows.is_wanted[row] == 1 and rows.error[row] != 0:
                place = memory.places[row - first]
                answer_row(memory, place, rows, row, is_told, is_incremental, sizes, version, measured)


@kernel
def measure(
    memory: Memory, owner: int, rows: Partitions, first: int, end: int, is_told: bool, is_incremental: bool,
    sizes: FetchSizes, version: int, measured: Record,
) -> None:  # fmt: skip
    """Take a client's next fetch, whose partitions are rows[first:end], and say what is in it.

    is_told: the response is known and no quota emptied it. is_incremental: the captured request is.
    The memory has room.
    """
    client, flexible = memory.clients[owner], sizes.is_flexible[version]
    for which in range(TALLIES):
        held = memory.tallies[which]
        held.topic = held.topics = held.partitions = held.in_topic = held.bytes = 0
    make_room(memory, client, end - first)
    old = client.count
    for index in range(client.first, client.first + old):
        memory.entries[index].row = NOWHERE
    measured.size = take_wanted(memory, client, rows, first, end)
    measured.mislisted = measured.misreturned = 0
    forgets = list_changes(memory, client, old, rows, is_incremental, sizes, version, measured)
    for row in range(first, end):
        if rows.is_wanted[row] == 1:
            list_row(memory, rows, row, sizes, version)
    answer(memory, rows, first, end, is_told, is_incremental, sizes, version, measured)
    if not is_incremental:
        take_order(memory, client, end - first, first)
    elif forgets:
        drop_forgotten(memory, client)
    tallies = memory.tallies
    measured.listed, measured.returned = tallies[LISTED].partitions, tallies[RETURNED].partitions
    measured.request_full = sizes.request[version] + tallied(tallies[WANTED], flexible)
    changes = tallied(tallies[LISTED], flexible) + tallied(tallies[FORGOTTEN], flexible)
    measured.request_incremental = sizes.request[version] + changes
    measured.response_empty = sizes.response[version]
    measured.response_full = sizes.response[version] + tallied(tallies[ANSWERED], flexible)
    measured.response_incremental = sizes.response[version] + tallied(tallies[RETURNED], flexible)
    measured.response_captured = sizes.response[version] + tallied(tallies[CAPTURED], flexible)


@kernel
def list_row(memory: Memory, rows: Partitions, row: int, sizes: FetchSizes, version: int) -> None:
    """Write one wanted partition in the list of a full request."""
    flexible = sizes.is_flexible[version]
    topic = sizes.request_topic[version] + name_bytes(rows.name_length[row], version, flexible)
    tally(memory.tallies[WANTED], rows.topic[row], topic, sizes.request_partition[version], flexible)


@kernel
def measure_all(fetches: Records, first: int, rows: Partitions, memory: Memory, sizes: FetchSizes) -> int:
    """Measure fetches from `first` on that no error refused; stops where memory runs out and returns how far it came.

    fetches: FETCH[n] of `udfs.replay.sessions.session_clients`, whose owners are known.
    """
    for f in range(first, len(fetches)):
        fetch = fetches[f]
        client = memory.clients[fetch.owner]
        rows_of_fetch = fetch.end - fetch.first
        most = memory.end[0] + 2 * (client.count + rows_of_fetch) + LEAST_ROOM
        if most > len(memory.entries) or 2 * (memory.topics.used[0] + client.count) > len(memory.topics.keys):
            return f
        if fetch.error == 0:
            is_told = fetch.response_us >= 0 and fetch.is_throttled == 0
            measure(memory, fetch.owner, rows, fetch.first, fetch.end, is_told, fetch.epoch > 0, sizes, fetch.version,
                    fetch)  # fmt: skip
    return len(fetches)


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
