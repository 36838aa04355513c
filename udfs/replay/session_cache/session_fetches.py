"""A captured fetch as the replay of sessions takes it: what the capture tells, what is in it, what its client did."""

from __future__ import annotations

import numpy as np

from schemas.wire.fetch import SESSION_ERRORS
from udfs.columns.arrays import Record
from udfs.kernels.kernel import kernel
from udfs.wire.fetch_sizes import FIRST_WITH_TOPIC_IDS

NO_SESSION = 0
NO_TIME = -1
UNTOLD_EPOCH = -2
BY_RULES, BEGIN_ANEW, RENEW, WITHOUT_SESSION, FROM_BEFORE, WRONG_EPOCH = range(6)
"""What a client does: what its rules say; a full fetch of a client that knows of no session; one that closes the
session; a fetch that wants none; the first one seen of a session that was opened before the capture began; a fetch
whose epoch is not the session's, and that the broker refuses."""
AS_EXPECTED, AFTER_LOSS, UNEXPECTED = range(3)
"""Is it what the rules say? After a message that was not captured, or in a new connection, they do not tell."""

FETCH = np.dtype(
    [
        (name, np.int64)
        for name in (
            # What is in it (session_contents).
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
            # What the capture tells.
            "number",  # among the broker's
            "connection",
            "request_us",  # since 1970
            "asked_us",  # when the broker takes the request up: it answers a connection's requests one by one
            "response_us",  # or NO_TIME
            "max_wait_us",  # the broker answers no later
            "version",
            "name",  # of the client and whether it is a follower, a number
            "has_partitions",
            "privileged",
            "session_id",
            "epoch",  # or UNTOLD_EPOCH, of a request that is cut before it
            "is_cut",  # nothing of the request is told but its times, and maybe its session and epoch
            "response_session_id",
            "error",
            "is_throttled",
            "is_known",  # all partitions wanted are
            "is_lost",  # ... but for a session that was opened, or lost track of, outside the capture
            "strayed",  # partitions that a response has and the session does not, or a full one lacks
            "request_bytes",
            "response_bytes",
            "first",  # its partitions are rows [first, end)
            "end",
            # Whose it is, and why (session_clients).
            "owner",  # the client, by its number among the broker's
            "act",  # BY_RULES ...
            "expected",  # AS_EXPECTED ...
        )
    ],
    align=True,
)


@kernel
def is_session_error(error: int) -> bool:
    """Errors that tell of the session, and after which a client asks again at once."""
    return error in SESSION_ERRORS


@kernel
def uses_topic_ids(fetch: Record) -> int:
    """Does a request name topics by their ids, as those of a session do from its first fetch to its last (KIP-516)?"""
    return 1 if fetch.version >= FIRST_WITH_TOPIC_IDS else 0


@kernel
def is_incremental(fetch: Record) -> bool:
    """Is the captured request one in a session?"""
    return bool(fetch.epoch > 0)


@kernel
def is_told(fetch: Record) -> bool:
    """Is the response known, and did no quota empty it?"""
    return bool(fetch.response_us >= 0 and fetch.is_throttled == 0)
