"""What is in a fetch, were it full and were it incremental: partitions listed and answered, and bytes on the wire.

A client keeps its session equal to what it wants (org.apache.kafka.clients.FetchSessionHandler), and so what an
incremental request lists is the difference between this fetch and the client's last, whatever the lane. What an
incremental response lists is the difference between two answers (FetchSession.CachedPartition, kafka-semantics 3.6),
whatever the lane as well. Both are found here, once for all lanes.

An answer with an error has no high watermark: a broker remembers the same of it after a full response, which has -1,
and after an incremental one, for which it sets -1.
"""

from __future__ import annotations

import numpy as np

from udfs.replay.sessions.int_map import ABSENT, place_of, put
from udfs.replay.sessions.session_entries import (
    ANSWERED,
    CAPTURED,
    FORGOTTEN,
    LEAST_ROOM,
    LISTED,
    NOT_TOLD,
    NOWHERE,
    RETURNED,
    TALLIES,
    WANTED,
    Memory,
    Partitions,
    drop_forgotten,
    make_room,
    set_request,
    take_order,
    take_wanted,
)
from udfs.wire.arrays import Record, Records
from udfs.wire.fetch_sizes import (
    FORGOTTEN_BYTES,
    FetchSizes,
    beyond_least,
    name_bytes,
    record_length_bytes,
    tallied,
    tally,
)
from udfs.wire.kernel import kernel

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
