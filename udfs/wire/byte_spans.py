"""Copies spans of bytes so that they lie one after the other."""

from __future__ import annotations

import numpy as np

from udfs.columns.arrays import Bytes, Ints, read_only
from udfs.kernels.kernel import kernel
from udfs.wire.primitives import copy_bytes


def gather_spans(source: Bytes, starts: Ints, ends: Ints) -> Bytes:
    """Spans of `source`, one after the other: the bytes from starts[i] on go to [ends[i], ends[i + 1]).

    starts: int64[n]; that of an empty span may be anything. ends: int64[n + 1], `edges` of the spans' lengths.
    """
    content = np.empty(int(ends[-1]), np.uint8)
    copy_spans(read_only(source), read_only(starts), read_only(ends), content)
    return content


@kernel
def copy_spans(source: Bytes, starts: Ints, ends: Ints, content: Bytes) -> None:
    """Copy the bytes of `source` from starts[i] on to content[ends[i] : ends[i + 1]], for each i, as `gather_spans`."""
    for i in range(len(starts)):
        copy_bytes(source, starts[i], ends[i + 1] - ends[i], content, ends[i])
