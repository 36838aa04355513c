"""Finds out whether the frames of a dump lack their 4-byte sizes. Without them they cannot be decoded."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from udfs.capture.connection_boundaries import IS_REQUEST
from udfs.capture.framing import SIZE_BYTES
from udfs.columns.arrays import Bytes, Ints, Shorts, read_only
from udfs.columns.arrow_columns import offsets_and_bytes
from udfs.kernels.kernel import kernel
from udfs.wire.header import API_TABLE, plausible_request
from udfs.wire.primitives import read_signed


def request_frames(packets: pa.RecordBatch) -> pa.Array[Any]:
    """The frames of the requests in `packets`, a batch of PACKETS: a binary column."""
    return packets["payload"].filter(pa.array(packets["flags"].to_numpy() & IS_REQUEST != 0))


def sizes_are_missing(requests: pa.Array[Any]) -> bool:
    """Whether all requests, a binary column, begin with a plausible header, without a size before it."""
    starts, data = offsets_and_bytes(requests)
    return bool(begin_with_headers(read_only(starts), read_only(data), API_TABLE))


@kernel
def begin_with_headers(starts: Ints, data: Bytes, apis: Shorts) -> bool:
    """Whether frames begin with a plausible header and not with a size; False if no frame is long enough to tell.

    starts: int64[n + 1], where each frame begins in `data`, and the end of the last frame.
    """
    bare = 0
    for i in range(len(starts) - 1):
        first, end = starts[i], starts[i + 1]
        if end - first <= SIZE_BYTES:
            continue
        size = int(read_signed(data, first, SIZE_BYTES))
        behind = first + SIZE_BYTES
        if size == end - behind or plausible_request(data, behind, end, size, apis):
            return False
        if not plausible_request(data, first, end, end - first, apis):
            return False
        bare += 1
    return bare > 0
