"""java.util.Random, bit for bit, for the draws of the placers of replicas."""

from __future__ import annotations

import numpy as np

from udfs.columns.arrays import Ints, Record, Records
from udfs.columns.records import int_fields
from udfs.kernels.kernel import kernel

GENERATOR = int_fields("state", "multiplier", "increment", "mask", "bits")
"""A linear congruential generator: its state, and the mask and the number of bits of that state.

Kafka's MockRandom, by which Kafka's own tests are repeatable, is one as well.
"""
MULTIPLIER, INCREMENT, BITS = 0x5DEECE66D, 0xB, 48
MASK = (1 << BITS) - 1
LARGEST_INT = (1 << 31) - 1


def java_random(seed: int) -> Records:
    """`new java.util.Random(seed)` as GENERATOR[1]."""
    return np.array([((seed ^ MULTIPLIER) & MASK, MULTIPLIER, INCREMENT, MASK, BITS)], GENERATOR)


@kernel
def reseed(rng: Record, seed: int) -> None:
    """Restart a generator of java.util.Random, as Random.setSeed does."""
    rng.state = (seed ^ MULTIPLIER) & MASK


@kernel
def next_bits(rng: Record, bits: int) -> int:
    """Random.next for up to 31 bits, which is never negative."""
    rng.state = (rng.state * rng.multiplier + rng.increment) & rng.mask
    return (rng.state >> (rng.bits - bits)) & ((1 << bits) - 1)


@kernel
def next_int(rng: Record, bound: int) -> int:
    """Random.nextInt(bound) for a bound from 1 on (JDK 17)."""
    drawn = next_bits(rng, 31)
    if bound & (bound - 1) == 0:
        return (bound * drawn) >> 31
    while drawn - drawn % bound + bound - 1 > LARGEST_INT:
        drawn = next_bits(rng, 31)
    return drawn % bound


@kernel
def shuffle_as_java(rng: Record, values: Ints, first: int, size: int) -> None:
    """Collections.shuffle of values[first : first + size], in place."""
    for i in range(size, 1, -1):
        other, last = first + next_int(rng, i), first + i - 1
        values[last], values[other] = values[other], values[last]
