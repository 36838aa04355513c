"""The input and output of `udfs.facts.session_follower`: the partitions that fetches list, and rows for the table."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints
from udfs.kernels.kernel import allocating_kernel

LISTED_FETCH = np.dtype(
    [
        (name, np.int64)
        for name in (
            "connection",
            "session_id",
            "session_epoch",
            "max_bytes",
            "is_follower",
            "is_answered",  # the response was captured and decoded
            "is_throttled",  # the response says that a quota throttled it
            "response_session_id",
            "response_error",
            "requested_from",  # its rows of `Requested` are [requested_from, requested_to); likewise for the others
            "requested_to",
            "forgotten_from",
            "forgotten_to",
            "returned_from",
            "returned_to",
            "is_known",  # output, for a fetch in a session: whether all partitions of the session are known
            "is_readable",  # output, likewise: whether all partitions that had something to read are known
        )
    ],
    align=True,
)


class Requested(NamedTuple):
    """Partitions that fetch requests list, int64[n] each."""

    topic: Ints
    partition: Ints
    fetch_offset: Ints
    partition_max_bytes: Ints
    current_leader_epoch: Ints
    last_fetched_epoch: Ints
    log_start_offset: Ints


class Forgotten(NamedTuple):
    """Partitions that fetch requests remove from their session, int64[n] each."""

    topic: Ints
    partition: Ints


class Returned(NamedTuple):
    """Partitions that fetch responses list, int64[n] each."""

    topic: Ints
    partition: Ints
    records_bytes: Ints
    first_offset: Ints  # of the first batch of records, or NOWHERE
    high_watermark: Ints
    last_stable_offset: Ints
    log_start_offset: Ints


class Lists(NamedTuple):
    """The partitions that requests and responses list. The ranges in LISTED_FETCH say which ones belong to a fetch."""

    requested: Requested
    forgotten: Forgotten
    returned: Returned


class FetchPartitionRows(NamedTuple):
    """Rows for `fetch_partitions`, int64[n] each."""

    fetch: Ints
    topic: Ints
    partition: Ints
    requested: Ints  # row of the request, or NOWHERE
    read_position: Ints  # or NOWHERE
    returned: Ints  # row of the response, or NOWHERE
    fetch_offset: Ints
    partition_max_bytes: Ints
    current_leader_epoch: Ints
    last_fetched_epoch: Ints
    reader_log_start_offset: Ints
    high_watermark: Ints
    last_stable_offset: Ints
    log_start_offset: Ints
    is_known: Ints  # 1 if all partitions of the session are known, otherwise 0
    is_readable: Ints  # 1 if all partitions that had something to read are known, else 0
    is_delayed: Ints  # 1 if the response shows that the fetch, if it is a follower's, was parked, otherwise 0


@allocating_kernel
def unwritten_rows(n: int) -> FetchPartitionRows:
    """Room for `n` rows, which the session follower writes."""
    return FetchPartitionRows(
        fetch=np.empty(n, np.int64),
        topic=np.empty(n, np.int64),
        partition=np.empty(n, np.int64),
        requested=np.empty(n, np.int64),
        read_position=np.empty(n, np.int64),
        returned=np.empty(n, np.int64),
        fetch_offset=np.empty(n, np.int64),
        partition_max_bytes=np.empty(n, np.int64),
        current_leader_epoch=np.empty(n, np.int64),
        last_fetched_epoch=np.empty(n, np.int64),
        reader_log_start_offset=np.empty(n, np.int64),
        high_watermark=np.empty(n, np.int64),
        last_stable_offset=np.empty(n, np.int64),
        log_start_offset=np.empty(n, np.int64),
        is_known=np.empty(n, np.int64),
        is_readable=np.empty(n, np.int64),
        is_delayed=np.empty(n, np.int64),
    )
