"""The contents of a fetch as a full and as an incremental fetch: partitions in request and response, and bytes.

The partitions of an incremental request and of an incremental response do not depend on the lane (request_lists.py,
response_lists.py). So they are worked out here once for all lanes.
"""

from __future__ import annotations

from udfs.columns.arrays import Record, Records
from udfs.kernels.kernel import kernel
from udfs.replay.session_cache.contents.entries import (
    drop_forgotten,
    has_room_for_fetch,
    make_room_for_entries,
    take_order,
)
from udfs.replay.session_cache.contents.request_lists import list_changes, list_partition
from udfs.replay.session_cache.contents.response_lists import answer_errors, read_topic
from udfs.replay.session_cache.contents.state import (
    ANSWERED,
    FORGOTTEN,
    IN_CAPTURE,
    LISTED,
    RETURNED,
    TALLIES,
    WANTED,
    Contents,
)
from udfs.replay.session_cache.state import NO_TIME, is_incremental
from udfs.wire.fetch_sizes import tallied_bytes


@kernel
def begin_lists(contents: Contents) -> None:
    """Empty all lists."""
    for place in range(TALLIES):
        tally = contents.tallies[place]
        tally.topic = tally.topics = tally.partitions = tally.in_topic = tally.bytes = 0


@kernel
def read_partitions(contents: Contents, client: Record, rows: Records, fetch: Record) -> None:
    """Add a fetch's partitions to the client's entries, and write the lists that are in the broker's reading order.

    rows: LISTED_PARTITION[n]; those from fetch.first to fetch.end belong to this fetch.
    """
    reading = contents.reading[0]
    reading.likely, reading.changes, reading.errors = client.first, 0, 0
    reading.flexible = contents.sizes.is_flexible[fetch.version]
    fetch.size = fetch.mislisted = fetch.misreturned = fetch.strayed = 0
    row = fetch.first
    while row < fetch.end:
        row = read_topic(contents, client, rows, row, fetch)
    if reading.errors > 0:
        answer_errors(contents, rows, fetch)


@kernel
def write_lists(contents: Contents, client: Record, rows: Records, fetch: Record) -> None:
    """Take a client's next fetch, and write its lists; the caller has made room.

    rows: LISTED_PARTITION[rows], as of `read_partitions`.
    """
    make_room_for_entries(contents, client, fetch.end - fetch.first)
    old, forgets = client.count, False
    read_partitions(contents, client, rows, fetch)
    if contents.reading[0].changes or client.count > min(old, fetch.size):
        forgets = list_changes(contents, client, old, rows, fetch)
    if not is_incremental(fetch):
        take_order(contents, client, fetch)
    elif forgets:
        drop_forgotten(contents, client, fetch)


@kernel
def bytes_on_wire(captured: int, captured_body: int, body: int) -> int:
    """Bytes of a message that differs from the captured one only in its body; a captured size below 0 is unknown."""
    return body if captured < 0 else captured + body - captured_body


@kernel
def note_request(contents: Contents, fetch: Record) -> None:
    """Note with a fetch the bytes of its request as full and as incremental; a refused request is never full."""
    tallies, flexible = contents.tallies, contents.sizes.is_flexible[fetch.version]
    empty = contents.sizes.request[fetch.version]
    full = empty + tallied_bytes(tallies[WANTED], flexible) if fetch.error == 0 else 0
    incremental = empty + tallied_bytes(tallies[LISTED], flexible) + tallied_bytes(tallies[FORGOTTEN], flexible)
    captured = incremental if is_incremental(fetch) else full
    fetch.request_empty = bytes_on_wire(fetch.request_bytes, captured, empty)
    fetch.listed = tallies[LISTED].partitions
    fetch.request_full = bytes_on_wire(fetch.request_bytes, captured, full)
    fetch.request_incremental = bytes_on_wire(fetch.request_bytes, captured, incremental)


@kernel
def note_response(contents: Contents, fetch: Record) -> None:
    """Note with a fetch the bytes of its response as full, incremental and empty; none if it was not captured."""
    tallies, flexible = contents.tallies, contents.sizes.is_flexible[fetch.version]
    empty = contents.sizes.response[fetch.version]
    fetch.returned = tallies[RETURNED].partitions
    fetch.response_full = fetch.response_incremental = fetch.response_empty = 0
    if fetch.response_us == NO_TIME:
        return
    full = empty + tallied_bytes(tallies[ANSWERED], flexible) if fetch.error == 0 else 0
    captured = empty + tallied_bytes(tallies[IN_CAPTURE], flexible) if is_incremental(fetch) else full
    captured = empty if fetch.is_throttled == 1 else captured
    fetch.response_empty = bytes_on_wire(fetch.response_bytes, captured, empty)
    fetch.response_full = bytes_on_wire(fetch.response_bytes, captured, full)
    incremental = empty + tallied_bytes(tallies[RETURNED], flexible)
    fetch.response_incremental = bytes_on_wire(fetch.response_bytes, captured, incremental)


@kernel
def measure_refused(contents: Contents, rows: Records, fetch: Record) -> None:
    """Write the lists of a fetch in a session that the broker refused: its partitions, and an answer without
    partitions.

    Its forgotten partitions are not known. rows: LISTED_PARTITION[rows], as in `read_partitions`.
    """
    for row in range(fetch.first, fetch.end):
        if rows[row].is_listed == 1:
            list_partition(contents, rows[row], fetch.version)


@kernel
def measure_fetch(contents: Contents, client: Record, rows: Records, fetch: Record) -> None:
    """Note with a fetch its contents; there is room. client: the owner's STRETCH. rows: LISTED_PARTITION[n]."""
    begin_lists(contents)
    if fetch.error != 0:
        measure_refused(contents, rows, fetch)
    else:
        write_lists(contents, client, rows, fetch)
    note_request(contents, fetch)
    note_response(contents, fetch)


@kernel
def measure_all(fetches: Records, first: int, rows: Records, contents: Contents) -> int:
    """Note the contents of fetches from `first` on. Returns the first fetch that is not noted, where memory ran out.

    fetches: SESSION_FETCH[n], whose owners are known. rows: LISTED_PARTITION[m].
    """
    for place in range(first, len(fetches)):
        fetch = fetches[place]
        client = contents.clients[fetch.owner]
        if not has_room_for_fetch(contents, client, fetch.end - fetch.first):
            return place
        if fetch.is_cut == 0:
            measure_fetch(contents, client, rows, fetch)
    return len(fetches)
