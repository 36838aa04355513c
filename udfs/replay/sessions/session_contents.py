"""What is in a fetch, were it full and were it incremental: partitions listed and answered, and bytes on the wire.

A client keeps its session equal to what it wants (org.apache.kafka.clients.FetchSessionHandler), and so what an
incremental request lists is the difference between this fetch and the client's last, whatever the lane. What an
incremental response lists is the difference between two answers, whatever the lane as well
(maybeUpdateResponseData of org.apache.kafka.server.FetchSession.CachedPartition, Kafka 4.3). Both are found here, once
for all lanes.

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
    is_altered,
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
def answer_topic(
    memory: Memory, rows: Partitions, first: int, row: int, end: int, with_errors: bool, is_told: bool,
    is_incremental: bool, sizes: FetchSizes, version: int, measured: Record,
) -> tuple[int, int]:  # fmt: skip
    """Write the partitions of one topic that stand together, from `row` on, in the lists that they are in.

    with_errors: those whose answer has an error, else the others and, in a full request, all. is_told: the broker
    remembers what it tells. Returns the row behind them, and how many have errors.
    """
    flexible, topic = sizes.is_flexible[version], rows.topic[row]
    name = name_bytes(rows.name_length[row], version, flexible)
    wanted = errors = answered = returned = captured = misreturned = 0
    answered_bytes = returned_bytes = captured_bytes = 0
    while row < end and rows.topic[row] == topic:
        has_error, at = rows.error[row] != 0, row
        row += 1
        if rows.is_wanted[at] == 0:
            continue
        wanted += 1
        errors += has_error
        if has_error != with_errors:
            continue
        entry = memory.entries[memory.places[at - first]]
        records, returns = record_length_bytes(rows.records_bytes[at], flexible), must_return(entry, rows, at)
        is_captured = rows.is_returned[at] == 1
        answered += 1
        answered_bytes += records
        if returns:
            returned += 1
            returned_bytes += records
        if is_captured:
            captured += 1
            captured_bytes += records
        misreturned += returns != is_captured
        if is_told:
            entry.high_watermark = NOT_TOLD if has_error else rows.high_watermark[at]
            entry.log_start_offset = rows.log_start_offset[at]
    if is_incremental and is_told:
        measured.misreturned += misreturned
    tallies, named, each = memory.tallies, sizes.response_topic[version] + name, sizes.response_partition[version]
    tally(tallies[ANSWERED], topic, named, answered, answered * each + answered_bytes, flexible)
    tally(tallies[RETURNED], topic, named, returned, returned * each + returned_bytes, flexible)
    tally(tallies[CAPTURED], topic, named, captured, captured * each + captured_bytes, flexible)
    if not with_errors:
        asked = sizes.request_topic[version] + name
        tally(tallies[WANTED], topic, asked, wanted, wanted * sizes.request_partition[version], flexible)
    return row, errors


@kernel
def answer(
    memory: Memory, rows: Partitions, first: int, end: int, with_errors: bool, is_told: bool, is_incremental: bool,
    sizes: FetchSizes, version: int, measured: Record,
) -> int:  # fmt: skip
    """The lists of a full request and of responses, partitions in the order in which they are read; those whose answer
    has an error come behind the others in a response. Returns how many have.
    """
    errors, row = 0, first
    while row < end:
        row, more = answer_topic(
            memory, rows, first, row, end, with_errors, is_told, is_incremental, sizes, version, measured
        )
        errors += more
    return errors


@kernel
def begin_lists(memory: Memory) -> None:
    """Nothing is written in any list."""
    for which in range(TALLIES):
        held = memory.tallies[which]
        held.topic = held.topics = held.partitions = held.in_topic = held.bytes = 0


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
    begin_lists(memory)
    make_room(memory, client, end - first)
    old = client.count
    for index in range(client.first, client.first + old):
        memory.entries[index].row = NOWHERE
    measured.size, differs = take_wanted(memory, client, rows, first, end, is_incremental)
    measured.mislisted = measured.misreturned = 0
    forgets = False
    if differs or client.count > min(old, measured.size):
        forgets = list_changes(memory, client, old, rows, is_incremental, sizes, version, measured)
    if answer(memory, rows, first, end, False, is_told, is_incremental, sizes, version, measured):
        answer(memory, rows, first, end, True, is_told, is_incremental, sizes, version, measured)
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
def measure_refused(memory: Memory, rows: Partitions, fetch: Record, sizes: FetchSizes) -> None:
    """Say what is in a fetch of a session that the broker refused: what it lists, and an answer without partitions.

    What it forgets is not told.
    """
    begin_lists(memory)
    version = fetch.version
    for row in range(fetch.first, fetch.end):
        if rows.is_listed[row] == 1:
            list_partition(memory, rows.topic[row], rows.name_length[row], sizes, version)
    listed = memory.tallies[LISTED]
    fetch.listed = listed.partitions
    fetch.request_incremental = sizes.request[version] + tallied(listed, sizes.is_flexible[version])
    fetch.response_empty = fetch.response_captured = sizes.response[version]


@kernel
def measure_all(fetches: Records, first: int, rows: Partitions, memory: Memory, sizes: FetchSizes) -> int:
    """Measure fetches from `first` on; stops where memory runs out and returns how far it came.

    fetches: FETCH[n] of `udfs.replay.sessions.session_clients`, whose owners are known.
    """
    for f in range(first, len(fetches)):
        fetch = fetches[f]
        client = memory.clients[fetch.owner]
        rows_of_fetch = fetch.end - fetch.first
        most = memory.end[0] + 2 * (client.count + rows_of_fetch) + LEAST_ROOM
        if most > len(memory.entries) or 2 * (memory.topics.used[0] + client.count) > len(memory.topics.keys):
            return f
        if fetch.error != 0:
            measure_refused(memory, rows, fetch, sizes)
        else:
            is_told = fetch.response_us >= 0 and fetch.is_throttled == 0
            measure(memory, fetch.owner, rows, fetch.first, fetch.end, is_told, fetch.epoch > 0, sizes, fetch.version,
                    fetch)  # fmt: skip
    return len(fetches)
