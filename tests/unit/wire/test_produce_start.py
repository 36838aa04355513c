"""Which Produce requests are answered, and which bytes can be one at all."""

from __future__ import annotations

import pytest

from tests.unit.wire.reference import be, in_arena
from udfs.wire.produce_start import begins_produce, expects_response

FETCH, PRODUCE = 1, 0


@pytest.mark.parametrize(
    ("version", "body", "answered"),
    [
        (2, be("hi", 1, 30000), True),
        (2, be("hi", 0, 30000), False),
        (8, be("hh", -1, 0), False),
        (8, be("h", 3) + b"txn" + be("h", 0), False),
        (8, be("h", 3) + b"txn" + be("h", -1), True),
        (9, b"\0" + be("h", 0), False),
        (9, b"\4txn" + be("h", 0), False),
        (9, b"\4txn" + be("h", 1), True),
        (9, b"\4txn\0", True),  # cut off before acks ends
        (9, b"\x7f", True),
    ],
)
def test_only_a_produce_without_acks_gets_no_response(version: int, body: bytes, answered: bool) -> None:
    arena, start, end = in_arena(body)
    assert expects_response(arena, start, end, PRODUCE, version) == answered
    assert expects_response(arena, start, end, FETCH, version)


TO_ONE_TOPIC = {
    2: be("hii", -1, 30_000, 1) + be("h", 2) + b"t1" + be("i", 0),
    8: be("h", 3) + b"txn" + be("hii", 1, 30_000, 1) + be("h", 2) + b"t1" + be("i", 0),
    9: b"\0" + be("hi", 0, 30_000) + b"\2" + b"\3t1" + b"\1",
    13: b"\0" + be("hi", -1, 30_000) + b"\2" + bytes(range(16)) + b"\1",
}


@pytest.mark.parametrize("version", TO_ONE_TOPIC)
def test_a_produce_request_has_acks_and_a_topic(version: int) -> None:
    arena, start, end = in_arena(TO_ONE_TOPIC[version])
    assert begins_produce(arena, start, end, version, False)


@pytest.mark.parametrize("version", TO_ONE_TOPIC)
def test_bytes_that_a_capture_cuts_off_do_not_count_against_a_produce_request(version: int) -> None:
    arena, start, end = in_arena(TO_ONE_TOPIC[version])
    assert all(begins_produce(arena, start, start + n, version, True) for n in range(end - start))


@pytest.mark.parametrize(
    ("version", "body"),
    [
        (2, be("hii", 2, 30_000, 1) + be("h", 2) + b"t1"),  # acks
        (2, be("hii", 1, 30_000, 0)),  # no topic
        (2, be("hii", 1, 30_000, -1)),
        (2, be("hii", 1, 30_000, 1) + be("h", 0)),  # a topic without a name
        (2, be("hii", 1, 30_000, 1) + be("h", 9) + b"t1"),  # a topic with a name longer than the request
        (2, be("hii", 1, 30_000, 1) + be("h", 2) + b"t\n"),  # a topic with a name that is not text
        (2, be("hi", 1, 30_000)),  # ends before a topic
        (8, be("h", 9) + b"txn"),
        (9, b"\0" + be("hi", 0, 30_000) + b"\xff\xff\xff\xff\xff"),
        (13, b"\0" + be("hi", 0, 30_000) + b"\1"),
    ],
)
def test_a_body_without_possible_acks_and_a_topic_is_of_no_produce_request(version: int, body: bytes) -> None:
    arena, start, end = in_arena(body)
    assert not begins_produce(arena, start, end, version, False)
