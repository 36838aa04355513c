"""In which order a broker reads a reader's partitions: the client's rules, the session's, and KIP-74's suggestions.

An order is an int64 array of partitions, of which the first `n` count.
"""

from __future__ import annotations

from udfs.columns.arrays import Ints
from udfs.kernels.kernel import kernel

JAVA_4, JAVA_3, LIBRDKAFKA, FOLLOWER = range(4)
PROFILES = {"java-4.0": JAVA_4, "java-3.9": JAVA_3, "librdkafka": LIBRDKAFKA}
"""Clients by the rules they follow, as scenarios name them; a broker's ReplicaFetcherThread is FOLLOWER."""

CLIENT, FIXED, FIRST_EMPTY, SHUFFLE = range(4)
ORDERS = {"client": CLIENT, "fixed": FIXED, "first_empty": FIRST_EMPTY, "shuffle": SHUFFLE}
"""Orders by name: the client's own, or another in its place."""


@kernel
def move_to_end(order: Ints, n: int, moved: Ints, moving: int, spare: Ints) -> None:
    """Move partitions moved[:moving] behind the others, one after the other; both keep their order.

    PartitionStates.moveToEnd (kafka-clients) of partitions whose records were taken, and what FetchSession does with
    those that an incremental response has records of. spare: int64[at least as many as there are partitions], all 0,
    which it is again afterwards.
    """
    for i in range(moving):
        spare[moved[i]] = 1
    kept = 0
    for i in range(n):
        if spare[order[i]] == 0:
            order[kept] = order[i]
            kept += 1
    for i in range(moving):
        spare[moved[i]] = 0
        order[kept + i] = moved[i]


@kernel
def begin_with(order: Ints, n: int, first: int, spare: Ints) -> None:
    """Turn the order so that the one at place `first` comes first. spare: int64[n], which is 0 again afterwards."""
    for i in range(n):
        spare[i] = order[(first + i) % n]
    for i in range(n):
        order[i] = spare[i]
        spare[i] = 0


@kernel
def shuffle(order: Ints, n: int, random: Ints) -> None:
    """Fisher and Yates' shuffle. random: int64[1], the generator's state (Knuth's MMIX, the upper bits), moved on."""
    for i in range(n - 1, 0, -1):
        random[0] = random[0] * 6364136223846793005 + 1442695040888963407
        j = ((random[0] >> 33) & 0x7FFFFFFF) % (i + 1)
        order[i], order[j] = order[j], order[i]


@kernel
def remove_absent(order: Ints, n: int, is_wanted: Ints) -> int:
    """Take out what is not wanted, as a session forgets it; returns how many are left."""
    kept = 0
    for i in range(n):
        if is_wanted[order[i]] == 1:
            order[kept] = order[i]
            kept += 1
    return kept
