"""What is in a fetch, were it full and were it incremental: partitions listed and answered, and bytes on the wire.

What an incremental request and an incremental response list does not depend on the lane (request_lists,
response_lists): it is found here, once for all lanes.
"""

from __future__ import annotations

from udfs.columns.arrays import Record, Records
from udfs.kernels.kernel import kernel
from udfs.replay.session_cache.request_lists import list_changes, list_partition
from udfs.replay.session_cache.response_lists import answer
from udfs.replay.session_cache.session_entries import (
    ANSWERED,
    CAPTURED,
    FORGOTTEN,
    LEAST_ROOM,
    LISTED,
    NOWHERE,
    RETURNED,
    TALLIES,
    WANTED,
    Memory,
    Partitions,
    make_room,
)
from udfs.replay.session_cache.session_fetches import is_incremental
from udfs.replay.session_cache.wanted_entries import drop_forgotten, take_order, take_wanted
from udfs.wire.fetch_sizes import FetchSizes, tallied


@kernel
def begin_lists(memory: Memory) -> None:
    """Nothing is written in any list."""
    for which in range(TALLIES):
        held = memory.tallies[which]
        held.topic = held.topics = held.partitions = held.in_topic = held.bytes = 0


@kernel
def follow(memory: Memory, rows: Partitions, fetch: Record, sizes: FetchSizes) -> None:
    """Take a client's next fetch, and write its lists. The memory has room."""
    client = memory.clients[fetch.owner]
    make_room(memory, client, fetch.end - fetch.first)
    old = client.count
    for index in range(client.first, client.first + old):
        memory.entries[index].row = NOWHERE
    fetch.size, differs = take_wanted(memory, client, rows, fetch.first, fetch.end, is_incremental(fetch))
    fetch.mislisted = fetch.misreturned = 0
    forgets = False
    if differs or client.count > min(old, fetch.size):
        forgets = list_changes(memory, client, old, rows, fetch, sizes)
    if answer(memory, rows, fetch, sizes, False):
        answer(memory, rows, fetch, sizes, True)
    if not is_incremental(fetch):
        take_order(memory, client, fetch.end - fetch.first, fetch.first)
    elif forgets:
        drop_forgotten(memory, client)


@kernel
def note_contents(tallies: Records, fetch: Record, sizes: FetchSizes) -> None:
    """Note with a fetch how many partitions its lists have, and how many bytes they make."""
    flexible = sizes.is_flexible[fetch.version]
    request, response = sizes.request[fetch.version], sizes.response[fetch.version]
    fetch.listed, fetch.returned = tallies[LISTED].partitions, tallies[RETURNED].partitions
    fetch.request_full = request + tallied(tallies[WANTED], flexible)
    changes = tallied(tallies[LISTED], flexible) + tallied(tallies[FORGOTTEN], flexible)
    fetch.request_incremental = request + changes
    fetch.response_empty = response
    fetch.response_full = response + tallied(tallies[ANSWERED], flexible)
    fetch.response_incremental = response + tallied(tallies[RETURNED], flexible)
    fetch.response_captured = response + tallied(tallies[CAPTURED], flexible)


@kernel
def measure_refused(memory: Memory, rows: Partitions, fetch: Record, sizes: FetchSizes) -> None:
    """Say what is in a fetch of a session that the broker refused: what it lists, and an answer without partitions.

    What it forgets is not told.
    """
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

    fetches: FETCH[n], whose owners are known.
    """
    for f in range(first, len(fetches)):
        fetch = fetches[f]
        client = memory.clients[fetch.owner]
        rows_of_fetch = fetch.end - fetch.first
        most = memory.end[0] + 2 * (client.count + rows_of_fetch) + LEAST_ROOM
        if most > len(memory.entries) or 2 * (memory.topics.used[0] + client.count) > len(memory.topics.keys):
            return f
        begin_lists(memory)
        if fetch.error != 0:
            measure_refused(memory, rows, fetch, sizes)
        else:
            follow(memory, rows, fetch, sizes)
            note_contents(memory.tallies, fetch, sizes)
    return len(fetches)
