"""A client's next fetch against its entries: which of them it wants, in which order, and which it forgets."""

from __future__ import annotations

from udfs.columns.arrays import Record
from udfs.columns.sentinels import NONE
from udfs.kernels.kernel import kernel
from udfs.replay.session_cache.contents.state import Contents
from udfs.wire.partition_hash import partition_hash

LEAST_ROOM = 4


@kernel
def has_room_for_fetch(contents: Contents, client: Record, rows: int) -> bool:
    """Whether there is memory for a fetch of `rows` rows by a client."""
    end = contents.end[0] + 2 * (client.count + rows) + LEAST_ROOM
    return end <= len(contents.entries) and 2 * (contents.topics.used[0] + client.count) <= len(contents.topics.keys)


@kernel
def slot_for(contents: Contents, client: Record, topic: int, partition: int) -> int:
    """The slot of a partition in its client's hash table, or the empty one where it would go."""
    base, mask = 2 * client.first, 2 * client.room - 1
    slot = partition_hash(topic, partition) & mask
    while contents.slots[base + slot] != NONE:
        entry = contents.entries[contents.slots[base + slot]]
        if entry.topic == topic and entry.partition == partition:
            break
        slot = (slot + 1) & mask
    return base + slot


@kernel
def index_entries(contents: Contents, client: Record) -> None:
    """Build the client's hash table anew, from its entries."""
    contents.slots[2 * client.first : 2 * (client.first + client.room)] = NONE
    for place in range(client.first, client.first + client.count):
        entry = contents.entries[place]
        contents.slots[slot_for(contents, client, entry.topic, entry.partition)] = place


@kernel
def make_room_for_entries(contents: Contents, client: Record, more: int) -> None:
    """Move the client's entries to where there is room for `more` further ones."""
    if client.count + more <= client.room:
        return
    room = LEAST_ROOM
    while room < client.count + more:
        room *= 2
    first = contents.end[0]
    contents.end[0] += room
    for place in range(client.count):
        contents.entries[first + place] = contents.entries[client.first + place]
    client.first, client.room = first, room
    index_entries(contents, client)


@kernel
def find_entry(contents: Contents, client: Record, row: Record) -> int:
    """The index of a partition's entry. If there is none, one is made behind the others."""
    likely = contents.reading[0].likely
    if client.first <= likely < client.first + client.count:
        entry = contents.entries[likely]
        if entry.topic == row.topic and entry.partition == row.partition:
            return likely
    slot = slot_for(contents, client, row.topic, row.partition)
    if contents.slots[slot] == NONE:
        contents.slots[slot] = client.first + client.count
        client.count += 1
        begin_entry(contents.entries[contents.slots[slot]], row)
    return int(contents.slots[slot])


@kernel
def begin_entry(entry: Record, row: Record) -> None:
    """Begin the entry of a partition that the client did not fetch before."""
    entry.topic, entry.partition, entry.name_length = row.topic, row.partition, row.name_length
    entry.high_watermark = entry.log_start_offset = entry.wanted_by = NONE
    set_request(entry, row)


@kernel
def set_request(entry: Record, row: Record) -> None:
    """Write to an entry what the client says of the partition (FetchRequest.PartitionData)."""
    entry.fetch_offset = row.fetch_offset
    entry.partition_max_bytes = row.partition_max_bytes
    entry.current_leader_epoch = row.current_leader_epoch
    entry.last_fetched_epoch = row.last_fetched_epoch
    entry.reader_log_start_offset = row.reader_log_start_offset


@kernel
def is_altered(entry: Record, row: Record) -> bool:
    """Whether the client says something else about the partition than before."""
    return (
        entry.fetch_offset != row.fetch_offset
        or entry.partition_max_bytes != row.partition_max_bytes
        or entry.current_leader_epoch != row.current_leader_epoch
        or entry.last_fetched_epoch != row.last_fetched_epoch
        or entry.reader_log_start_offset != row.reader_log_start_offset
    )


@kernel
def take_order(contents: Contents, client: Record, fetch: Record) -> None:
    """Put the client's entries into the order of a full fetch, and drop those that it does not want."""
    places, wanted, in_order = contents.places, 0, True
    for row in range(fetch.first, fetch.end):
        place = places[row - fetch.first]
        if place != NONE and contents.entries[place].row == row:
            in_order = in_order and place == client.first + wanted
            places[wanted] = place - client.first
            wanted += 1
    if in_order and wanted == client.count:
        return
    for target in range(wanted):
        source = places[target]
        while source < target:  # the entry was swapped away, to where the other one came from
            source = places[source]
        swap_entries(contents, client.first + target, client.first + source)
    client.count = wanted
    index_entries(contents, client)


@kernel
def swap_entries(contents: Contents, one: int, other: int) -> None:
    """Exchange two entries."""
    if one != other:
        contents.held[0] = contents.entries[one]
        contents.entries[one] = contents.entries[other]
        contents.entries[other] = contents.held[0]


@kernel
def drop_forgotten(contents: Contents, client: Record, fetch: Record) -> None:
    """Drop the entries that a fetch does not want, and close the gaps between the others."""
    kept = 0
    for place in range(client.first, client.first + client.count):
        if contents.entries[place].wanted_by == fetch.number:
            contents.entries[client.first + kept] = contents.entries[place]
            kept += 1
    client.count = kept
    index_entries(contents, client)
