"""Can StripedReplicaPlacer have drawn the replicas that Metadata shows? Its Random is not seeded, so no draw is known.

In a cluster without racks and without fenced brokers the placer goes round a ring of the brokers: each partition begins
one broker further than the one before, and its replicas are neighbours. The first round's ring is in the order of node
ids; after as many partitions as there are brokers it is shuffled (StripedReplicaPlacer.RackList.place, Kafka 4.3.1).
"""

from __future__ import annotations

import numpy as np

from udfs.wire.arrays import Ints
from udfs.wire.kernel import kernel


@kernel
def is_ring(replicas: Ints, at: int, partitions: int, factor: int, ring: Ints, sorted_ring: bool) -> bool:
    """Whether partitions of `factor` replicas from replicas[at:] on go round one ring of brokers 0 to len(ring) - 1.

    ring: working memory. sorted_ring: the ring has to be in the brokers' order.
    """
    n = len(ring)
    for i in range(n):
        ring[i] = -1
    for partition in range(partitions):
        for replica in range(factor):
            place, broker = (partition + replica) % n, replicas[at + partition * factor + replica]
            if ring[place] == -1:
                ring[place] = broker
            if ring[place] != broker:
                return False
    for i in range(n):
        for j in range(i):
            if ring[i] != -1 and ring[i] == ring[j]:
                return False
        if sorted_ring and i > 0 and ring[i] != -1 and ring[i - 1] != -1 and ring[i] != (ring[i - 1] + 1) % n:
            return False
    return True


@kernel
def fill_rounds(
    replicas: Ints, at: Ints, partitions: Ints, factor: Ints, ring: Ints, rounds: Ints, possible: Ints
) -> None:
    """By placement, how many rounds it has, and how many of them are possible."""
    for row in range(len(at)):
        first = 0
        while first < partitions[row]:
            size = min(len(ring), partitions[row] - first)
            rounds[row] += 1
            where = at[row] + first * factor[row]
            possible[row] += 1 if is_ring(replicas, where, size, factor[row], ring, first == 0) else 0
            first += len(ring)


def possible_rounds(replicas: Ints, at: Ints, partitions: Ints, factor: Ints, brokers: int) -> tuple[Ints, Ints]:
    """Rounds, and possible ones, of each placement: its replicas are replicas[at:], broker numbers, int64 all."""
    rounds, possible = np.zeros(len(at), np.int64), np.zeros(len(at), np.int64)
    fill_rounds(replicas, at, partitions, factor, np.zeros(brokers, np.int64), rounds, possible)
    return rounds, possible
