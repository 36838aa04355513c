"""Events come out of the heap in the order of their times."""

from __future__ import annotations

import heapq

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from udfs.replay.shared.event_heap import INDEX, Heap, kinds, pop, push


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)) | st.none(), max_size=40))
def test_events_come_out_by_time_then_code(steps: list[tuple[int, int] | None]) -> None:
    heap = Heap(np.zeros(40, np.int64), np.zeros(40, np.int64), np.zeros(1, np.int64))
    expected: list[tuple[int, int]] = []
    for step in steps:
        if step is not None:
            push(heap, *step)
            heapq.heappush(expected, step)
        elif expected:
            assert pop(heap) == heapq.heappop(expected)
    assert heap.events[0] == len(expected)


def test_a_code_tells_the_kind_of_an_event_and_the_number_of_its_subject() -> None:
    first, second, third = kinds(3)
    assert 0 == first < second < third
    for number in (0, 7, second - 1):
        assert [((kind | number) & ~INDEX, (kind | number) & INDEX) for kind in (first, second, third)] == [
            (first, number), (second, number), (third, number),
        ]  # fmt: skip
