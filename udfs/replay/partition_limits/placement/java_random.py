"""java.util.Random, bit for bit, as the placers of replicas draw from it.

A generator is int64[5]: state, multiplier, increment, mask of the state, bits of the state. So Kafka's MockRandom,
by which its own tests are repeatable, is one as well.
"""

from __future__ import annotations

import numpy as np

from udfs.columns.arrays import Ints
from udfs.kernels.kernel import kernel

STATE, MULTIPLIER, INCREMENT, MASK, WIDTH = range(5)
JAVA_MULTIPLIER, JAVA_INCREMENT, JAVA_WIDTH = 0x5DEECE66D, 0xB, 48
JAVA_MASK = (1 << JAVA_WIDTH) - 1
LARGEST_INT = (1 << 31) - 1


def java_random(seed: int) -> Ints:
    """`new java.util.Random(seed)`."""
    state = (seed ^ JAVA_MULTIPLIER) & JAVA_MASK
    return np.array([state, JAVA_MULTIPLIER, JAVA_INCREMENT, JAVA_MASK, JAVA_WIDTH], np.int64)


@kernel
def reseed(rng: Ints, seed: int) -> None:
    """Make a generator of java.util.Random start anew, as `java_random` does."""
    rng[STATE] = (seed ^ JAVA_MULTIPLIER) & JAVA_MASK


@kernel
def next_bits(rng: Ints, bits: int) -> int:
    """Random.next for up to 31 bits, which is never negative."""
    rng[STATE] = (rng[STATE] * rng[MULTIPLIER] + rng[INCREMENT]) & rng[MASK]
    return (rng[STATE] >> (rng[WIDTH] - bits)) & ((1 << bits) - 1)


@kernel
def next_int(rng: Ints, bound: int) -> int:
    """Random.nextInt(bound) for a bound from 1 on (JDK 17)."""
    drawn = next_bits(rng, 31)
    if bound & (bound - 1) == 0:
        return (bound * drawn) >> 31
    while drawn - drawn % bound + bound - 1 > LARGEST_INT:
        drawn = next_bits(rng, 31)
    return drawn % bound


@kernel
def shuffle(rng: Ints, values: Ints, first: int, size: int) -> None:
    """Collections.shuffle of values[first : first + size], in place."""
    for i in range(size, 1, -1):
        other = first + next_int(rng, i)
        last = first + i - 1
        held = values[last]
        values[last] = values[other]
        values[other] = held
