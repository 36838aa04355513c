"""A map from integers to integers for kernels, by open addressing. No key is ever removed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints
from udfs.kernels.kernel import kernel

ABSENT = -1
MIX = -7046029254386353131  # of splitmix64, as int64


class IntMap(NamedTuple):
    """keys, values: int64[power of two]; a place with the value ABSENT is empty. used: int64[1], how many are not."""

    keys: Ints
    values: Ints
    used: Ints


def new_map(room: int = 64) -> IntMap:
    """An empty map."""
    return IntMap(np.zeros(room, np.int64), np.full(room, ABSENT), np.zeros(1, np.int64))


@kernel
def place_of_key(known: IntMap, key: int) -> int:
    """Where a key is, or the empty place where it would go."""
    mask = len(known.keys) - 1
    place = ((key * MIX) >> 24) & mask
    while known.values[place] != ABSENT and known.keys[place] != key:
        place = (place + 1) & mask
    return place


@kernel
def put_key(known: IntMap, key: int, value: int) -> None:
    """Set a key's value, which is not negative; there has to be room."""
    place = place_of_key(known, key)
    known.used[0] += known.values[place] == ABSENT
    known.keys[place], known.values[place] = key, value


@kernel
def copy_into(known: IntMap, larger: IntMap) -> None:
    """Put all of one map into another."""
    for place in range(len(known.keys)):
        if known.values[place] != ABSENT:
            put_key(larger, known.keys[place], known.values[place])


def with_room_for(known: IntMap, more: int) -> IntMap:
    """The same map, with room for `more` further keys, at most half full."""
    room = len(known.keys)
    while room < 2 * (int(known.used[0]) + more):
        room *= 2
    if room == len(known.keys):
        return known
    larger = new_map(room)
    copy_into(known, larger)
    return larger
