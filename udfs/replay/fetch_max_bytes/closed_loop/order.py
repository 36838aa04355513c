"""The order in which a broker reads a reader's partitions: the client's rules, the session's, and KIP-74's suggestions.

An order is an int64 array of partitions, of which the first `n` count.
"""

from __future__ import annotations

from udfs.columns.arrays import Ints
from udfs.kernels.kernel import kernel


@kernel
def move_partitions_to_end(order: Ints, n: int, moved: Ints, count: int, marks: Ints) -> None:
    """Move the partitions moved[:count] behind the others. Both groups keep their order.

    This is PartitionStates.moveToEnd (kafka-clients) for partitions whose records were taken, and what FetchSession
    does with partitions that have records in an incremental response. marks: int64[partitions], all 0 before and after.
    """
    for i in range(count):
        marks[moved[i]] = 1
    kept = 0
    for i in range(n):
        if marks[order[i]] == 0:
            order[kept] = order[i]
            kept += 1
    for i in range(count):
        marks[moved[i]] = 0
        order[kept + i] = moved[i]


@kernel
def begin_order_with(order: Ints, n: int, first: int, marks: Ints) -> None:
    """Rotate the order so that the partition at index `first` comes first. marks: int64[n], all 0 afterwards."""
    for i in range(n):
        marks[i] = order[(first + i) % n]
    for i in range(n):
        order[i] = marks[i]
        marks[i] = 0


@kernel
def draw_below(random: Ints, end: int) -> int:
    """A random number from 0 to `end` - 1. random: int64[1], the state of Knuth's MMIX generator, which changes."""
    random[0] = random[0] * 6364136223846793005 + 1442695040888963407
    return ((random[0] >> 33) & 0x7FFFFFFF) % end


@kernel
def shuffle_order(order: Ints, n: int, random: Ints) -> None:
    """Shuffle an order, by Fisher and Yates' algorithm.

    order: int64[partitions], of which the first `n` count. random: int64[1], as for `draw_below`.
    """
    for i in range(n - 1, 0, -1):
        j = draw_below(random, i + 1)
        order[i], order[j] = order[j], order[i]


@kernel
def remove_unwanted(order: Ints, n: int, is_wanted: Ints) -> int:
    """Remove unwanted partitions, as a session forgets them; returns how many are left.

    order: int64[partitions], of which the first `n` count. is_wanted: int64[partitions], 1 for those that stay.
    """
    kept = 0
    for i in range(n):
        if is_wanted[order[i]] == 1:
            order[kept] = order[i]
            kept += 1
    return kept
