"""SimpleMemoryPool with the numbers of Kafka's own classes."""

from __future__ import annotations

import numpy as np
import pytest

from udfs.replay.consumer_memory.pool import GRANTED, ILLEGAL, POOL, REFUSED, fill_pool, release_memory, try_allocate


@pytest.mark.parametrize(
    ("strict", "sizes", "outcomes", "left"),
    [
        (0, [50, 60, 1], [GRANTED, GRANTED, REFUSED], -10),
        (1, [50, 60, 50], [GRANTED, REFUSED, GRANTED], 0),
        (0, [61, 0, -1], [ILLEGAL, ILLEGAL, ILLEGAL], 100),
    ],
)
def test_a_pool_of_100_bytes_gives_at_most_60_at_once(
    strict: int, sizes: list[int], outcomes: list[int], left: int
) -> None:
    """As org.apache.kafka.common.memory.SimpleMemoryPool of kafka-clients does, strict or not."""
    pool = np.zeros(1, POOL)
    fill_pool(pool[0], 100, 60, strict)
    assert [try_allocate(pool[0], size, 0) for size in sizes] == outcomes
    assert pool["available"][0] == left


def test_a_dry_spell_lasts_from_the_first_refusal_to_the_next_release() -> None:
    pool = np.zeros(1, POOL)
    fill_pool(pool[0], 10, 10, 0)
    for time in (0, 5, 8):
        try_allocate(pool[0], 10, time)
    release_memory(pool[0], 10, 25)
    try_allocate(pool[0], 10, 30)
    assert pool["depleted_us"][0] == 20
