"""Placement that leaves out full brokers, as KIP-578 proposes: AdminUtils.assignReplicasToBrokers with limited room.

Without a limit it is the method of kafka-server-common 4.0. With a limit it follows the only code of the proposal,
apache/kafka pull request 8499 at cc0f6b60568, which was never merged.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints, Record, Records
from udfs.columns.records import int_fields
from udfs.kernels.kernel import kernel
from udfs.replay.partition_limits.placement.brokers import Brokers
from udfs.replay.partition_limits.placement.java_random import next_int

CANDIDATE = int_fields(
    "room",  # replicas that the broker may still get
    "is_listed",  # 1: it is in Arrangement.listed
    "newest_mark",  # the mark of the newest partition that has a replica there
)
"""A broker while replicas are placed."""

RACK_TURN = int_fields("newest_mark", "next_broker")
"""A rack while replicas are placed; next_broker: where the search for its next broker with room begins."""

ARRANGED = int_fields(
    "brokers",  # how many are listed
    "racks",  # how many racks they are in
    "newest_mark",  # of the newest partition
    "leader",  # the index in Arrangement.listed of that partition's leader
    "probe",  # how far from the leader's neighbour the search for its next replica begins
)
"""The state of the placer."""


class Arrangement(NamedTuple):
    """The brokers that have room, alternated by rack. It is kept from placement to placement.

    listed: int64[brokers], of which the first `brokers` are in use; it is searched by itself. candidates:
    CANDIDATE[brokers]. racks: RACK_TURN[racks]. state: ARRANGED[1]. random: GENERATOR[1].
    """

    listed: Ints
    candidates: Records
    racks: Records
    state: Records
    random: Records


def new_arrangement(brokers: Brokers, random: Records) -> Arrangement:
    """Memory for the placer's work. random: GENERATOR[1], from which it draws."""
    return Arrangement(
        listed=np.zeros(len(brokers.table), np.int64),
        candidates=np.zeros(len(brokers.table), CANDIDATE),
        racks=np.zeros(len(brokers.draw_order), RACK_TURN),
        state=np.zeros(1, ARRANGED),
        random=random,
    )


@kernel
def has_room_in(brokers: Brokers, arrangement: Arrangement, broker: int, rack: int) -> bool:
    """Whether the broker is in the rack and has room."""
    return bool(arrangement.candidates[broker].room > 0 and brokers.table[broker].alternated_rack == rack)


@kernel
def count_candidates(brokers: Brokers, arrangement: Arrangement) -> None:
    """Count the brokers with room and their racks, and let each rack's turn begin with its first broker."""
    state = arrangement.state[0]
    state.brokers, state.racks = 0, 0
    for rack in range(len(arrangement.racks)):
        arrangement.racks[rack].next_broker = 0
        in_rack = 0
        for broker in range(len(arrangement.candidates)):
            in_rack += 1 if has_room_in(brokers, arrangement, broker, rack) else 0
        state.brokers += in_rack
        state.racks += 1 if in_rack else 0


@kernel
def alternate_racks(brokers: Brokers, arrangement: Arrangement) -> None:
    """AdminUtils.getRackAlternatedBrokerList over the brokers with room: one of each rack in turn."""
    count_candidates(brokers, arrangement)
    count, listed = len(arrangement.candidates), 0
    while listed < arrangement.state[0].brokers:
        for rack in range(len(arrangement.racks)):
            broker = arrangement.racks[rack].next_broker
            while broker < count and not has_room_in(brokers, arrangement, broker, rack):
                broker += 1
            arrangement.racks[rack].next_broker = broker + 1
            if broker < count:
                arrangement.listed[listed] = broker
                listed += 1
    for broker in range(count):
        candidate = arrangement.candidates[broker]
        candidate.is_listed = 1 if candidate.room > 0 else 0


