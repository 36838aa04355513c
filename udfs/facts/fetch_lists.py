"""What decoded fetches list, as the follower of sessions takes it, and the rows that it writes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints
from udfs.kernels.kernel import allocating_kernel

FETCH = np.dtype(
    [
        (name, np.int64)
        for name in (
            "connection",
            "session_id",
            "session_epoch",
            "is_answered",  # the response was captured and decoded
            "response_session_id",
            "response_error",
            "wanted_from",  # rows of the request: [wanted_from, wanted_to)
            "wanted_to",
            "forgotten_from",
            "forgotten_to",
            "returned_from",
            "returned_to",
            "is_known",  # written: of a fetch in a session, whether the session's partitions are all known
        )
    ],
    align=True,
)


class Wanted(NamedTuple):
    """Partitions of fetch requests, int64[n] a column."""

    topic: Ints
    partition: Ints
    fetch_offset: Ints
    partition_max_bytes: Ints
    current_leader_epoch: Ints


class Forgotten(NamedTuple):
    """Partitions that fetch requests remove from their session, int64[n] a column."""

    topic: Ints
    partition: Ints


class Returned(NamedTuple):
    """Partitions of fetch responses, int64[n] a column."""

    topic: Ints
    partition: Ints
    records_bytes: Ints
    high_watermark: Ints
    last_stable_offset: Ints
    log_start_offset: Ints


class Lists(NamedTuple):
    """The partitions that requests and responses list; a FETCH says which of them are its own."""

    wanted: Wanted
    forgotten: Forgotten
    returned: Returned


class Rows(NamedTuple):
    """Rows for `fetch_partitions`, int64[n] a column."""

    fetch: Ints
    topic: Ints
    partition: Ints
    wanted: Ints  # row of the request, or NOWHERE
    read_position: Ints  # or NOWHERE
    returned: Ints  # row of the response, or NOWHERE
    fetch_offset: Ints
    partition_max_bytes: Ints
    current_leader_epoch: Ints
    high_watermark: Ints
    last_stable_offset: Ints
    log_start_offset: Ints
    is_known: Ints  # the session's partitions are all known


@allocating_kernel
def unwritten_rows(n: int) -> Rows:
    """So many rows, to be written."""
    return Rows(
        np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64),
        np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64),
        np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64),
        np.empty(n, np.int64),
    )  # fmt: skip
