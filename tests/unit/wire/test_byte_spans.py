"""Spans of bytes are copied one after the other."""

from __future__ import annotations

import numpy as np

from udfs.columns.arrays import stretch_edges
from udfs.wire.byte_spans import gather_spans


def test_spans_come_in_the_order_given_and_an_empty_one_may_begin_anywhere() -> None:
    starts, lengths = np.array([4, -1, 0, 3]), [2, 0, 3, 1]
    assert gather_spans(np.frombuffer(b"abcdef", np.uint8), starts, stretch_edges(lengths)).tobytes() == b"efabcd"


def test_no_spans_are_no_bytes() -> None:
    assert gather_spans(np.zeros(0, np.uint8), np.zeros(0, np.int64), stretch_edges([])).tobytes() == b""
