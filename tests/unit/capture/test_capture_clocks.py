"""pcapng clocks agree with exact arithmetic for every resolution."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from udfs.capture.timestamps import LAST_SECOND, ticks_to_ns

UINT32 = st.integers(0, 2**32 - 1)
RESOLUTION = st.one_of(st.integers(0, 40), st.integers(128, 255))


def exact_ns(ticks: int, resolution: int, offset: int) -> int | None:
    """Nanoseconds, rounded down; None if int64 nanoseconds cannot represent the second."""
    ticks_per_second = 2 ** (resolution & 0x7F) if resolution & 0x80 else 10**resolution
    ns = Fraction(ticks * 10**9, ticks_per_second)
    in_reach = ticks // ticks_per_second < 2**63 and abs(ticks // ticks_per_second + offset) <= LAST_SECOND
    return int(ns) + offset * 10**9 if in_reach else None


@settings(derandomize=True, max_examples=500, deadline=None)
@given(high=UINT32, low=UINT32, resolution=RESOLUTION, offset=st.integers(-(10**10), 10**10))
def test_ticks_become_nanoseconds_exactly(high: int, low: int, resolution: int, offset: int) -> None:
    ns, fits = ticks_to_ns(high, low, resolution, offset)
    assert (ns if fits else None) == exact_ns(high << 32 | low, resolution, offset)


@pytest.mark.parametrize("resolution", [9, 10, 19, 20, 28, 29, *(0x80 | bits for bits in (31, 32, 33, 63, 64, 95, 96))])
@pytest.mark.parametrize("ticks", [2**64 - 1, 2**63, 2**62 + 12_345_678_901])
def test_resolutions_at_which_the_arithmetic_changes_are_exact(resolution: int, ticks: int) -> None:
    ns, fits = ticks_to_ns(ticks >> 32, ticks & 0xFFFF_FFFF, resolution, 0)
    assert (ns if fits else None) == exact_ns(ticks, resolution, 0)


@settings(derandomize=True, max_examples=200, deadline=None)
@given(low=UINT32, offset=st.integers(-(2**63), 2**63 - 1))
def test_an_absurd_time_offset_never_wraps_around(low: int, offset: int) -> None:
    ns, fits = ticks_to_ns(0, low, 0, offset)
    assert (ns if fits else None) == exact_ns(low, 0, offset)
