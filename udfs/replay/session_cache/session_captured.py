"""What the capture itself shows of a broker's fetch sessions, summed up beside what the lanes come to."""

from __future__ import annotations

import numpy as np

from schemas.wire.errors import FETCH_SESSION_ID_NOT_FOUND
from udfs.columns.arrays import Records
from udfs.kernels.kernel import kernel
from udfs.replay.session_cache.session_fetches import NO_TIME
from udfs.replay.session_cache.session_order import steps_counter

CAPTURED_SUMS = ("fetches", "created", "refused", "not_found", "request_bytes", "response_bytes")
"""Those that lanes have as well."""
CAPTURED = np.dtype([(name, np.int64) for name in (*CAPTURED_SUMS, "unknown")], align=True)
"""Sums over a bucket of time."""


@kernel
def count_captured(moments: Records, first: int, end: int, fetches: Records, captured: Records) -> None:
    """Add what moments[first:end] show. captured: CAPTURED[1]."""
    sums = captured[0]
    for m in range(first, end):
        moment = moments[m]
        fetch = fetches[moment.fetch]
        if moment.is_response == 0:
            sums.fetches += 1
            sums.request_bytes += max(fetch.request_bytes, 0)
            sums.unknown += fetch.is_known == 0
            continue
        sums.response_bytes += max(fetch.response_bytes, 0)
        sums.not_found += fetch.error == FETCH_SESSION_ID_NOT_FOUND
        if fetch.response_us != NO_TIME and steps_counter(fetch, moment):
            sums.created += fetch.response_session_id > 0
            sums.refused += fetch.response_session_id <= 0
