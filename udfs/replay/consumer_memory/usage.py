"""How much memory was in use for how long, by lane, in bounded memory."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints, Record
from udfs.kernels.kernel import kernel
from udfs.replay.shared.histogram import BUCKETS, bucket_of

SLOTS = 256
SLOT_US = 100_000  # width of a slot at first; it doubles whenever they do not reach

USAGE = np.dtype(
    [
        (name, np.int64)
        for name in (
            "start",  # us
            "now",
            "used",  # bytes now
            "most",  # bytes ever
            "waiting",  # of those that wait for memory now
            "slot_us",
        )
    ]
)
"""What is in use in a lane."""


class Spent(NamedTuple):
    """By lane: us[lanes, BUCKETS] spent at so many bytes, and the most of those bytes; [lanes, SLOTS] most bytes and
    waiting ones in each slot.
    """

    time: Ints
    highest: Ints
    most: Ints
    waiting: Ints


def nothing_spent(lanes: int) -> Spent:
    """Before anything was used."""
    return Spent(*(np.zeros((lanes, columns), np.int64) for columns in (BUCKETS, BUCKETS, SLOTS, SLOTS)))


@kernel
def begin(usage: Record, time: int) -> None:
    """Start the clock."""
    usage.start, usage.now, usage.used, usage.most, usage.waiting, usage.slot_us = time, time, 0, 0, 0, SLOT_US


@kernel
def fold(usage: Record, spent: Spent, lane: int) -> None:
    """Make slots twice as wide."""
    for slot in range(SLOTS):
        for values in (spent.most, spent.waiting):
            if 2 * slot < SLOTS:
                values[lane, slot] = max(values[lane, 2 * slot], values[lane, 2 * slot + 1])
            else:
                values[lane, slot] = 0
    usage.slot_us *= 2


@kernel
def note(usage: Record, spent: Spent, lane: int, slot: int) -> None:
    """Have the slot know what is in use now."""
    spent.most[lane, slot] = max(spent.most[lane, slot], usage.used)
    spent.waiting[lane, slot] = max(spent.waiting[lane, slot], usage.waiting)


@kernel
def advance(usage: Record, spent: Spent, lane: int, time: int) -> None:
    """Go on to a time, up to which nothing changes."""
    if time > usage.now:
        bucket = bucket_of(usage.used)
        spent.time[lane, bucket] += time - usage.now
        spent.highest[lane, bucket] = max(spent.highest[lane, bucket], usage.used)
    while (time - usage.start) // usage.slot_us >= SLOTS:
        fold(usage, spent, lane)
    first = (usage.now - usage.start) // usage.slot_us
    for slot in range(first, (time - usage.start) // usage.slot_us + 1):
        note(usage, spent, lane, slot)
    usage.now = time


@kernel
def use(usage: Record, spent: Spent, lane: int, more: int) -> None:
    """So many bytes more, or less, from now on."""
    usage.used += more
    usage.most = max(usage.most, usage.used)
    note(usage, spent, lane, (usage.now - usage.start) // usage.slot_us)
