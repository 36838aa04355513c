"""Whether a frame dump has its frames without their sizes, so that nothing in it would be decoded as what it is."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from udfs.capture.connection_boundaries import ASKED
from udfs.capture.framing import SIZE_BYTES
from udfs.columns.arrays import Bytes, Ints, Shorts, read_only
from udfs.columns.arrow_columns import binary_bytes
from udfs.kernels.kernel import kernel
from udfs.wire.header import API_TABLE, plausible_request
from udfs.wire.primitives import signed


def requests_in(packets: pa.RecordBatch) -> pa.Array[Any]:
    """The frames of a batch of PACKETS that are requests."""
    return packets["payload"].filter(pa.array(packets["flags"].to_numpy() & ASKED != 0))


def lack_sizes(requests: pa.Array[Any]) -> bool:
    """Whether every one of these requests begins with its header: a plausible one, where none is behind a size."""
    starts, data = binary_bytes(requests)
    return bool(are_bare(read_only(starts), read_only(data), API_TABLE))


@kernel
def are_bare(starts: Ints, data: Bytes, apis: Shorts) -> bool:
    """`lack_sizes` of frames at `starts`, int64[n + 1]; False where no frame is long enough to tell."""
    bare = 0
    for i in range(len(starts) - 1):
        first, end = starts[i], starts[i + 1]
        if end - first <= SIZE_BYTES:
            continue
        size = int(signed(data, first, SIZE_BYTES))
        behind = first + SIZE_BYTES
        if size == end - behind or plausible_request(data, behind, end, size, apis):
            return False
        if not plausible_request(data, first, end, end - first, apis):
            return False
        bare += 1
    return bare > 0
