"""Searches in rows that are sorted by a key and a time."""

from __future__ import annotations

import numpy as np

from udfs.columns.arrays import Ints, read_only
from udfs.columns.picking import pick_values
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import NEVER
from udfs.kernels.kernel import kernel


def place_behind(keys: Ints, times: Ints, key: Ints, time: Ints) -> Ints:
    """The place after all rows at or before each (key, time): int64[n].

    key, time: int64[n], what is looked for. keys, times: int64[rows], sorted by both; keys are 0 to 2^31.
    """
    ranks = np.unique(times)
    width = len(ranks) + 1
    known = keys * width + np.searchsorted(ranks, times, side="right")
    ranks_sought = key * width + np.searchsorted(ranks, time, side="right")
    return np.searchsorted(known, ranks_sought, side="right")


def place_of_first(keys: Ints, times: Ints, key: Ints, time: Ints) -> Ints:
    """The place of the first row of a key at or after a time, NONE if there is none: int64[n].

    keys, times: int64[rows], sorted by both. key, time: int64[n], what is looked for.
    """
    place = _places(keys, times, key, time)
    return np.where(np.append(keys, NONE)[place] == key, place, NONE)


def place_of_last_before(keys: Ints, times: Ints, key: Ints, time: Ints) -> Ints:
    """The place of the last row of a key before a time, NONE if there is none: int64[n].

    keys, times, key, time: as for `place_of_first`.
    """
    place = _places(keys, times, key, time) - 1
    return np.where(np.append(keys, NONE)[place] == key, place, NONE)


def earliest_from(keys: Ints, times: Ints, events: Ints, key: Ints, time: Ints) -> Ints:
    """The earliest event among the rows of a key at or after a time, NEVER if there is none: int64[n].

    events: int64[rows], the time of each row's event. keys, times, key, time: as for `place_of_first`.
    """
    earliest = np.array(events)
    _make_earliest(read_only(keys), earliest)
    return pick_values(earliest, place_of_first(keys, times, key, time), NEVER)


def _places(keys: Ints, times: Ints, key: Ints, time: Ints) -> Ints:
    places = np.empty(len(key), np.int64)
    _find_places(read_only(keys), read_only(times), read_only(key), read_only(time), places)
    return places


@kernel
def _find_places(keys: Ints, times: Ints, key: Ints, time: Ints, places: Ints) -> None:
    """Find the first row at or after each (key, time); the number of rows if there is none."""
    for i in range(len(key)):
        low, high = 0, len(keys)
        while low < high:
            middle = (low + high) // 2
            if keys[middle] < key[i] or (keys[middle] == key[i] and times[middle] < time[i]):
                low = middle + 1
            else:
                high = middle
        places[i] = low


@kernel
def _make_earliest(keys: Ints, events: Ints) -> None:
    """Replace each row's event by the earliest event of its key from that row on."""
    for row in range(len(keys) - 2, -1, -1):
        if keys[row] == keys[row + 1]:
            events[row] = min(events[row], events[row + 1])
