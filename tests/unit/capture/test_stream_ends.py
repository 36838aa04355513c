"""What a FIN or RST shows: bytes that were never sent are not missing, bytes that were lost before it are."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.capture.conversations import (
    ANSWERS,
    ASKS,
    OPENING,
    Connection,
    Conversation,
    Segment,
    accounted,
    answers,
    asks,
    batch,
    cut,
    frame,
    packets,
    request,
    response,
    talk,
    understand,
)
from tests.unit.capture.packet_builders import ACK, FIN, RST

PROPERTY = settings(derandomize=True, max_examples=150, deadline=None)
BEFORE = {
    ASKS: (asks(request(1)), answers(response(1))),
    ANSWERS: (asks(request(1)), answers(response(1)), asks(request(2))),
}
"""What was sent before the frame within which a side ends the connection."""
LARGE = {ASKS: request(2, bytes(983)), ANSWERS: response(2, bytes(992))}
SENT = 600
SIDES = pytest.mark.parametrize("side", [ASKS, ANSWERS], ids=["request", "response"])


def place_of(side: int, sent: int) -> int:
    """The stream offset after this many bytes of the large frame."""
    return sum(len(segment.payload) for segment in BEFORE[side] if segment.side == side) + sent


def of_last_frame(found: Conversation, side: int) -> tuple[int, int, int]:
    """(captured bytes after the size, missing bytes, bytes never sent) of the large frame."""
    last = found.exchanges[-1]
    if side == ASKS:
        return len(last.request or b""), last.request_missing, last.request_unsent
    return len(last.response or b""), last.response_missing, last.response_unsent


ENDINGS: dict[str, Callable[[int, bytes], list[Segment]]] = {
    "a FIN after the last byte": lambda side, part: [Segment(side, part), Segment(side, flags=FIN | ACK)],
    "a FIN with the last bytes": lambda side, part: [Segment(side, part[:500]), Segment(side, part[500:], FIN | ACK)],
    "a FIN sent twice": lambda side, part: [Segment(side, part), *[Segment(side, flags=FIN | ACK)] * 2],
    "a FIN that overtook data": lambda side, part: [
        Segment(side, part[:500]),
        Segment(side, flags=FIN | ACK, at=place_of(side, len(part))),
        Segment(side, part[500:], at=place_of(side, 500)),
    ],
    "a FIN, and an RST after it": lambda side, part: [
        Segment(side, part),
        Segment(side, flags=FIN | ACK),
        Segment(side, flags=RST, at=place_of(side, len(part) + 1)),
    ],
    "an RST after the last byte": lambda side, part: [Segment(side, part), Segment(side, flags=RST | ACK)],
    "an RST before the last acknowledged bytes": lambda side, part: [
        Segment(side, part), Segment(side, flags=RST, at=place_of(side, 100))
    ],
    "an RST of the other side, as of a client that closes before it has read a response": lambda side, part: [
        Segment(1 - side, flags=FIN | ACK), Segment(side, part), Segment(1 - side, flags=RST)
    ],
}  # fmt: skip


@SIDES
@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
def test_what_a_side_did_not_send_before_it_ended_the_connection_is_not_missing(
    side: int, ending: Callable[[int, bytes], list[Segment]]
) -> None:
    found = talk(*BEFORE[side], *ending(side, LARGE[side][:SENT]))
    assert of_last_frame(found, side) == (SENT - 4, 0, len(LARGE[side]) - SENT)
    assert (found.only["missing_bytes"], found.losses) == (0, [])
    assert accounted(found)


@SIDES
@pytest.mark.parametrize("flags", [FIN | ACK, RST | ACK], ids=["FIN", "RST"])
def test_what_was_lost_before_the_end_is_missing(side: int, flags: int) -> None:
    part = LARGE[side][:SENT]
    found = talk(*BEFORE[side], Segment(side, part[:450]), Segment(side, part[450:], is_lost=True),
                 Segment(side, flags=flags))  # fmt: skip
    assert of_last_frame(found, side) == (446, 150, len(LARGE[side]) - SENT)
    assert found.only["missing_bytes"] == 150


@SIDES
def test_what_a_snaplen_cut_from_the_last_segment_is_missing(side: int) -> None:
    found = talk(*BEFORE[side], Segment(side, LARGE[side][:SENT], FIN | ACK, captured=96))
    assert of_last_frame(found, side) == (92, SENT - 96, len(LARGE[side]) - SENT)


@SIDES
def test_whole_frames_lost_before_the_end_are_missing(side: int) -> None:
    found = talk(*BEFORE[side], Segment(side, LARGE[side], is_lost=True), Segment(side, flags=FIN | ACK))
    assert found.only["missing_bytes"] == len(LARGE[side])


@SIDES
def test_frames_lost_after_one_that_is_cut_are_missing(side: int) -> None:
    lost = LARGE[side][SENT:] + frame(bytes(70))
    found = talk(*BEFORE[side], Segment(side, LARGE[side][:SENT]), Segment(side, lost, is_lost=True),
                 Segment(side, flags=FIN | ACK))  # fmt: skip
    assert of_last_frame(found, side) == (SENT - 4, len(LARGE[side]) - SENT, 0)
    assert found.only["missing_bytes"] == len(lost)


NO_ENDS: dict[str, Callable[[int], Segment]] = {
    "the other side's FIN": lambda side: Segment(1 - side, flags=FIN | ACK),
    "the other side's RST from far away": lambda side: Segment(1 - side, flags=RST, at=1 << 30),
    "a FIN before bytes that were captured": lambda side: Segment(side, flags=FIN | ACK, at=place_of(side, 100)),
    "a FIN from far away": lambda side: Segment(side, flags=FIN | ACK, at=1 << 30),
    "an RST from far away": lambda side: Segment(side, flags=RST, at=1 << 30),
}


@SIDES
@pytest.mark.parametrize("no_end", NO_ENDS.values(), ids=NO_ENDS)
def test_what_does_not_end_a_stream_leaves_the_rest_of_a_frame_missing(
    side: int, no_end: Callable[[int], Segment]
) -> None:
    found = talk(*BEFORE[side], Segment(side, LARGE[side][:SENT]), no_end(side))
    assert of_last_frame(found, side) == (SENT - 4, len(LARGE[side]) - SENT, 0)


@SIDES
def test_a_size_that_the_end_cuts_is_cut_at_the_end_and_one_that_a_loss_cuts_is_after_a_gap(side: int) -> None:
    part, end = Segment(side, LARGE[side][:3]), Segment(side, flags=FIN | ACK)
    whole = talk(*BEFORE[side], part, end)
    lossy = talk(*BEFORE[side], part, Segment(side, LARGE[side][3:SENT], is_lost=True), end)
    assert (whole.reasons(), whole.only["missing_bytes"]) == ([(3, "cut_at_end")], 0)
    assert (lossy.reasons(), lossy.only["missing_bytes"]) == ([(3, "behind_gap")], SENT - 3)


def test_a_sasl_token_that_the_end_cuts_lacks_nothing() -> None:
    token = frame(b"\0app\0password")
    found = talk(asks(request(1, key=17)), answers(response(1)), asks(token[:7], flags=FIN | ACK))
    assert found.only["missing_bytes"] == 0
    assert found.reasons() == [(7, "sasl_tokens")]


def test_an_end_belongs_to_its_own_connection_if_the_same_endpoints_connect_again() -> None:
    part = LARGE[ANSWERS][:SENT]
    first = packets([*OPENING, *BEFORE[ANSWERS], answers(part, flags=FIN | ACK)])
    second = packets([*OPENING, *BEFORE[ANSWERS], answers(part)], Connection(first=(77, 88)), first_packet=100)
    found = understand([batch(first + second)])
    lacks = [(e.response_missing, e.response_unsent) for e in found.exchanges if e.correlation_id == 2]
    assert lacks == [(0, len(LARGE[ANSWERS]) - SENT), (len(LARGE[ANSWERS]) - SENT, 0)]


def test_the_end_is_recognised_in_a_capture_that_begins_in_mid_stream() -> None:
    found = talk(*BEFORE[ANSWERS], answers(LARGE[ANSWERS][:SENT], flags=FIN | ACK), is_opened=False)
    assert of_last_frame(found, ANSWERS) == (SENT - 4, 0, len(LARGE[ANSWERS]) - SENT)


@st.composite
def ended(draw: st.DrawFn) -> tuple[list[Segment], dict[int, bytes]]:
    """Both sides' segments in an order of sending, ended by FINs within or after a frame; and what each side sent."""
    n = draw(st.integers(1, 5))
    sent, segments = {}, []
    for side, make in ((ASKS, request), (ANSWERS, response)):
        stream = b"".join(make(i, bytes([i]) * draw(st.integers(0, 60))) for i in range(n))
        sent[side] = stream[: draw(st.integers(max(len(stream) - 70, 0), len(stream)))]
        bounds = sorted({0, len(sent[side]), *draw(st.sets(st.integers(0, len(sent[side])), max_size=6))})
        parts = [Segment(side, sent[side][a:b], at=a) for a, b in itertools.pairwise(bounds)]
        segments += [*parts, Segment(side, flags=FIN | ACK, at=len(sent[side]))]
    return segments, sent


