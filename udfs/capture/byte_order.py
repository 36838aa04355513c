"""Reads unsigned integers from a byte array. The caller has checked that the bytes are there.

Each function is compiled to one load: LLVM sees that the bytes are neighbours, since `cell` allows no index from the
end.
"""

from __future__ import annotations

import numpy as np

from udfs.kernels.kernel import kernel
from udfs.wire.primitives import cell


@kernel
def u16(chunk: np.ndarray, at: int, big_endian: bool) -> int:
    """The 16-bit value at `chunk[at:at + 2]`, as int64."""
    first, second = np.int64(cell(chunk, at)), np.int64(cell(chunk, at + 1))
    if big_endian:
        return int(first << 8 | second)
    return int(second << 8 | first)


@kernel
def u32(chunk: np.ndarray, at: int, big_endian: bool) -> int:
    """The 32-bit value at `chunk[at:at + 4]`, as int64."""
    if big_endian:
        return u16(chunk, at, True) << 16 | u16(chunk, at + 2, True)
    return u16(chunk, at + 2, False) << 16 | u16(chunk, at, False)
