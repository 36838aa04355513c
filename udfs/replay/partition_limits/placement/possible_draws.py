"""Can StripedReplicaPlacer have drawn the replicas that Metadata shows? Its Random is not seeded, so no draw is known.

In a cluster without racks and without fenced brokers the placer goes round a ring of the brokers: each partition begins
one broker further than the one before, and its replicas are neighbours. With racks, and no more replicas than those, it
goes so round a ring of the racks, each of which gives its brokers in a ring of their own. The first round's rings are
in the order of racks and node ids; after as many partitions as there are brokers they are shuffled
(StripedReplicaPlacer.RackList.place and BrokerList.next, Kafka 4.3.1).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Bools, Ints, read_only
from udfs.kernels.kernel import kernel
from udfs.replay.partition_limits.placement.brokers import Brokers


class Racks(NamedTuple):
    """Where brokers are, int64[brokers]: their rack, and their place in it. int64[racks]: brokers of a rack, and of
    those before it.
    """

    of: Ints
    nth: Ints
    size: Ints
    first: Ints


def racks_of(brokers: Brokers) -> Racks:
    """The racks of brokers, which are in order."""
    size = np.bincount(brokers.rack, minlength=len(brokers.draw_order)).astype(np.int64)
    first, order = np.cumsum(size) - size, np.argsort(brokers.rack, kind="stable")
    nth = np.zeros(len(order), np.int64)
    nth[order] = np.arange(len(order)) - first[brokers.rack[order]]
    return Racks(*map(read_only, (brokers.rack, nth, size, first)))


@kernel
def is_circle(ring: Ints, first: int, size: int, in_order: bool) -> bool:
    """Whether what is known of ring[first : first + size] can be 0 to size - 1, each once; -1 is not known.

    in_order: one behind the other.
    """
    for i in range(size):
        for j in range(i):
            if ring[first + i] != -1 and ring[first + i] == ring[first + j]:
                return False
        known = i > 0 and ring[first + i] != -1 and ring[first + i - 1] != -1
        if in_order and known and ring[first + i] != (ring[first + i - 1] + 1) % size:
            return False
    return True


@kernel
def is_ring(placed: Ints, at: int, partitions: int, factor: int, ring: Ints, in_order: bool) -> bool:
    """Whether partitions of `factor` replicas from placed[at:] on go round one ring of 0 to len(ring) - 1.

    ring: working memory.
    """
    n = len(ring)
    for i in range(n):
        ring[i] = -1
    for partition in range(partitions):
        for replica in range(factor):
            place, found = (partition + replica) % n, placed[at + partition * factor + replica]
            if ring[place] == -1:
                ring[place] = found
            if ring[place] != found:
                return False
    return is_circle(ring, 0, n, in_order)


@kernel
def are_rings(replicas: Ints, at: int, end: int, racks: Racks, ring: Ints, uses: Ints, in_order: bool) -> bool:
    """Whether the brokers of each rack among replicas[at:end] go round a ring of their own.

    ring, uses: int64[brokers] and int64[racks], working memory.
    """
    for i in range(len(ring)):
        ring[i] = -1
    for rack in range(len(uses)):
        uses[rack] = 0
    for cell in range(at, end):
        broker = replicas[cell]
        rack = racks.of[broker]
        place = racks.first[rack] + uses[rack] % racks.size[rack]
        uses[rack] += 1
        if ring[place] == -1:
            ring[place] = racks.nth[broker]
        if ring[place] != racks.nth[broker]:
            return False
    fits = True
    for rack in range(len(uses)):
        fits = fits and is_circle(ring, racks.first[rack], racks.size[rack], in_order)
    return fits


@kernel
def fill_rounds(
    replicas: Ints, at: Ints, partitions: Ints, factor: Ints, racks: Racks, places: Ints, ring: Ints, rack_ring: Ints,
    uses: Ints, rounds: Ints, possible: Ints,
) -> None:  # fmt: skip
    """By placement, how many rounds it has, and how many of them are possible. places: the racks of the replicas."""
    one_rack = len(rack_ring) == 1
    for row in range(len(at)):
        first = 0
        while first < partitions[row]:
            size = min(len(ring), partitions[row] - first)
            rounds[row] += 1
            begin, is_first = at[row] + first * factor[row], first == 0
            end = begin + size * factor[row]
            if one_rack:
                fits = is_ring(replicas, begin, size, factor[row], ring, is_first)
            else:
                fits = is_ring(places, begin, size, factor[row], rack_ring, is_first) and are_rings(
                    replicas, begin, end, racks, ring, uses, is_first
                )
            possible[row] += 1 if fits else 0
            first += len(ring)


def can_tell(factor: Ints, brokers: Brokers) -> Bools:
    """Whether placements of so many replicas can be checked: bool[placements].

    They cannot where brokers are fenced, for those have lists of their own; nor where a rack has several replicas of a
    partition; nor where a round is so short that a rack may be left out of all of it (twice the racks that a partition
    leaves out). Its list then seems to be used up, for the marks by which lists know a partition begin anew each round.
    """
    racks = len(brokers.draw_order)
    in_time = 2 * (racks - factor) + 1 < len(brokers.rack)
    return bool(brokers.unfenced.all()) & ((racks == 1) | ((factor <= racks) & in_time))


def possible_rounds(replicas: Ints, at: Ints, partitions: Ints, factor: Ints, brokers: Brokers) -> tuple[Ints, Ints]:
    """Rounds, and possible ones, of each placement: its replicas are replicas[at:], broker numbers, int64 all.

    They have to be such as `can_tell` says.
    """
    rounds, possible = np.zeros(len(at), np.int64), np.zeros(len(at), np.int64)
    racks = racks_of(brokers)
    places = racks.of[replicas] if len(racks.of) else replicas
    ring, rack_ring, uses = (np.zeros(size, np.int64) for size in (len(racks.of), len(racks.size), len(racks.size)))
    fill_rounds(replicas, at, partitions, factor, racks, places, ring, rack_ring, uses, rounds, possible)
    return rounds, possible
