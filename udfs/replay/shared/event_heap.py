"""A queue of events by time: a binary heap on arrays that somebody else keeps."""

from __future__ import annotations

from typing import NamedTuple

from udfs.columns.arrays import Ints
from udfs.kernels.kernel import kernel

INDEX_BITS = 40
INDEX = (1 << INDEX_BITS) - 1
"""The bits of a code by which it says what an event is of; its kind stands above them."""


def kinds(how_many: int) -> tuple[int, ...]:
    """So many kinds of events, as codes have them: `kind | index`. Of one time the first kind comes first."""
    return tuple(kind << INDEX_BITS for kind in range(how_many))


class Heap(NamedTuple):
    """time, code: int64[room], the first `events[0]` are there. Earlier ones come first, of one time the lower code."""

    time: Ints
    code: Ints
    events: Ints


@kernel
def is_before(heap: Heap, a: int, b: int) -> bool:
    """Whether the event at place a comes before the one at b."""
    return bool(heap.time[a] < heap.time[b] or (heap.time[a] == heap.time[b] and heap.code[a] < heap.code[b]))


@kernel
def swap(heap: Heap, a: int, b: int) -> None:
    """Let two events change places."""
    heap.time[a], heap.time[b] = heap.time[b], heap.time[a]
    heap.code[a], heap.code[b] = heap.code[b], heap.code[a]


@kernel
def push(heap: Heap, time: int, code: int) -> None:
    """Add an event; there must be room."""
    at = heap.events[0]
    heap.events[0] += 1
    heap.time[at], heap.code[at] = time, code
    while at > 0 and is_before(heap, at, (at - 1) // 2):
        swap(heap, at, (at - 1) // 2)
        at = (at - 1) // 2


@kernel
def pop(heap: Heap) -> tuple[int, int]:
    """Take the first event (time, code); there must be one."""
    time, code = heap.time[0], heap.code[0]
    heap.events[0] -= 1
    last = heap.events[0]
    heap.time[0], heap.code[0] = heap.time[last], heap.code[last]
    at = 0
    while 2 * at + 1 < last:
        child = 2 * at + 1
        if child + 1 < last and is_before(heap, child + 1, child):
            child += 1
        if not is_before(heap, child, at):
            break
        swap(heap, at, child)
        at = child
    return time, code
