"""A digest of bytes, eight at a step. It assigns connections to buckets and recognises packets captured twice.

It may change with the code, so no table contains it: names in tables are hashed by FNV-1a (`udfs.facts.hashed_names`).
"""

from __future__ import annotations

import numpy as np

from udfs.columns.arrays import Bytes
from udfs.kernels.kernel import kernel
from udfs.wire.primitives import cell

STEP_BYTES = 8
SEED = np.uint64(0x9E37_79B9_7F4A_7C15)
# The finalizer of MurmurHash3 (Austin Appleby), 64 bits.
MIX_1, MIX_2 = np.uint64(0xFF51_AFD7_ED55_8CCD), np.uint64(0xC4CE_B9FE_1A85_EC53)


@kernel
def mix_bits(value: np.uint64) -> np.uint64:
    """A number that is different for each value. Each of its bits depends on every bit of the value."""
    value = (value ^ (value >> np.uint64(33))) * MIX_1
    value = (value ^ (value >> np.uint64(33))) * MIX_2
    return value ^ (value >> np.uint64(33))


@kernel
def continue_digest(digest: np.uint64, chunk: Bytes, first: int, end: int) -> np.uint64:
    """The digest of some bytes followed by chunk[first:end]. digest: that of the bytes before.

    The last bytes, fewer than eight, are read as one number, in which leading zeros do not count.
    """
    at = first
    while at < end:
        word = np.uint64(0)
        if end - at >= STEP_BYTES:
            for i in range(STEP_BYTES):  # one load
                word |= np.uint64(cell(chunk, at + i)) << np.uint64(8 * i)
        else:
            for i in range(at, end):
                word = (word << np.uint64(8)) | np.uint64(cell(chunk, i))
        digest = (digest ^ word) * MIX_1
        digest ^= digest >> np.uint64(32)
        at += STEP_BYTES
    return digest
