"""Whose rules a reader follows: as its software says, else as its fetches show."""

from __future__ import annotations

import numpy as np

from schemas.tables import values
from schemas.tables.steps import READS
from udfs.columns.arrays import Bools, Ints, edges
from udfs.replay.fetch_max_bytes.client_order import FOLLOWER, JAVA_3, JAVA_4, LIBRDKAFKA
from udfs.replay.fetch_max_bytes.observed import UNSET, Observed

FIRST_WITH_MAX_BYTES = 3
"""The version of Fetch that brought max_bytes (KIP-74, Kafka 0.10.1)."""


def profile_of(seen: Observed, reader: str, request: Ints, partition: Ints) -> int:
    """The rules the reader follows: those of its software, else by whether it uses sessions, and keeps an order.

    Brokers before 1.1 grant no session, and those before 2.4 do not learn the software. request, partition: as
    `keeps_order` takes them.
    """
    told = seen.limits[READS.profile]
    if reader == values.FOLLOWER:
        return FOLLOWER
    if told != UNSET:
        return told
    if seen.limits[READS.in_session] == 1:
        return JAVA_4
    return JAVA_3 if keeps_order(request, partition) else LIBRDKAFKA


def keeps_order(request: Ints, partition: Ints) -> bool:
    """Whether, of responses one after the other with records of the same partitions, most have them in one order.

    Those of Kafka's own client have, for all that received records move behind the others in the same order
    (CompletedFetch.drain and PartitionStates.moveToEnd of kafka-clients 4.3). librdkafka begins with the next partition
    each time. One partition tells nothing.

    request: time of the request that each part of a response answers, in time order, int64[n]; partition: its number,
    int64[n].
    """
    starts = np.flatnonzero(np.diff(request, prepend=UNSET))
    sizes = np.diff(np.append(starts, len(request)))
    response = np.repeat(np.arange(len(sizes)), sizes)
    by_number = partition[np.lexsort((partition, response))]
    pairs = np.flatnonzero((sizes[1:] == sizes[:-1]) & (sizes[1:] > 1))
    lengths = sizes[pairs]
    pair, begins = np.repeat(np.arange(len(pairs)), lengths), edges(lengths)
    rows = starts[pairs][pair] + np.arange(begins[-1]) - begins[pair]

    def alike(parts: Ints) -> Bools:
        differs = parts[rows] != parts[rows + lengths[pair]]
        return np.bincount(pair[differs], minlength=len(pairs)) == 0

    are_same, are_in_order = alike(by_number), alike(partition)
    return bool(2 * (are_same & are_in_order).sum() > are_same.sum())
