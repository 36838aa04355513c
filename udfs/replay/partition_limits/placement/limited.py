"""Placement that skips full brokers, as KIP-578 proposes: AdminUtils.assignReplicasToBrokers with room for replicas.

Without a limit it is that of kafka-server-common 4.0. With one it follows the only code there is of the proposal,
apache/kafka pull request 8499 at cc0f6b60568, which was never merged.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints
from udfs.kernels.kernel import kernel
from udfs.replay.partition_limits.placement.brokers import Brokers
from udfs.replay.partition_limits.placement.java_random import next_int

DRAWN = -1
"""A start that is drawn at random."""


class Arranged(NamedTuple):
    """Working memory: brokers that have room, alternated by rack; it is kept from placement to placement."""

    brokers: Ints  # int64[brokers], of which the first few are in use
    room: Ints  # int64[brokers]: replicas a broker may still get
    listed: Ints  # int64[brokers]: 1 for those in `brokers`
    taken: Ints  # int64[brokers]: the mark of the newest partition that has a replica there
    rack_taken: Ints  # int64[racks], in the same way
    next_of_rack: Ints  # int64[racks]
    at: Ints  # MARK of the newest partition, and how many brokers and RACKS are listed


MARK, LISTED, RACKS = range(3)


def arranged_for(brokers: Brokers) -> Arranged:
    """Room for the placer's work."""
    n, racks = len(brokers.rack), len(brokers.draw_order)
    return Arranged(*(np.zeros(size, np.int64) for size in (n, n, n, n, racks, racks, 3)))


@kernel
def arrange(brokers: Brokers, work: Arranged) -> None:
    """getRackAlternatedBrokerList over the brokers with room: one of each rack in turn."""
    with_room, racks = 0, 0
    for rack in range(len(work.rack_taken)):
        work.next_of_rack[rack] = 0
        here = 0
        for broker in range(len(work.room)):
            here += 1 if work.room[broker] > 0 and brokers.alternated_rack[broker] == rack else 0
        with_room += here
        racks += 1 if here else 0
    listed = 0
    while listed < with_room:
        for rack in range(len(work.rack_taken)):
            broker = work.next_of_rack[rack]
            while broker < len(work.room) and not (work.room[broker] > 0 and brokers.alternated_rack[broker] == rack):
                broker += 1
            work.next_of_rack[rack] = broker + 1
            if broker < len(work.room):
                work.brokers[listed] = broker
                listed += 1
    for broker in range(len(work.room)):
        work.listed[broker] = 1 if work.room[broker] > 0 else 0
    work.at[LISTED], work.at[RACKS] = listed, racks


@kernel
def take(brokers: Brokers, work: Arranged, broker: int, mark: int) -> bool:
    """Put a replica on the broker. Returns whether it is full by that."""
    work.taken[broker] = mark
    work.rack_taken[brokers.alternated_rack[broker]] = mark
    work.room[broker] -= 1
    return work.room[broker] == 0


@kernel
def after(place: int, places: int) -> int:
    """The next of so many places in a circle: a division for each would take most of a placement's time."""
    return place + 1 if place + 1 < places else 0


@kernel
def place_partition(brokers: Brokers, work: Arranged, first: int, probe: int, factor: int, out: Ints, at: int) -> bool:
    """Place a partition's replicas: the leader's on broker `first` of the list, the next, where it may be, `probe`
    brokers behind the one after that. Returns whether a broker is full then.
    """
    work.at[MARK] += 1
    mark, n, racks = work.at[MARK], work.at[LISTED], work.at[RACKS]
    out[at] = work.brokers[first]
    full = take(brokers, work, work.brokers[first], mark)
    racks_taken, placed = 1, 1
    while placed < factor:
        place = first + 1 + probe
        broker = work.brokers[place if place < n else place - n]
        rack = brokers.alternated_rack[broker]
        probe = after(probe, n - 1)
        new_rack = work.rack_taken[rack] != mark
        if (new_rack or racks_taken == racks) and (work.taken[broker] != mark or placed == n):
            racks_taken += 1 if new_rack else 0
            out[at + placed] = broker
            placed += 1
            full = take(brokers, work, broker, mark) or full
    return full


@kernel
def give_room(brokers: Brokers, counts: Ints, limit: int, work: Arranged) -> None:
    """Note what room brokers have that are up, and arrange them unless they are the same as before."""
    changed = False
    for broker in range(len(work.room)):
        work.room[broker] = max(0, limit - counts[broker]) if brokers.unfenced[broker] else 0
        changed = changed or (work.room[broker] > 0) != (work.listed[broker] == 1)
    if changed:
        arrange(brokers, work)


@kernel
def place_limited(
    brokers: Brokers, counts: Ints, limit: int, work: Arranged, rng: Ints, start: int, first_partition: int,
    partitions: int, factor: int, out: Ints, at: int,
) -> int:  # fmt: skip
    """Brokers' numbers into out, partition by partition, no broker above the limit.

    counts: replicas that each broker has. start: fixedStartIndex, or DRAWN. Returns how many partitions were placed
    before there was no room for one; all or none of them are to be created.
    """
    give_room(brokers, counts, limit, work)
    n = work.at[LISTED]
    if n == 0:
        return 0
    begin = start % n if start >= 0 else next_int(rng, n)
    shift = start % n if start >= 0 else next_int(rng, n)
    leader = nth = probe = 0
    is_same_list = False
    for i in range(partitions):
        partition = first_partition + i
        if is_same_list:
            leader, nth = after(leader, n), after(nth, n)
        else:
            n = work.at[LISTED]
            if n < factor:
                return i
            leader, nth = (partition + begin) % n, partition % n
        shift += 1 if partition > 0 and nth == 0 else 0
        if nth == 0 or not is_same_list:
            probe = shift * work.at[RACKS] % max(n - 1, 1)
        is_same_list = not place_partition(brokers, work, leader, probe, factor, out, at + i * factor)
        if not is_same_list:
            arrange(brokers, work)
    return partitions
