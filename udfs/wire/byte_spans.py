"""Copies spans of bytes so that they lie one after the other."""

from __future__ import annotations

import numpy as np

from udfs.columns.arrays import Bytes, Ints, read_only
from udfs.kernels.kernel import kernel
from udfs.wire.primitives import copy_bytes


def gather_spans(source: Bytes, starts: Ints, ends: Ints) -> Bytes:
    """Spans of `source`, one after the other: the bytes from starts[i] on go to [ends[i], ends[i + 1]).

    starts: int64[n]; the start of an empty span does not matter. ends: int64[n + 1], `stretch_edges` of the spans'
    lengths.
    """
    content = np.empty(int(ends[-1]), np.uint8)
    copy_spans(read_only(source), read_only(starts), read_only(ends), content)
    return content


@kernel
def copy_spans(source: Bytes, starts: Ints, ends: Ints, content: Bytes) -> None:
    """For each i, copy the bytes of `source` from starts[i] on to content[ends[i] : ends[i + 1]], as `gather_spans`."""
    for i in range(len(starts)):
        copy_bytes(source, starts[i], ends[i + 1] - ends[i], content, ends[i])
