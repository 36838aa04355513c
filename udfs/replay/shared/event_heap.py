"""A queue of events by time: a binary heap on arrays that its user provides."""

from __future__ import annotations

from typing import NamedTuple

from udfs.columns.arrays import Ints
from udfs.kernels.kernel import kernel

INDEX_BITS = 40
INDEX = (1 << INDEX_BITS) - 1
"""The bits of a code that have the number of the event's subject, such as a message; the bits above are its kind."""


def kinds(how_many: int) -> tuple[int, ...]:
    """`how_many` kinds of events, for codes `kind | index`. Of events at the same time, the first kind comes first."""
    return tuple(kind << INDEX_BITS for kind in range(how_many))


class Heap(NamedTuple):
    """Events: the earliest is first, and of several at the same time the one with the lowest code.

    time, code: int64[room], of which the first `events[0]` are taken. events: int64[1].
    """

    time: Ints
    code: Ints
    events: Ints


@kernel
def is_event_before(heap: Heap, a: int, b: int) -> bool:
    """Whether the event at index a comes before the one at b."""
    return bool(heap.time[a] < heap.time[b] or (heap.time[a] == heap.time[b] and heap.code[a] < heap.code[b]))


@kernel
def swap(heap: Heap, a: int, b: int) -> None:
    """Swap two events."""
    heap.time[a], heap.time[b] = heap.time[b], heap.time[a]
    heap.code[a], heap.code[b] = heap.code[b], heap.code[a]


@kernel
def push(heap: Heap, time: int, code: int) -> None:
    """Add an event; there must be room."""
    place = heap.events[0]
    heap.events[0] += 1
    heap.time[place], heap.code[place] = time, code
    while place > 0 and is_event_before(heap, place, (place - 1) // 2):
        swap(heap, place, (place - 1) // 2)
        place = (place - 1) // 2


@kernel
def pop(heap: Heap) -> tuple[int, int]:
    """Take the first event (time, code); there must be one."""
    time, code = heap.time[0], heap.code[0]
    heap.events[0] -= 1
    last = heap.events[0]
    heap.time[0], heap.code[0] = heap.time[last], heap.code[last]
    place = 0
    while 2 * place + 1 < last:
        child = 2 * place + 1
        if child + 1 < last and is_event_before(heap, child + 1, child):
            child += 1
        if not is_event_before(heap, child, place):
            break
        swap(heap, place, child)
        place = child
    return time, code
