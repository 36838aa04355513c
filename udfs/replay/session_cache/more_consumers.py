"""Lanes with `traffic.consumers`: so many consumers share the partitions that one captured consumer fetches.

The partitions are dealt to them in turn, in the order in which the captured consumer first asked for them. Each
consumer has a session of its own. It sends its fetches when the captured consumer did, but only those that want one of
its own partitions. Bytes are divided in proportion to the partitions.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from udfs.columns.arrays import Ints, Records, as_int64s, numbers_in_stretches, stretch_edges
from udfs.columns.records import as_bytes, pick_records
from udfs.replay.session_cache.state import SESSION_FETCH
from udfs.replay.shared.silver_columns import row_hash

COUNTS = ("listed", "returned")
BYTES = (
    ("request_full", "request_empty"),
    ("request_incremental", "request_empty"),
    ("response_full", "response_empty"),
    ("response_incremental", "response_empty"),
)
"""The fields that are divided: counts of partitions, and bytes of messages; with the fields that have the bytes of the
same messages without any partition."""


@dataclass
class DealtPartitions:
    """The order in which each client's partitions came: with n consumers, consumer i has those with place % n = i.

    counts: int64[m], the numbers of consumers that lanes have, the lowest first. places: the place of each partition
    among its client's. known: how many partitions each client has had.
    """

    counts: Ints
    places: dict[int, int] = field(default_factory=dict)
    known: Counter[int] = field(default_factory=Counter)

    def sizes(self, fetches: Records, rows: Records) -> Ints:
        """How many wanted partitions of each fetch each consumer has: int64[n, shares].

        fetches: SESSION_FETCH[n], whose owners are known. rows: LISTED_PARTITION[m].
        """
        sizes = np.zeros((len(fetches), int(self.counts.sum())), np.int64)
        if self.counts[-1] == 1:
            return sizes
        lengths = fetches["end"] - fetches["first"]
        wanted = pick_records(rows, numbers_in_stretches(fetches["first"], lengths))
        fetch = np.repeat(np.arange(len(fetches)), lengths)[wanted["is_wanted"] == 1]
        wanted = pick_records(wanted, wanted["is_wanted"] == 1)
        place = self.places_of(fetches["owner"][fetch], wanted)
        for first, count in zip(stretch_edges(self.counts)[:-1].tolist(), self.counts.tolist(), strict=True):
            np.add.at(sizes, (fetch, first + place % count), 1)
        return sizes

    def places_of(self, owner: Ints, rows: Records) -> Ints:
        """The place of each row's partition among its client's: int64[n]. owner: int64[n], the client."""
        columns = map(as_int64s, (owner, rows["topic"], rows["partition"]))
        keys = row_hash(*map(pa.array, columns)).to_numpy()
        distinct, first, which = np.unique(keys, return_index=True, return_inverse=True)
        places = np.zeros(len(distinct), np.int64)
        for i in np.argsort(first).tolist():
            key, client = int(distinct[i]), int(owner[first[i]])
            if key not in self.places:
                self.places[key] = self.known[client]
                self.known[client] += 1
            places[i] = self.places[key]
        return places[which]


def first_shares(settings: Records) -> Ints:
    """The column of `shares_of_fetches` with the first consumer of each lane: int64[lanes]."""
    counts, count_of_lane = np.unique(settings["consumers"], return_inverse=True)
    return stretch_edges(counts)[count_of_lane]


def shares_of_fetches(fetches: Records, sizes: Ints, counts: Ints) -> Records:
    """Each consumer's share of captured fetches: SESSION_FETCH[n, shares].

    For each number of consumers in any lane, the lowest first, there are as many columns. A consumer's number is
    `owner` x the highest of these numbers + its index. A follower's fetches are not divided.

    fetches: SESSION_FETCH[n]. sizes: int64[n, shares] and counts: int64[m], from DealtPartitions.
    """
    if counts[-1] == 1:
        return fetches.reshape((-1, 1))
    shares = np.zeros((sizes.shape[1], len(fetches)), SESSION_FETCH)
    for first, count in zip(stretch_edges(counts)[:-1].tolist(), counts.tolist(), strict=True):
        for share in range(count):
            of = shares[first + share]
            as_bytes(of)[:] = as_bytes(fetches)
            of["owner"] = fetches["owner"] * counts[-1] + share
            if count > 1:
                divide_fetches(of, np.where(fetches["privileged"] == 1, fetches["size"], sizes[:, first + share]))
    return np.ascontiguousarray(shares.T)


def divide_fetches(fetches: Records, size: Ints) -> None:
    """Reduce fetches to `size` of their partitions, int64[n]. fetches: SESSION_FETCH[n], written in place."""
    whole = np.maximum(fetches["size"], 1)
    for name in COUNTS:
        fetches[name] = (fetches[name] * size + whole // 2) // whole
    for name, empty in BYTES:
        fetches[name] = fetches[empty] + (fetches[name] - fetches[empty]) * size // whole
    fetches["size"] = size
