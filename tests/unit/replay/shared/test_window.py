"""The window of time to which a replay is restricted."""

from __future__ import annotations

from itertools import product

import numpy as np

from udfs.columns.time_units import ALWAYS, NEVER
from udfs.replay.shared.window import WHOLE, Window


def test_a_window_has_its_begin_and_not_its_end() -> None:
    times = np.arange(6)
    for begin, end in product(times.tolist(), times.tolist()):
        assert np.flatnonzero(Window(begin, end).has(times)).tolist() == list(range(begin, end))
    assert WHOLE.has(np.array([ALWAYS, -1, 0, NEVER - 1])).all()


def test_only_the_part_of_a_span_that_is_in_the_window_counts() -> None:
    for begin, end, first, behind in product(range(6), repeat=4):
        expected = len({*range(begin, end)} & {*range(first, behind)})
        assert Window(begin, end).length_within(first, behind) == expected, (begin, end, first, behind)


def test_only_a_window_without_begin_and_end_is_whole() -> None:
    assert [w.is_whole for w in (WHOLE, Window(begin=1), Window(end=1), Window(1, 2))] == [True, False, False, False]
