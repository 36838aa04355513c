"""KRaft's placement of replicas: org.apache.kafka.metadata.placement.StripedReplicaPlacer (kafka-metadata 4.3.1).

It does not consider how many replicas brokers already have, nor which partitions a topic already has.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from schemas.wire.errors import INVALID_REPLICATION_FACTOR
from udfs.columns.arrays import Ints, Record, Records
from udfs.columns.records import int_fields
from udfs.kernels.kernel import kernel
from udfs.replay.partition_limits.placement.brokers import Brokers
from udfs.replay.partition_limits.placement.java_random import next_int, shuffle_as_java

NO_BROKER = -1

BROKER_LIST = int_fields(
    "first",  # place in Stripes.brokers
    "size",
    "index",  # how many brokers were given out in this epoch
    "offset",
    "epoch",
)
"""Kafka's BrokerList: the unfenced or the fenced brokers of a rack."""

RACK_LIST = int_fields("epoch", "offset", "unfenced")
"""What Kafka's RackList keeps besides its racks; unfenced: how many brokers are."""


class Stripes(NamedTuple):
    """Kafka's RackList. It is made anew for every topic; only its memory is kept.

    racks: int64[racks], in the order in which they are visited. brokers: int64[brokers], list by list.
    lists: BROKER_LIST[2 * racks], of each rack its unfenced brokers, then its fenced ones.
    state: RACK_LIST[1]. random: GENERATOR[1].
    """

    racks: Ints
    brokers: Ints
    lists: Records
    state: Records
    random: Records


def new_stripes(brokers: Brokers, random: Records) -> Stripes:
    """Memory for the placer's work. random: GENERATOR[1], from which it draws."""
    racks = len(brokers.draw_order)
    return Stripes(
        racks=np.zeros(racks, np.int64),
        brokers=np.zeros(len(brokers.table), np.int64),
        lists=np.zeros(2 * racks, BROKER_LIST),
        state=np.zeros(1, RACK_LIST),
        random=random,
    )


@kernel
def list_brokers(brokers: Brokers, stripes: Stripes) -> None:
    """Fill the lists with the brokers in ascending order."""
    listed, unfenced = 0, 0
    for number in range(len(stripes.lists)):
        broker_list = stripes.lists[number]
        broker_list.first, broker_list.index, broker_list.offset, broker_list.epoch = listed, 0, 0, 0
        for i in range(len(brokers.table)):
            broker = brokers.table[i]
            if 2 * broker.rack + 1 - broker.unfenced == number:
                stripes.brokers[listed] = i
                listed += 1
                unfenced += broker.unfenced
        broker_list.size = listed - broker_list.first
    stripes.state[0].unfenced = unfenced


@kernel
def start_stripes(brokers: Brokers, stripes: Stripes) -> None:
    """`new RackList`: draw where each list, and the round of the racks, begins."""
    list_brokers(brokers, stripes)
    rng, state = stripes.random[0], stripes.state[0]
    for drawn in range(len(brokers.draw_order)):
        rack = brokers.draw_order[drawn]
        for number in (2 * rack + 1, 2 * rack):
            broker_list = stripes.lists[number]
            if broker_list.size:
                broker_list.offset = next_int(rng, broker_list.size)
    for rack in range(len(stripes.racks)):
        stripes.racks[rack] = rack
    state.epoch = 0
    state.offset = next_int(rng, len(stripes.racks))


@kernel
def next_in_list(stripes: Stripes, number: int) -> int:
    """BrokerList.next: the list's next broker in this epoch, NO_BROKER when all have been given out."""
    broker_list, epoch = stripes.lists[number], stripes.state[0].epoch
    if broker_list.size == 0:
        return NO_BROKER
    if broker_list.epoch != epoch:
        broker_list.epoch, broker_list.index = epoch, 0
        broker_list.offset = (broker_list.offset + 1) % broker_list.size
    if broker_list.index >= broker_list.size:
        return NO_BROKER
    broker_list.index += 1
    return stripes.brokers[broker_list.first + (broker_list.index - 1 + broker_list.offset) % broker_list.size]


@kernel
def next_in_rack(stripes: Stripes, rack: int) -> int:
    """Rack.next: unfenced brokers before fenced ones."""
    unfenced = next_in_list(stripes, 2 * rack)
    return unfenced if unfenced >= 0 else next_in_list(stripes, 2 * rack + 1)


@kernel
def shuffle_stripes(brokers: Brokers, stripes: Stripes) -> None:
    """RackList.shuffle."""
    rng = stripes.random[0]
    shuffle_as_java(rng, stripes.racks, 0, len(stripes.racks))
    for drawn in range(len(brokers.draw_order)):
        rack = brokers.draw_order[drawn]
        for number in (2 * rack + 1, 2 * rack):
            shuffle_as_java(rng, stripes.brokers, stripes.lists[number].first, stripes.lists[number].size)


@kernel
def place_leader(stripes: Stripes, slots: Ints, slot: int) -> int:
    """Put the leader on an unfenced broker of the first rack that has one; returns the index of that rack.

    slots: int64[slots], of which slots[slot] is written.
    """
    place = stripes.state[0].offset
    slots[slot] = next_in_list(stripes, 2 * stripes.racks[place])
    while slots[slot] < 0:
        place = (place + 1) % len(stripes.racks)
        slots[slot] = next_in_list(stripes, 2 * stripes.racks[place])
    return place


@kernel
def place_partition(brokers: Brokers, stripes: Stripes, factor: int, slots: Ints, slot: int) -> None:
    """RackList.place: write the brokers of one partition's replicas into slots[slot : slot + factor]."""
    state, racks = stripes.state[0], len(stripes.racks)
    if state.epoch == state.unfenced and state.unfenced > 1:
        shuffle_stripes(brokers, stripes)
        state.epoch = 0
    if state.offset == racks:
        state.offset = 0
    rack_of_leader = place_leader(stripes, slots, slot)
    place = state.offset
    for replica in range(1, factor):
        broker = NO_BROKER
        while broker < 0:
            if place == rack_of_leader:
                rack_of_leader = -1  # the leader's rack is left out once
            else:
                broker = next_in_rack(stripes, stripes.racks[place])
            place = (place + 1) % racks
        slots[slot + replica] = broker
    state.epoch += 1
    state.offset += 1


@kernel
def place_striped(brokers: Brokers, stripes: Stripes, placement: Record, slots: Ints) -> int:
    """StripedReplicaPlacer.place: write the numbers of brokers into the placement's slots. Returns Kafka's error code.

    placement: PLACEMENT; its first partition, start and limit do not matter here. slots: int64[slots].
    """
    factor = placement.replication_factor
    if factor <= 0 or factor > len(brokers.table):
        return INVALID_REPLICATION_FACTOR
    start_stripes(brokers, stripes)
    if stripes.state[0].unfenced == 0:
        return INVALID_REPLICATION_FACTOR
    for partition in range(placement.partitions):
        place_partition(brokers, stripes, factor, slots, placement.slot + partition * factor)
    return 0
