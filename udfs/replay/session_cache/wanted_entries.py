"""A client's next fetch among its entries: which it wants, in which order, and which it gives up."""

from __future__ import annotations

from udfs.columns.arrays import Record
from udfs.kernels.kernel import kernel
from udfs.replay.session_cache.session_entries import (
    NOT_TOLD,
    NOWHERE,
    Memory,
    Partitions,
    index_entries,
    is_altered,
    set_request,
    slot_for,
)


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
