"""KRaft's placement of replicas: org.apache.kafka.metadata.placement.StripedReplicaPlacer (kafka-metadata 4.3.1).

It leaves out of account how many replicas brokers have already, and which partitions a topic has.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from schemas.wire.errors import INVALID_REPLICATION_FACTOR
from udfs.columns.arrays import Ints
from udfs.kernels.kernel import kernel
from udfs.replay.partition_limits.placement.brokers import Brokers
from udfs.replay.partition_limits.placement.java_random import next_int, shuffle

EPOCH, OFFSET, UNFENCED = range(3)


class Stripes(NamedTuple):
    """The placer's RackList. List 2 * rack has a rack's unfenced brokers, the next one its fenced ones."""

    racks: Ints  # rack numbers in the order in which they are gone through
    brokers: Ints  # brokers list by list
    first: Ints  # int64[2 * racks + 1]: where a list is in `brokers`
    given: Ints  # int64[2 * racks]: BrokerList's index, offset and epoch
    offset: Ints
    epoch: Ints
    at: Ints  # EPOCH, OFFSET, UNFENCED: how many brokers are unfenced


def stripes_for(brokers: Brokers) -> Stripes:
    """Room for the placer's work."""
    racks = len(brokers.draw_order)
    sizes = (racks, len(brokers.rack), 2 * racks + 1, 2 * racks, 2 * racks, 2 * racks, 3)
    return Stripes(*(np.zeros(size, np.int64) for size in sizes))


@kernel
def list_brokers(brokers: Brokers, stripes: Stripes) -> None:
    """Fill the lists with the brokers, ascending."""
    listed = 0
    stripes.at[UNFENCED] = 0
    for number in range(len(stripes.epoch)):
        stripes.first[number] = listed
        for broker in range(len(brokers.rack)):
            if 2 * brokers.rack[broker] + 1 - brokers.unfenced[broker] == number:
                stripes.brokers[listed] = broker
                listed += 1
                stripes.at[UNFENCED] += brokers.unfenced[broker]
        stripes.given[number] = stripes.offset[number] = stripes.epoch[number] = 0
    stripes.first[len(stripes.epoch)] = listed


@kernel
def start_stripes(brokers: Brokers, stripes: Stripes, rng: Ints) -> None:
    """new RackList: draw where each list, and the round of racks, begins."""
    list_brokers(brokers, stripes)
    for drawn in range(len(brokers.draw_order)):
        rack = brokers.draw_order[drawn]
        for number in (2 * rack + 1, 2 * rack):
            size = stripes.first[number + 1] - stripes.first[number]
            if size:
                stripes.offset[number] = next_int(rng, size)
    for rack in range(len(stripes.racks)):
        stripes.racks[rack] = rack
    stripes.at[EPOCH] = 0
    stripes.at[OFFSET] = next_int(rng, len(stripes.racks))


@kernel
def next_broker(stripes: Stripes, number: int) -> int:
    """BrokerList.next: the list's next broker in this epoch, -1 when it is through."""
    first, size = stripes.first[number], stripes.first[number + 1] - stripes.first[number]
    if size == 0:
        return -1
    if stripes.epoch[number] != stripes.at[EPOCH]:
        stripes.epoch[number] = stripes.at[EPOCH]
        stripes.given[number] = 0
        stripes.offset[number] = (stripes.offset[number] + 1) % size
    if stripes.given[number] >= size:
        return -1
    stripes.given[number] += 1
    return stripes.brokers[first + (stripes.given[number] - 1 + stripes.offset[number]) % size]


@kernel
def next_of_rack(stripes: Stripes, rack: int) -> int:
    """Rack.next: unfenced brokers before fenced ones."""
    found = next_broker(stripes, 2 * rack)
    return found if found >= 0 else next_broker(stripes, 2 * rack + 1)


@kernel
def shuffle_stripes(brokers: Brokers, stripes: Stripes, rng: Ints) -> None:
    """RackList.shuffle."""
    shuffle(rng, stripes.racks, 0, len(stripes.racks))
    for drawn in range(len(brokers.draw_order)):
        rack = brokers.draw_order[drawn]
        for number in (2 * rack + 1, 2 * rack):
            shuffle(rng, stripes.brokers, stripes.first[number], stripes.first[number + 1] - stripes.first[number])


@kernel
def place_partition(brokers: Brokers, stripes: Stripes, rng: Ints, factor: int, out: Ints, at: int) -> None:
    """RackList.place: one partition's replicas into out[at : at + factor]."""
    racks = len(stripes.racks)
    if stripes.at[EPOCH] == stripes.at[UNFENCED] and stripes.at[UNFENCED] > 1:
        shuffle_stripes(brokers, stripes, rng)
        stripes.at[EPOCH] = 0
    if stripes.at[OFFSET] == racks:
        stripes.at[OFFSET] = 0
    leaders = stripes.at[OFFSET]
    out[at] = next_broker(stripes, 2 * stripes.racks[leaders])
    while out[at] < 0:
        leaders = (leaders + 1) % racks
        out[at] = next_broker(stripes, 2 * stripes.racks[leaders])
    rack = stripes.at[OFFSET]
    for replica in range(1, factor):
        found = -1
        while found < 0:
            if rack == leaders:
                leaders = -1  # the leader's rack is left out once
            else:
                found = next_of_rack(stripes, stripes.racks[rack])
            rack = (rack + 1) % racks
        out[at + replica] = found
    stripes.at[EPOCH] += 1
    stripes.at[OFFSET] += 1


@kernel
def place_striped(
    brokers: Brokers, stripes: Stripes, rng: Ints, partitions: int, factor: int, out: Ints, at: int
) -> int:
    """StripedReplicaPlacer.place: brokers' numbers into out, partition by partition. Returns Kafka's error code."""
    if factor <= 0 or factor > len(brokers.rack):
        return INVALID_REPLICATION_FACTOR
    start_stripes(brokers, stripes, rng)
    if stripes.at[UNFENCED] == 0:
        return INVALID_REPLICATION_FACTOR
    for partition in range(partitions):
        place_partition(brokers, stripes, rng, factor, out, at + partition * factor)
    return 0
