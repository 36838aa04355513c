"""The lists of a request: what an incremental one names and forgets.

A client keeps its session equal to what it wants (org.apache.kafka.clients.FetchSessionHandler), and so what an
incremental request lists is the difference between this fetch and the client's last, whatever the lane.
"""

from __future__ import annotations

from udfs.columns.arrays import Record
from udfs.kernels.kernel import kernel
from udfs.replay.session_cache.session_entries import (
    FORGOTTEN,
    LISTED,
    NOWHERE,
    Memory,
    Partitions,
    is_altered,
    set_request,
)
from udfs.replay.session_cache.session_fetches import is_incremental
from udfs.replay.shared.int_map import ABSENT, place_of, put
from udfs.wire.fetch_sizes import FORGOTTEN_BYTES, FetchSizes, beyond_least, name_bytes, tally


@kernel
def list_partition(memory: Memory, topic: int, name_length: int, sizes: FetchSizes, version: int) -> None:
    """Write a partition in an incremental request's list."""
    flexible = sizes.is_flexible[version]
    named = sizes.request_topic[version] + name_bytes(name_length, version, flexible)
    tally(memory.tallies[LISTED], topic, named, 1, sizes.request_partition[version], flexible)


@kernel
def list_entry(memory: Memory, entry: Record, sizes: FetchSizes, version: int) -> None:
    """Write an entry in an incremental request's list."""
    list_partition(memory, entry.topic, entry.name_length, sizes, version)


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
def list_new(memory: Memory, client: Record, old: int, rows: Partitions, fetch: Record, sizes: FetchSizes) -> None:
    """Write entries that the client did not have before this fetch, which are those behind the `old` first ones."""
    for index in range(client.first + old, client.first + client.count):
        entry = memory.entries[index]
        list_entry(memory, entry, sizes, fetch.version)
        fetch.mislisted += is_incremental(fetch) and rows.is_listed[entry.row] == 0


@kernel
def list_altered(memory: Memory, entry: Record, rows: Partitions, fetch: Record, sizes: FetchSizes) -> None:
    """Write an entry if the client says something else of it than before, or the captured request shows that it did."""
    altered, is_listed = is_altered(entry, rows, entry.row), rows.is_listed[entry.row] == 1
    fetch.mislisted += is_incremental(fetch) and altered and not is_listed
    if altered or (is_incremental(fetch) and is_listed):
        set_request(entry, rows, entry.row)
        list_entry(memory, entry, sizes, fetch.version)


@kernel
def list_changes(memory: Memory, client: Record, old: int, rows: Partitions, fetch: Record, sizes: FetchSizes) -> bool:
    """The lists of an incremental request: new partitions, altered ones in the client's order, forgotten ones.

    old: entries before this fetch. Returns whether any is forgotten.
    """
    list_new(memory, client, old, rows, fetch, sizes)
    forgets = False
    for index in range(client.first, client.first + old):
        entry = memory.entries[index]
        if entry.row == NOWHERE:
            forgets = True
        else:
            list_altered(memory, entry, rows, fetch, sizes)
    if forgets:
        list_forgotten(memory, client, old, sizes, fetch.version)
    return forgets
