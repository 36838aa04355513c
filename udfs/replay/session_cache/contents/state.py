"""The partitions that each client fetches, as the client and the broker remember them.

One array holds the entries of all clients. Each client has a stretch of it, in the client's own order, and a hash
table. A client that needs more room moves to the end, and its old stretch is not used again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints, Records
from udfs.columns.sentinels import NONE
from udfs.replay.shared.int_map import IntMap, new_map, with_room_for
from udfs.wire.fetch_sizes import TALLY, FetchSizes, fetch_sizes

CONTENT_ENTRY = np.dtype(
    [
        ("topic", np.int64),
        ("fetch_offset", np.int64),
        ("high_watermark", np.int64),  # the last one that the broker sent, as it remembers, or NONE
        ("log_start_offset", np.int64),
        ("reader_log_start_offset", np.int64),
        ("wanted_by", np.int64),  # the number of the last fetch that wants it
        ("partition", np.int32),
        ("partition_max_bytes", np.int32),
        ("current_leader_epoch", np.int32),
        ("last_fetched_epoch", np.int32),
        ("name_length", np.int32),
        ("row", np.int32),  # of the last fetch that wants it
    ],
    align=True,
)
STRETCH = np.dtype([("first", np.int64), ("count", np.int64), ("room", np.int64)])
"""A client's partitions: entries[first : first + count] in the client's order, with room for more."""

READING = np.dtype(
    [
        ("likely", np.int64),  # the index of the next partition's entry if the order has not changed
        ("changes", np.int64),  # 1: the client altered a partition, or the captured request names one
        ("errors", np.int64),  # partitions whose answer has an error
        ("flexible", np.int64),  # 1: of a version whose lengths are varints
        # The partitions of the current topic in each list, and the bytes of their records.
        ("wanted", np.int64),
        ("answered", np.int64),
        ("answered_bytes", np.int64),
        ("returned", np.int64),
        ("returned_bytes", np.int64),
        ("in_capture", np.int64),
        ("in_capture_bytes", np.int64),
    ]
)
"""The state of the reading of a fetch."""

LISTED, FORGOTTEN, WANTED, ANSWERED, RETURNED, IN_CAPTURE, TALLIES = range(7)
"""The lists of a fetch: two of an incremental request, and one each of a full request, a full response, an incremental
response, and the captured response."""


class Contents(NamedTuple):
    """The partitions of all clients, and the working memory to read a fetch."""

    clients: Records  # STRETCH[clients]
    entries: Records  # CONTENT_ENTRY[room]
    slots: Ints  # int64[2 * room]: each client's hash table of its entries, twice as long as its room
    end: Ints  # int64[1]: entries in use
    reading: Records  # READING[1]
    tallies: Records  # TALLY[TALLIES]
    places: Ints  # int64[room]: the entry of each row of a fetch, or NONE
    held: Records  # CONTENT_ENTRY[1]: holds an entry while two are swapped
    sizes: FetchSizes
    topics: IntMap  # a number for each topic that was ever forgotten
    forgotten: Ints  # int64: by that number, how many partitions of the topic the current fetch forgets


def new_contents() -> Contents:
    """Contents without a client or a partition."""
    room = 256
    return Contents(
        clients=np.zeros(0, STRETCH),
        entries=np.zeros(room, CONTENT_ENTRY),
        slots=np.full(2 * room, NONE),
        end=np.zeros(1, np.int64),
        reading=np.zeros(1, READING),
        tallies=np.zeros(TALLIES, TALLY),
        places=np.zeros(room, np.int64),
        held=np.zeros(1, CONTENT_ENTRY),
        sizes=fetch_sizes(),
        topics=new_map(),
        forgotten=np.zeros(64, np.int64),
    )


def with_stretches(contents: Contents, clients: int) -> Contents:
    """The contents, with room for `clients` clients."""
    stretches = np.zeros(max(clients, len(contents.clients)), STRETCH)
    stretches[: len(contents.clients)] = contents.clients
    return contents._replace(clients=stretches)


def with_entries(contents: Contents) -> Contents:
    """The contents, with room for twice as many partitions."""
    room = 2 * len(contents.entries)
    entries, slots = np.zeros(room, CONTENT_ENTRY), np.full(2 * room, NONE)
    entries[: len(contents.entries)], slots[: len(contents.slots)] = contents.entries, contents.slots
    topics = with_room_for(contents.topics, len(contents.topics.keys))
    return contents._replace(
        entries=entries,
        slots=slots,
        places=np.zeros(room, np.int64),
        topics=topics,
        forgotten=np.zeros(len(topics.keys), np.int64),
    )
