"""Spans of the arena as Arrow arrays."""

from __future__ import annotations

import base64

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.wire.reference import lay_in_arena
from udfs.wire.spans import gather_bytes, gather_strings, intern, uuid_strings

ill_formed = st.sampled_from(
    [b"\xe2\x82", b"\xf0\x9f\x98", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf4\x90", b"\xff", b"\x80"]
)
pieces = st.lists(st.text(max_size=5).map(str.encode) | ill_formed | st.binary(max_size=4), max_size=4).map(b"".join)
spans = st.lists(st.none() | pieces, max_size=20)


def laid_out(wanted: list[bytes | None]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    arena, starts, ends = lay_in_arena([span or b"" for span in wanted], b"\xee")
    return arena, starts, np.where([span is None for span in wanted], -1, ends - starts)


@given(wanted=spans)
def test_text_is_what_python_makes_of_it_with_ill_formed_bytes_replaced(wanted: list[bytes | None]) -> None:
    found = gather_strings(*laid_out(wanted))
    found.validate(full=True)
    assert found.to_pylist() == [span if span is None else span.decode("utf-8", "replace") for span in wanted]


@given(wanted=spans)
def test_bytes_are_as_they_were(wanted: list[bytes | None]) -> None:
    found = gather_bytes(*laid_out(wanted))
    found.validate(full=True)
    assert found.to_pylist() == wanted


@given(ids=st.lists(st.none() | st.binary(min_size=16, max_size=16), max_size=20))
def test_a_topic_id_is_written_as_kafka_does(ids: list[bytes | None]) -> None:
    found = uuid_strings(*laid_out(ids))
    found.validate(full=True)
    assert found.to_pylist() == [value and base64.urlsafe_b64encode(value).decode().rstrip("=") for value in ids]


@given(wanted=spans)
def test_equal_spans_share_a_code_in_order_of_occurrence(wanted: list[bytes | None]) -> None:
    codes, first_index = intern(*laid_out(wanted))
    distinct = list(dict.fromkeys(span for span in wanted if span is not None))
    assert codes.tolist() == [-1 if span is None else distinct.index(span) for span in wanted]
    assert first_index.tolist() == [wanted.index(span) for span in distinct]


@pytest.mark.parametrize("make", [gather_strings, gather_bytes, uuid_strings, intern])
@pytest.mark.parametrize(("start", "length"), [(-1, 1), (9, 2), (2**62, 16), (0, 2**62)])
def test_a_span_that_is_not_in_the_arena_is_refused(make: object, start: int, length: int) -> None:
    with pytest.raises(ValueError, match=rf"span 0 is {length} bytes at {start} of an arena of 10"):
        make(np.zeros(10, np.uint8), np.array([start]), np.array([length]))  # type: ignore[operator]
