"""The value that somebody has most likely set, of all that a capture allows."""

from __future__ import annotations

UNBOUNDED = (1 << 63) - 1
"""The end of a range that has none."""
_STEPS: list[int] = sorted({*(2**k for k in range(31)), *(10**k for k in range(10))}, reverse=True)


def roundest(least: int, most: int) -> int:
    """A multiple of the largest power of two or ten of which one is in the range, which holds a number above 0; of
    several the one in its middle. Without an end it is the least power of two.

    >>> roundest(37_911, 38_040), roundest(65_000, 65_600), roundest(40_000, UNBOUNDED)
    (38000, 65536, 65536)
    """
    if most == UNBOUNDED:
        return 1 << max(least - 1, 0).bit_length()
    least = max(least, 1)
    nearest = (((least + most + step) // 2 // step) * step for step in _STEPS)
    return next(value for value in nearest if least <= value <= most)
