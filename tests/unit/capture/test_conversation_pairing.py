"""Which response answers which request."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.capture.conversations import Connection, Segment, answers, asks, produce, request, response, talk

JUST_BEFORE_WRAP = Connection(first=(2**32 - 9, 2**32 - 3))


def statuses(found: object) -> list[tuple[int, str]]:
    return [(exchange.correlation_id, exchange.status) for exchange in found.exchanges]  # type: ignore[attr-defined]


def test_size_and_content_in_separate_segments_are_one_frame() -> None:
    asked, answered = request(1), response(1)
    found = talk(asks(asked[:4]), asks(asked[4:]), answers(answered[:4]), answers(answered[4:]))
    assert found.pairs() == [(asked[4:], answered[4:])]


def test_bytes_that_come_one_by_one_are_the_same_frames() -> None:
    asked, answered = request(1) + request(2), response(1) + response(2)
    found = talk(
        *(asks(asked[i : i + 1]) for i in range(len(asked))),
        *(answers(answered[i : i + 1]) for i in range(len(answered))),
    )
    assert found.pairs() == [(request(i)[4:], response(i)[4:]) for i in (1, 2)]


def test_several_frames_in_one_segment_are_separate_frames() -> None:
    found = talk(asks(b"".join(map(request, range(5)))), answers(b"".join(map(response, range(5)))))
    assert statuses(found) == [(i, "answered") for i in range(5)]


def test_an_exchange_is_dated_by_the_packets_that_began_and_completed_each_frame() -> None:
    asked, answered = request(1), response(1)
    found = talk(asks(asked[:4]), asks(asked[4:]), answers(answered[:4]), answers(answered[4:]))
    start = 1_700_000_000_000_000_000
    milliseconds = [
        (time - start) // 1_000_000 for time in found.exchanges[0].times[0:2] + found.exchanges[0].times[4:6]
    ]
    assert milliseconds == [2, 3, 4, 5]
    assert found.exchanges[0].times[2:4] + found.exchanges[0].times[6:8] == (2, 3, 4, 5)


def test_a_retransmission_does_not_change_when_a_frame_was_complete() -> None:
    asked = request(1)
    found = talk(asks(asked[:4]), asks(asked[4:]), asks(asked, at=0), answers(response(1)))
    assert found.exchanges[0].times[2:4] == (2, 3)
    assert found.only["repeated_bytes"] == len(asked)


@pytest.mark.parametrize("version", [0, 2, 3, 8, 9, 11])
def test_produce_with_acks_0_gets_no_response(version: int) -> None:
    flexible = version >= 9
    asked = produce(2, 0, version=version)
    if flexible:  # header v2 and a compact string
        asked = request(2, b"\0" + b"\0" + b"\0\0" + bytes(8), key=0, version=version)
    found = talk(asks(request(1)), asks(asked), asks(request(3)), answers(response(1)), answers(response(3)))
    assert statuses(found) == [(1, "answered"), (2, "no_response"), (3, "answered")]


def test_produce_with_acks_is_unanswered_without_its_response() -> None:
    found = talk(asks(produce(1, -1)), asks(request(2)), answers(response(2)))
    assert statuses(found) == [(1, "unanswered"), (2, "answered")]


def test_a_response_without_a_request_is_an_orphan() -> None:
    found = talk(answers(response(41) + response(42)), asks(request(43)), answers(response(43)), is_opened=False)
    assert statuses(found) == [(42, "orphan"), (41, "orphan"), (43, "answered")]
    assert [exchange.number for exchange in found.exchanges] == [-2, -1, 0]
    assert found.only["orphan_responses"] == 2


def test_a_response_ends_the_wait_of_all_requests_before_its_own() -> None:
    found = talk(
        asks(b"".join(map(request, range(4)))), answers(response(2)), answers(response(1)), answers(response(3))
    )
    assert statuses(found) == [(1, "orphan"), (0, "unanswered"), (1, "unanswered"), (2, "answered"), (3, "answered")]


def test_a_response_answers_no_request_that_was_sent_after_it() -> None:
    """A client that gives every request the same correlation id, captured from the middle on."""
    found = talk(
        asks(request(0)), answers(response(0, b"one")), answers(response(0, b"two")), asks(request(0, b"later"))
    )
    assert found.pairs()[1:] == [(request(0)[4:], response(0, b"one")[4:]), (request(0, b"later")[4:], None)]
    assert found.exchanges[0].status == "orphan"


@pytest.mark.parametrize("rows", [1, 3, 50])
def test_a_response_waits_for_a_request_of_which_a_part_is_lost_or_late(rows: int) -> None:
    """A gap counts as one only when much has come after it, or when the connection has ended."""
    asked = request(1, bytes(90))
    lost = [asks(asked[:50]), asks(asked[50:80], is_lost=True), asks(asked[80:]), answers(response(1))]
    late = [asks(asked[:50]), asks(asked[80:], at=80), answers(response(1)), asks(asked[50:80], at=50)]
    for segments in (lost, late):
        found = talk(
            asks(request(0)),
            answers(response(0)),
            *(moved(segment, len(request(0))) for segment in segments),
            rows=rows,
        )
        assert statuses(found) == [(0, "answered"), (1, "answered")]


def moved(segment: Segment, by: int) -> Segment:
    return segment if segment.at is None else replace(segment, at=segment.at + by)


def test_one_correlation_id_may_be_used_again() -> None:
    exchange = [s for i in range(5) for s in (asks(request(0, bytes([i]))), answers(response(0, bytes([i]))))]
    found = talk(*exchange)
    assert found.pairs() == [(request(0, bytes([i]))[4:], response(0, bytes([i]))[4:]) for i in range(5)]


@pytest.mark.parametrize("correlation_id", [-1, -(2**31), 2**31 - 1])
def test_any_correlation_id_is_matched(correlation_id: int) -> None:
    found = talk(asks(request(correlation_id)), answers(response(correlation_id)))
    assert statuses(found) == [(correlation_id, "answered")]


def test_sequence_numbers_wrap_around() -> None:
    segments = [s for i in range(20) for s in (asks(request(i)), answers(response(i)))]
    found = talk(*segments, connection=JUST_BEFORE_WRAP)
    assert statuses(found) == [(i, "answered") for i in range(20)]
    assert found.losses == []
