"""Quantiles of byte counts in bounded memory: buckets whose width is at most 1/128 of their value."""

from __future__ import annotations

import numpy as np

from udfs.columns.arrays import Ints
from udfs.kernels.kernel import kernel

STEPS = 128  # buckets between a power of two and the next
BUCKETS = 64 * STEPS


@kernel
def bucket_of_value(value: int) -> int:
    """The bucket of a positive value; values below STEPS have one each."""
    exponent = 0
    while value >> exponent >= 2 * STEPS:
        exponent += 1
    return exponent * STEPS + (value >> exponent)


@kernel
def bucket_floor(bucket: int) -> int:
    """The lowest value of a bucket."""
    exponent = max(bucket // STEPS - 1, 0)
    return (bucket - exponent * STEPS) << exponent


@kernel
def quantile_of(counts: Ints, total: int, share: float, largest: int) -> int:
    """`quantile_within` for kernels; 0 if nothing was counted.

    counts: int64[BUCKETS]. total: their sum.
    """
    if total == 0:
        return 0
    bucket, counted, wanted = 0, counts[0], max(share * total, 1.0)
    while counted < wanted:
        bucket += 1
        counted += counts[bucket]
    low = bucket_floor(bucket)
    return min(low + (bucket_floor(bucket + 1) - low) // 2, largest)


def quantile(counts: Ints, share: float) -> int | None:
    """The value that `share` of the counted values do not exceed, within 0.4 %; None when nothing was counted.

    counts: int64[BUCKETS].
    """
    total = int(counts.sum())
    if total == 0:
        return None
    bucket = int(np.searchsorted(np.cumsum(counts), max(share * total, 1)))
    low = bucket_floor(bucket)
    return low + (bucket_floor(bucket + 1) - low) // 2


def quantile_within(counts: Ints, share: float, largest: int) -> int | None:
    """The quantile, but at most the largest value that was counted, because a bucket's middle may be above it.

    counts: int64[BUCKETS]. None if nothing was counted.
    """
    value = quantile(counts, share)
    return None if value is None else min(value, largest)
