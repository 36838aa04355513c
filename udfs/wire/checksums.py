"""CRC-32 and CRC-32C of ranges of the arena, sixteen bytes at a step.

CRC-32C (RFC 3720, appendix B.4) protects record batches, CRC-32 (RFC 1952, section 8) the older message sets. For each
of sixteen positions, a table has what each byte value at that position adds to the remainder (slicing, M. Kounavis and
F. Berry, 2005).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from udfs.columns.arrays import Bytes
from udfs.kernels.kernel import kernel
from udfs.wire.primitives import cell

Table = npt.NDArray[np.uint32]

_SLICES = 16


def _remainder_table(polynomial: int) -> Table:
    """Remainders of each byte value at each distance from a slice's end; reflected polynomial: uint32[16 * 256]."""
    remainders = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        halved = remainders >> 1
        remainders = np.where(remainders & 1, halved ^ np.uint32(polynomial), halved).astype(np.uint32)
    slices = [remainders]
    for _ in range(_SLICES - 1):
        slices.append((slices[-1] >> 8) ^ remainders[slices[-1] & 0xFF])
    table = np.concatenate(slices)
    table.flags.writeable = False
    return table


CRC32 = _remainder_table(0xEDB88320)
CRC32C = _remainder_table(0x82F63B78)


@kernel
def _mix_word(table: Table, arena: Bytes, at: int, distance: int, value: np.uint32) -> np.uint32:
    """What four bytes, xored with `value`, add to the remainder. The first is `distance` bytes from its slice's end."""
    mixed = np.uint32(0)
    for index in range(4):
        byte = np.uint32(cell(arena, at + index)) ^ (value >> np.uint32(8 * index)) & np.uint32(0xFF)
        mixed ^= table[np.uint64((distance - index) * 256) + np.uint64(byte)]
    return mixed


@kernel
def checksum(table: Table, arena: Bytes, start: int, end: int) -> int:
    """The CRC of arena[start:end] by `table`, CRC32 or CRC32C; the range must be inside the arena, uint8."""
    zero, remainder, at = np.uint32(0), np.uint32(0xFFFFFFFF), start
    while end - at >= _SLICES:
        mixed = _mix_word(table, arena, at, 15, remainder)
        mixed ^= _mix_word(table, arena, at + 4, 11, zero)
        mixed ^= _mix_word(table, arena, at + 8, 7, zero)
        remainder = np.uint32(mixed ^ _mix_word(table, arena, at + 12, 3, zero))
        at += _SLICES
    while at < end:
        low = np.uint64((remainder ^ np.uint32(cell(arena, at))) & np.uint32(0xFF))
        remainder = (remainder >> np.uint32(8)) ^ table[low]
        at += 1
    return int(np.int64(remainder ^ np.uint32(0xFFFFFFFF)))
