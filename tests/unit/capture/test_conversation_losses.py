"""Gaps, cuts and foreign bytes cost no more than they must, and all that they cost is reported."""

from __future__ import annotations

import pytest

from tests.unit.capture.conversations import Segment, accounted, answers, asks, frame, request, response, talk

BODY = bytes(range(256)) * 40
SIZE_BOMB = bytes.fromhex("15030300") + bytes(12)
LONG = request(2, BODY)


def in_pieces(payload: bytes, most: int, lost: int) -> list[Segment]:
    """A request stream in segments of `most` bytes. Segment number `lost` is not captured."""
    return [asks(payload[at : at + most], is_lost=at // most == lost) for at in range(0, len(payload), most)]


def test_a_gap_inside_a_frame_costs_that_frame_only() -> None:
    found = talk(
        asks(request(1)), *in_pieces(LONG, 1000, 3), asks(request(3)), answers(b"".join(map(response, (1, 2, 3))))
    )
    assert found.answered() == [1, 2, 3]
    assert [exchange.request_missing for exchange in found.exchanges] == [0, 1000, 0]
    assert found.exchanges[1].request == LONG[4:3000]
    assert (found.losses, found.only["missing_bytes"]) == ([], 1000)


def test_a_gap_that_hides_a_size_costs_the_bytes_up_to_the_next_recognised_frame() -> None:
    tail = BODY[:50]
    found = talk(
        asks(request(1)), asks(request(2)[:10], is_lost=True), asks(request(2)[10:] + tail), asks(request(3)),
        answers(response(1)), answers(response(3)),
    )  # fmt: skip
    assert found.answered() == [1, 3]
    assert found.reasons() == [(len(request(2)) - 10 + len(tail), "behind_gap")]


def test_after_a_lost_response_segment_reading_goes_on_at_the_next_response_to_an_open_request() -> None:
    found = talk(
        asks(b"".join(map(request, (1, 2, 3)))),
        answers(response(1)), answers(response(2)[:6], is_lost=True), answers(response(2)[6:]), answers(response(3)),
    )  # fmt: skip
    assert found.answered() == [1, 3]
    assert [exchange.status for exchange in found.exchanges] == ["answered", "unanswered", "answered"]
    assert found.reasons() == [(len(response(2)) - 6, "behind_gap")]


def test_a_snaplen_cuts_frames_and_loses_none() -> None:
    segments = []
    for i in range(4):
        segments += [asks(request(i, BODY[:500]), captured=96), answers(response(i, BODY[:700]), captured=96)]
    found = talk(*segments)
    assert found.answered() == [0, 1, 2, 3]
    assert {len(exchange.request or b"") for exchange in found.exchanges} == {92}
    assert found.only["missing_bytes"] == 4 * (len(request(0, BODY[:500])) + len(response(0, BODY[:700])) - 2 * 96)
    assert accounted(found)


def test_a_client_is_known_by_requests_that_a_snaplen_cut() -> None:
    segments = [
        s for i in range(3) for s in (asks(request(i, BODY), captured=64), answers(response(i, BODY), captured=64))
    ]
    found = talk(*segments, is_opened=False)
    assert found.answered() == [0, 1, 2]


@pytest.mark.parametrize("garbage", [SIZE_BOMB, b"\xff" * 33, b"\0\0\0\1abc", frame(b"no header here"), bytes(64)])
def test_garbage_between_requests_is_skipped(garbage: bytes) -> None:
    found = talk(asks(request(1)), asks(garbage), asks(request(2)), answers(response(1)), answers(response(2)))
    assert found.answered() == [1, 2]
    assert found.reasons() == [(len(garbage), "not_a_frame")]
    assert accounted(found)


@pytest.mark.parametrize("garbage", [SIZE_BOMB, b"\xff" * 33, b"\0\0\0\1abc"])
def test_garbage_between_responses_is_skipped(garbage: bytes) -> None:
    found = talk(asks(request(1) + request(2)), answers(response(1)), answers(garbage), answers(response(2)))
    assert found.answered() == [1, 2]
    assert found.reasons() == [(len(garbage), "not_a_frame")]


def test_a_capture_that_starts_within_a_frame_finds_the_next() -> None:
    found = talk(asks(LONG[5000:]), asks(request(3)), answers(response(2)[7:] + response(3)), is_opened=False)
    assert found.answered() == [3]
    assert found.reasons() == [(len(LONG) - 5000, "before_first_frame"), (len(response(2)) - 7, "before_first_frame")]


def test_what_the_capture_cuts_off_at_the_end_is_reported() -> None:
    found = talk(asks(request(1)), answers(response(1)), asks(request(2)[:3]), answers(response(2)[:2]))
    assert found.reasons() == [(3, "cut_at_end"), (2, "cut_at_end")]
    assert accounted(found)


def test_the_captured_part_of_a_frame_that_never_ends_is_kept() -> None:
    found = talk(asks(request(1)), answers(response(1)), asks(LONG[:3000]))
    assert found.exchanges[1].request == LONG[4:3000]
    assert found.exchanges[1].request_missing == len(LONG) - 3000


def test_reordered_segments_are_put_in_order() -> None:
    first, second, third = request(1), request(2), request(3)
    found = talk(
        asks(third, at=len(first + second)), asks(second, at=len(first)), asks(first, at=0),
        answers(b"".join(map(response, (1, 2, 3)))),
    )  # fmt: skip
    assert found.answered() == [1, 2, 3]
    assert accounted(found)


def test_one_segment_from_far_away_is_noise() -> None:
    noise = asks(b"noise from another life", at=1 << 30)
    found = talk(asks(request(1)), noise, asks(request(2), at=len(request(1))), answers(response(1) + response(2)))
    assert found.answered() == [1, 2]
    assert found.only["late_bytes"] == len(noise.payload)


def test_two_neighbours_from_far_away_show_that_the_capture_was_interrupted() -> None:
    far = 1 << 30
    later = [asks(request(i), at=far + (i - 5) * len(request(5))) for i in (5, 6, 7)]
    found = talk(asks(request(1)), answers(response(1)), *later, answers(response(6) + response(7)))
    assert found.answered() == [1, 6, 7]
    assert found.only["late_bytes"] == len(request(5))
    assert accounted(found)


def test_bytes_from_before_the_start_are_late() -> None:
    found = talk(asks(request(2), at=len(request(1))), asks(request(1), at=0), answers(response(2)), is_opened=False)
    assert found.answered() == [2]
    assert found.only["late_bytes"] == len(request(1))