@kernel
def place_replica(brokers: Brokers, arrangement: Arrangement, broker: int) -> bool:
    """Put a replica of the newest partition on the broker. Returns whether the broker is full then."""
    candidate, mark = arrangement.candidates[broker], arrangement.state[0].newest_mark
    candidate.newest_mark = mark
    arrangement.racks[brokers.table[broker].alternated_rack].newest_mark = mark
    candidate.room -= 1
    return candidate.room == 0


@kernel
def next_in_circle(place: int, places: int) -> int:
    """The next of `places` places in a circle, without a division, which would take most of a placement's time."""
    return place + 1 if place + 1 < places else 0


@kernel
def assign_partition(brokers: Brokers, arrangement: Arrangement, factor: int, slots: Ints, slot: int) -> bool:
    """Assign one partition's replicas: the leader to the broker whose turn it is, the others to the next allowed
    brokers.

    slots: int64[slots], of which slots[slot : slot + factor] is written. Returns whether some broker is full then.
    """
    state = arrangement.state[0]
    state.newest_mark += 1
    mark, n, probe = state.newest_mark, state.brokers, state.probe
    slots[slot] = arrangement.listed[state.leader]
    some_full = place_replica(brokers, arrangement, slots[slot])
    racks_taken, placed = 1, 1
    while placed < factor:
        place = state.leader + 1 + probe
        broker = arrangement.listed[place if place < n else place - n]
        probe = next_in_circle(probe, n - 1)
        is_new_rack = arrangement.racks[brokers.table[broker].alternated_rack].newest_mark != mark
        is_new_broker = arrangement.candidates[broker].newest_mark != mark
        if (is_new_rack or racks_taken == state.racks) and (is_new_broker or placed == n):
            racks_taken += 1 if is_new_rack else 0
            slots[slot + placed] = broker
            placed += 1
            some_full = place_replica(brokers, arrangement, broker) or some_full
    return some_full


@kernel
def give_room(brokers: Brokers, arrangement: Arrangement, counts: Ints, limit: int) -> None:
    """Note the room of the brokers that are up, and arrange those with room, unless they were the same before.

    counts: int64[brokers], replicas that each broker has.
    """
    has_changed = False
    for broker in range(len(counts)):
        candidate = arrangement.candidates[broker]
        candidate.room = max(0, limit - counts[broker]) if brokers.table[broker].unfenced else 0
        has_changed = has_changed or (candidate.room > 0) != (candidate.is_listed == 1)
    if has_changed:
        alternate_racks(brokers, arrangement)


@kernel
def place_limited(brokers: Brokers, arrangement: Arrangement, placement: Record, counts: Ints, slots: Ints) -> int:
    """Write the numbers of brokers into the placement's slots, with no broker above the limit.

    placement: PLACEMENT. counts: int64[brokers], replicas that each broker has. slots: int64[slots]. Returns how many
    partitions were placed before there was no room for one; all or none of them are to be created.
    """
    give_room(brokers, arrangement, counts, placement.limit)
    state, rng, factor = arrangement.state[0], arrangement.random[0], placement.replication_factor
    n = state.brokers
    if n == 0:
        return 0
    begin = placement.start % n if placement.start >= 0 else next_int(rng, n)
    shift = placement.start % n if placement.start >= 0 else next_int(rng, n)
    nth = 0
    is_same_list = False
    for i in range(placement.partitions):
        partition = placement.first_partition + i
        if is_same_list:
            state.leader, nth = next_in_circle(state.leader, n), next_in_circle(nth, n)
        else:
            n = state.brokers
            if n < factor:
                return i
            state.leader, nth = (partition + begin) % n, partition % n
        shift += 1 if partition > 0 and nth == 0 else 0
        if nth == 0 or not is_same_list:
            state.probe = shift * state.racks % max(n - 1, 1)
        is_same_list = not assign_partition(brokers, arrangement, factor, slots, placement.slot + i * factor)
        if not is_same_list:
            alternate_racks(brokers, arrangement)
    return placement.partitions