def lost(segments: Sequence[Segment], which: set[int]) -> list[Segment]:
    return [segment for i, segment in enumerate(segments) if i not in which]


@PROPERTY
@given(ended())
def test_a_whole_capture_of_ended_streams_lacks_nothing(talked: tuple[list[Segment], dict[int, bytes]]) -> None:
    segments, sent = talked
    found = understand([batch(packets([*OPENING, *segments]))])
    if found.only["protocol"] == "kafka":
        assert found.only["missing_bytes"] == 0
        assert found.only["framed_bytes"] + found.only["unframed_bytes"] == sum(map(len, sent.values()))


@PROPERTY
@given(ended(), st.data())
def test_what_is_there_and_what_is_missing_is_what_was_sent(
    talked: tuple[list[Segment], dict[int, bytes]], data: st.DataObject
) -> None:
    segments, sent = talked
    with_payload = [i for i, segment in enumerate(segments) if segment.payload]
    kept = lost(segments, data.draw(st.sets(st.sampled_from(with_payload), max_size=4)) if with_payload else set())
    rows = packets([*OPENING, *kept])
    found = understand([batch(rows)])
    if found.only["protocol"] == "kafka":
        there = found.only["framed_bytes"] + found.only["unframed_bytes"]
        assert there + found.only["missing_bytes"] == sum(map(len, sent.values()))
    assert understand(cut(batch(rows), 1), rows=1, payload_bytes=1) == found


@PROPERTY
@given(ended(), st.randoms(use_true_random=False))
def test_the_order_of_a_side_s_segments_does_not_matter(
    talked: tuple[list[Segment], dict[int, bytes]], random_: random.Random
) -> None:
    segments, _ = talked
    asked, answered = ([s for s in segments if s.side == side] for side in (ASKS, ANSWERS))
    in_order = understand([batch(packets([*OPENING, *asked, *answered]))])
    random_.shuffle(asked)
    random_.shuffle(answered)
    found = understand([batch(packets([*OPENING, *asked, *answered]))])
    assert (found.counts, found.pairs()) == (in_order.counts, in_order.pairs())
