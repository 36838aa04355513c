"""Draws are those of java.util.Random, with whose seed Kafka's placement is repeated."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from udfs.replay.partition_limits.placement.java_random import java_random, next_int, reseed, shuffle_as_java


class PlainRandom:
    """java.util.Random by its documentation, with Java's 32-bit arithmetic."""

    def __init__(self, seed: int) -> None:
        self.state = (seed ^ 0x5DEECE66D) & (1 << 48) - 1

    def next_31_bits(self) -> int:
        self.state = (self.state * 0x5DEECE66D + 0xB) & (1 << 48) - 1
        return self.state >> 17

    def next_int(self, bound: int) -> int:
        if bound & -bound == bound:
            return (bound * self.next_31_bits()) >> 31
        while True:
            bits = self.next_31_bits()
            if bits - bits % bound + (bound - 1) < 1 << 31:  # otherwise it overflows in Java
                return bits % bound


BOUNDS = st.integers(1, 20) | st.sampled_from([(1 << 30) + 1, (1 << 31) - 1, 1 << 30, 3 << 29])


@given(st.integers(-(1 << 62), 1 << 62), st.lists(BOUNDS, min_size=1, max_size=8))
def test_draws_are_java_s(seed: int, bounds: list[int]) -> None:
    (rng,), plain = java_random(seed), PlainRandom(seed)
    assert [next_int(rng, bound) for bound in bounds] == [plain.next_int(bound) for bound in bounds]


def test_the_first_draws_of_the_seed_42_are_known() -> None:
    (rng,) = java_random(42)
    assert [next_int(rng, 10) for _ in range(5)] == [0, 3, 8, 4, 0]
    reseed(rng, 42)
    assert next_int(rng, 10) == 0


@given(st.integers(0, 99), st.integers(0, 6), st.integers(0, 3))
def test_values_are_shuffled_as_by_java_from_the_last_to_the_second(seed: int, size: int, first: int) -> None:
    values, plain = np.arange(size + first + 2), PlainRandom(seed)
    expected = list(range(first, first + size))
    for last in range(size - 1, 0, -1):
        other = plain.next_int(last + 1)
        expected[last], expected[other] = expected[other], expected[last]
    shuffle_as_java(java_random(seed)[0], values, first, size)
    assert values.tolist() == [*range(first), *expected, first + size, first + size + 1]
