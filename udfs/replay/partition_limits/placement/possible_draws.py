"""Can StripedReplicaPlacer have drawn the replicas that Metadata shows? Its Random has no fixed seed, so no draw is
known.

In a cluster without racks and without fenced brokers, the placer goes round a ring of the brokers: each partition
begins one broker further than the partition before, and its replicas are neighbours. With racks, and at most as many
replicas as racks, it goes round a ring of the racks in the same way, and each rack has a ring of its own brokers. The
rings of the first round are in the order of racks and node ids. After as many partitions as there are brokers, a round
ends, and the rings are shuffled (StripedReplicaPlacer.RackList.place and BrokerList.next, Kafka 4.3.1).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Bools, Ints, Record, Records, read_only
from udfs.columns.records import int_fields
from udfs.columns.sentinels import NONE
from udfs.kernels.kernel import kernel
from udfs.replay.partition_limits.placement.brokers import Brokers, these_brokers

SHOWN_PLACEMENT = int_fields(
    "first",  # where its brokers begin
    "partitions",
    "replication_factor",
    "rounds",  # how many rounds it has
    "possible",  # how many of them can have been drawn
)
"""Partitions placed at once, and the result of checking them."""

ROUND = int_fields("first", "partitions", "replication_factor", "is_first")
"""A round, a part of a placement: as many partitions as there are brokers, or the rest."""

SEAT = int_fields("rack", "place")
"""The seat of a broker: its rack, and its index in the rack."""

RACK = int_fields("first", "brokers", "uses")
"""A rack: where its part of Rings.broker_rings begins, its brokers, and replicas of the round that it has got."""


class Rings(NamedTuple):
    """Working memory of the check, and the seats of the brokers.

    seats: SEAT[brokers]. racks: RACK[racks]. broker_rings: int64[brokers], the rings of all racks, one after the other;
    they hold indices in the rack. rack_ring: int64[racks], the ring of the racks. round: ROUND[1].
    """

    seats: Records
    racks: Records
    broker_rings: Ints
    rack_ring: Ints
    round: Records


def rings_of(brokers: Brokers) -> Rings:
    """The empty rings of a cluster."""
    table, n = brokers.table, len(brokers.table)
    racks, seats = np.zeros(len(brokers.draw_order), RACK), np.zeros(n, SEAT)
    racks["brokers"] = np.bincount(table["rack"], minlength=len(racks))
    racks["first"] = np.cumsum(racks["brokers"]) - racks["brokers"]
    order = np.argsort(table["rack"], kind="stable")
    seats["rack"] = table["rack"]
    seats["place"][order] = np.arange(n) - racks["first"][table["rack"][order]]
    return Rings(
        seats=read_only(seats),
        racks=racks,
        broker_rings=np.zeros(n, np.int64),
        rack_ring=np.zeros(len(racks), np.int64),
        round=np.zeros(1, ROUND),
    )


@kernel
def is_circle(ring: Ints, first: int, size: int, in_order: bool) -> bool:
    """Whether the known numbers of ring[first : first + size] can be a circle of 0 to size - 1, each once.

    ring: int64[places], NONE for an unknown number. in_order: each number has to be followed by the next one.
    """
    for i in range(size):
        value = ring[first + i]
        for j in range(i):
            if value != NONE and value == ring[first + j]:
                return False
        before = ring[first + i - 1] if i > 0 else NONE
        if in_order and value != NONE and before != NONE and value != (before + 1) % size:
            return False
    return True


@kernel
def is_ring(values: Ints, part: Record, ring: Ints) -> bool:
    """Whether the partitions of a round go round one ring of the numbers from 0 to len(ring) - 1.

    values: int64[replicas], brokers or racks. part: ROUND. ring: int64[numbers], working memory.
    """
    n, factor = len(ring), part.replication_factor
    for i in range(n):
        ring[i] = NONE
    for partition in range(part.partitions):
        for replica in range(factor):
            place, value = (partition + replica) % n, values[part.first + partition * factor + replica]
            if ring[place] == NONE:
                ring[place] = value
            if ring[place] != value:
                return False
    return is_circle(ring, 0, n, part.is_first == 1)


@kernel
def are_rings(replicas: Ints, part: Record, rings: Rings) -> bool:
    """Whether the brokers of each rack among a round's replicas go round a ring of their own.

    replicas: int64[replicas], numbers of brokers. part: ROUND, which of the replicas are of the round.
    """
    ring, racks = rings.broker_rings, rings.racks
    for i in range(len(ring)):
        ring[i] = NONE
    for i in range(len(racks)):
        racks[i].uses = 0
    for i in range(part.first, part.first + part.partitions * part.replication_factor):
        seat = rings.seats[replicas[i]]
        rack = racks[seat.rack]
        place = rack.first + rack.uses % rack.brokers
        rack.uses += 1
        if ring[place] == NONE:
            ring[place] = seat.place
        if ring[place] != seat.place:
            return False
    are_circles = True
    for i in range(len(racks)):
        are_circles = are_circles and is_circle(ring, racks[i].first, racks[i].brokers, part.is_first == 1)
    return are_circles


@kernel
def check_placements(replicas: Ints, racks: Ints, placements: Records, rings: Rings) -> None:
    """Count the rounds of each placement, and the rounds that can have been drawn.

    replicas, racks: int64[replicas], numbers of brokers and their racks. placements: SHOWN_PLACEMENT[placements].
    """
    brokers, part = len(rings.broker_rings), rings.round[0]
    for i in range(len(placements)):
        placement, begin = placements[i], 0
        while begin < placement.partitions:
            part.replication_factor, part.is_first = placement.replication_factor, 1 if begin == 0 else 0
            part.first = placement.first + begin * placement.replication_factor
            part.partitions = min(brokers, placement.partitions - begin)
            if len(rings.rack_ring) == 1:
                is_possible = is_ring(replicas, part, rings.broker_rings)
            else:
                is_possible = is_ring(racks, part, rings.rack_ring) and are_rings(replicas, part, rings)
            placement.rounds += 1
            placement.possible += 1 if is_possible else 0
            begin += brokers


def can_be_checked(factor: Ints, brokers: Brokers) -> Bools:
    """Whether placements with these replication factors can be checked: bool[placements].

    They cannot be checked if brokers are fenced, because fenced brokers have lists of their own. Nor can they if a rack
    has several replicas of a partition, or if a round is so short that a rack may be left out of the whole round (twice
    the racks that a partition leaves out). The list of such a rack then seems to be used up, because the marks by which
    lists recognise a partition begin anew in each round. factor: int64[placements], replicas of each partition.
    """
    racks = len(brokers.draw_order)
    in_time = 2 * (racks - factor) + 1 < len(brokers.table)
    return bool(brokers.table["unfenced"].all()) & ((racks == 1) | ((factor <= racks) & in_time))


def checked_placements(replicas: Ints, first: Ints, partitions: Ints, factor: Ints, brokers: Brokers) -> Records:
    """Placements with their rounds and those that can have been drawn: SHOWN_PLACEMENT[placements].

    replicas: int64[replicas], numbers of brokers. first, partitions, factor: int64[placements], where the replicas of a
    placement begin, its partitions, and the replicas of each. `can_be_checked` has to hold for all of them.
    """
    placements = np.zeros(len(first), SHOWN_PLACEMENT)
    placements["first"], placements["partitions"] = first, partitions
    placements["replication_factor"] = factor
    rings = rings_of(brokers)
    racks = rings.seats["rack"][replicas] if len(rings.seats) else replicas
    check_placements(read_only(replicas), read_only(racks), placements, rings)
    return placements


def fits_fewer_brokers(replicas: Ints, factor: int, brokers: Brokers) -> bool:
    """Whether a placement leaves out brokers, and the placer can have drawn it from the others alone.

    So it draws while brokers are fenced: it takes them only for partitions that have more replicas than there are
    unfenced brokers (StripedReplicaPlacer.RackList.place, Kafka 4.3.1). replicas: int64[replicas], numbers of brokers,
    partition by partition.
    """
    used, numbers = np.unique(replicas, return_inverse=True)
    if len(used) == len(brokers.table):
        return False
    others, one = these_brokers(brokers, used), np.zeros(1, np.int64)
    if not can_be_checked(one + factor, others).all():
        return False
    (checked,) = checked_placements(numbers.astype(np.int64), one, one + len(replicas) // factor, one + factor, others)
    return bool(checked["possible"] == checked["rounds"])
