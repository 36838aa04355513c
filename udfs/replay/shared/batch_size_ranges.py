"""The batch.size of a producer that nobody states: each of its batches allows a range of values, and the value lies
where most of the ranges meet.
"""

from __future__ import annotations

import numpy as np

from udfs.columns.arrays import Ints

UNBOUNDED = (1 << 63) - 1
"""The end of a range that has none."""
MOST_OUTSIDE = 0.01
"""Kafka's default is taken if it is in nearly as many ranges as the best value: all but this share of them."""
NO_BATCHING = 0
"""The batch.size with which each batch has one record."""
AROUND = (0.02, 0.01, 0)
"""How much the value may differ from the point where most ranges meet, as shares of it: estimates depend on the order
of closes, which is not known."""
_STEPS: list[int] = sorted({*(2**k for k in range(31)), *(10**k for k in range(10))}, reverse=True)


def roundest_number(least: int, most: int) -> int:
    """The roundest number in a range, which has to contain a number above 0: a multiple of the largest power of two or
    ten that has a multiple in the range; of several multiples, the one nearest to the middle. If the range has no end,
    it is the least power of two.

    >>> roundest_number(37_911, 38_040), roundest_number(65_000, 65_600), roundest_number(40_000, UNBOUNDED)
    (38000, 65536, 65536)
    """
    if most == UNBOUNDED:
        return 1 << max(least - 1, 0).bit_length()
    least = max(least, 1)
    nearest = (((least + most + step) // 2 // step) * step for step in _STEPS)
    return next(value for value in nearest if least <= value <= most)


def values_in_most_ranges(least: Ints, most: Ints, default: int) -> list[int]:
    """The values to choose from: round values near where most of the ranges [least, most] meet, the roundest first; or
    only `default`, if that is in nearly as many ranges; or `default` and NO_BATCHING. least, most: int64[ranges].
    """
    begins = np.unique(np.concatenate([[0], least, most[most < UNBOUNDED] + 1]))
    counts = np.searchsorted(np.sort(least), begins, "right") - np.searchsorted(np.sort(most), begins, "left")
    best, place = int(np.argmax(counts)), int(np.searchsorted(begins, default, "right")) - 1
    low = int(begins[best])
    high = int(begins[best + 1]) - 1 if best + 1 < len(begins) else UNBOUNDED
    tolerated = int(MOST_OUTSIDE * len(least))
    if counts[place] >= counts[best] - tolerated:
        return [default]
    is_shown = int((least > default).sum()) > tolerated if low > default else is_below(least, most, low, high)
    if not is_shown:
        return [default, NO_BATCHING] if is_unbatched(least, most) else [default]
    if high == UNBOUNDED:
        return [roundest_number(low, high)]
    around = ((low - int(share * low), high + int(share * high)) for share in AROUND)
    return list(dict.fromkeys(roundest_number(*window) for window in around))


def is_below(least: Ints, most: Ints, low: int, high: int) -> bool:
    """Whether ranges show a value within [low, high], below the default: most batches with several records have to have
    ended there because they had no more room.

    A send that waits for memory leaves batches that are not full. So do other causes that a capture does not show.
    least, most: int64[batches], the range of each batch, in bytes.
    """
    is_full = most < UNBOUNDED
    return int((is_full & (least > 0) & (least <= low) & (most >= high)).sum()) * 2 > int(is_full.sum())


def is_unbatched(least: Ints, most: Ints) -> bool:
    """Whether nearly all batches have one record, and most of them could have taken another one by the default.

    Kafka's documentation gives batch.size=0 to switch batching off. least, most: int64[batches], as in `is_below`.
    """
    takes_several, is_full = int((least > 0).sum()), int((most < UNBOUNDED).sum())
    return takes_several <= int(MOST_OUTSIDE * len(least)) and 2 * is_full > len(least)
