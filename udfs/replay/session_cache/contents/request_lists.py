"""The lists of an incremental request: the partitions that it names, and those that it forgets.

A client keeps its session equal to the partitions that it wants (org.apache.kafka.clients.FetchSessionHandler). So in
every lane, an incremental request lists the difference between this fetch and the client's last one.
"""

from __future__ import annotations

from udfs.columns.arrays import Record, Records
from udfs.kernels.kernel import kernel
from udfs.replay.session_cache.contents.entries import is_altered, set_request
from udfs.replay.session_cache.contents.state import FORGOTTEN, LISTED, Contents
from udfs.replay.session_cache.state import is_incremental
from udfs.replay.shared.int_map import ABSENT, place_of_key, put_key
from udfs.wire.fetch_sizes import FORGOTTEN_BYTES, length_beyond_least, name_bytes, tally_partitions


@kernel
def list_partition(contents: Contents, partition: Record, version: int) -> None:
    """Write a partition in an incremental request's list. partition: a row of ENTRY or LISTED_PARTITION."""
    sizes, flexible = contents.sizes, contents.sizes.is_flexible[version]
    named = sizes.request_topic[version] + name_bytes(partition.name_length, version, flexible)
    tally_partitions(contents.tallies[LISTED], partition.topic, named, 1, sizes.request_partition[version], flexible)


@kernel
def topic_number(contents: Contents, topic: int) -> int:
    """The number of a topic that has forgotten partitions."""
    number: int = contents.topics.values[place_of_key(contents.topics, topic)]
    if number == ABSENT:
        number = contents.topics.used[0]
        put_key(contents.topics, topic, number)
    return number


@kernel
def list_forgotten(contents: Contents, client: Record, old: int, fetch: Record) -> None:
    """Write the entries that the fetch does not want. A topic comes once in this list, wherever its partitions are.

    old: how many entries the client had before this fetch.
    """
    list_tally, sizes, flexible = contents.tallies[FORGOTTEN], contents.sizes, contents.sizes.is_flexible[fetch.version]
    for place in range(client.first, client.first + old):
        entry = contents.entries[place]
        if entry.wanted_by != fetch.number:
            number = topic_number(contents, entry.topic)
            if contents.forgotten[number] == 0:
                list_tally.topics += 1
                list_tally.bytes += sizes.forgotten_topic[fetch.version]
                list_tally.bytes += name_bytes(entry.name_length, fetch.version, flexible)
            contents.forgotten[number] += 1
            list_tally.partitions += 1
            list_tally.bytes += FORGOTTEN_BYTES
    for place in range(client.first, client.first + old):
        if contents.entries[place].wanted_by != fetch.number:
            number = topic_number(contents, contents.entries[place].topic)
            list_tally.bytes += length_beyond_least(contents.forgotten[number], flexible)
            contents.forgotten[number] = 0


@kernel
def list_altered(contents: Contents, entry: Record, row: Record, fetch: Record) -> None:
    """Write an entry if the client says something else about it than before, or the captured request shows it."""
    altered, is_listed = is_altered(entry, row), row.is_listed == 1
    fetch.mislisted += is_incremental(fetch) and altered and not is_listed
    if altered or (is_incremental(fetch) and is_listed):
        set_request(entry, row)
        list_partition(contents, entry, fetch.version)


@kernel
def list_changes(contents: Contents, client: Record, old: int, rows: Records, fetch: Record) -> bool:
    """Write the entries that are new, altered and forgotten, in this order. Returns whether any are forgotten.

    old: how many entries the client had before this fetch; new ones are behind them. rows: LISTED_PARTITION[n].
    """
    for place in range(client.first + old, client.first + client.count):
        list_partition(contents, contents.entries[place], fetch.version)
        fetch.mislisted += is_incremental(fetch) and rows[contents.entries[place].row].is_listed == 0
    forgets = False
    for place in range(client.first, client.first + old):
        entry = contents.entries[place]
        if entry.wanted_by == fetch.number:
            list_altered(contents, entry, rows[entry.row], fetch)
        else:
            forgets = True
    if forgets:
        list_forgotten(contents, client, old, fetch)
    return forgets
