"""Converts the timestamps of captures to nanoseconds since 1970-01-01 UTC."""

from __future__ import annotations

import numpy as np

from udfs.columns.time_units import NS_PER_S
from udfs.kernels.kernel import kernel

POWERS_OF_TEN = np.array([10**n for n in range(20)], dtype=np.uint64)
SECOND_NS = np.uint64(NS_PER_S)
LOW_32 = np.uint64(0xFFFF_FFFF)
LAST_SECOND = 9_223_372_035
"""The last whole second whose nanoseconds all fit an int64 (year 2262)."""


@kernel
def _signed(value: np.uint64) -> int:
    return int(np.int64(value))


@kernel
def _decimal(ticks: np.uint64, digits: int) -> tuple[int, int]:
    if digits > 28:  # then all 64 bits of ticks are less than a nanosecond
        return 0, 0
    if digits > 19:  # then they are less than a second
        return 0, _signed(ticks // POWERS_OF_TEN[digits - 9])
    per_second = POWERS_OF_TEN[digits]
    seconds, fraction = ticks // per_second, ticks % per_second
    if digits <= 9:
        return _signed(seconds), _signed(fraction * POWERS_OF_TEN[9 - digits])
    return _signed(seconds), _signed(fraction // POWERS_OF_TEN[digits - 9])


@kernel
def _binary(ticks: np.uint64, bits: int) -> tuple[int, int]:
    seconds, fraction = np.uint64(0), ticks
    if bits < 64:
        seconds = ticks >> np.uint64(bits)
        fraction = ticks - (seconds << np.uint64(bits))
    low = (fraction & LOW_32) * SECOND_NS
    high = (fraction >> np.uint64(32)) * SECOND_NS
    if bits < 32:  # then the fraction has no high half
        return _signed(seconds), _signed(low >> np.uint64(bits))
    # fraction * 10**9 may need 94 bits: drop the low 32 first, which floors to the same value.
    if bits >= 96:  # a shift by 64 or more is undefined
        return 0, 0
    return _signed(seconds), _signed((high + (low >> np.uint64(32))) >> np.uint64(bits - 32))


@kernel
def ticks_to_ns(high: int, low: int, resolution: int, offset_seconds: int) -> tuple[int, bool]:
    """(a pcapng timestamp in nanoseconds, rounded down; whether an int64 can hold it).

    high, low:      the two unsigned 32-bit halves of the tick count
    resolution:     `if_tsresol` (draft-ietf-opsawg-pcapng 4.2): ticks per second are 10**n, or 2**n where bit 7 is set
    offset_seconds: `if_tsoffset`, added to the seconds
    """
    ticks = np.uint64(high) << np.uint64(32) | np.uint64(low)
    if resolution & 0x80:
        seconds, nanoseconds = _binary(ticks, resolution & 0x7F)
    else:
        seconds, nanoseconds = _decimal(ticks, resolution)
    earliest, latest = -LAST_SECOND - offset_seconds, LAST_SECOND - offset_seconds
    if abs(offset_seconds) > 1 << 40 or seconds < 0 or seconds > latest or seconds < earliest:
        return 0, False
    return (seconds + offset_seconds) * 1_000_000_000 + nanoseconds, True
