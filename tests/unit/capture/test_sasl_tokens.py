"""Raw SASL tokens (before KIP-152) are skipped and reported; what follows them is decoded."""

from __future__ import annotations

import pytest

from tests.unit.capture.conversations import OPENING as OPENING
from tests.unit.capture.conversations import (
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

SASL_HANDSHAKE = 17
PLAIN = b"\0app\0a password"
SCRAM = (b"n,,n=app,r=abc", b"r=abcdef,s=c2FsdA==,i=4096", b"c=biws,r=abcdef,p=cHJvb2Y=", b"v=c2lnbmF0dXJl")
LIKE_A_REQUEST = request(3)[4:]


def handshake(version: int = 0) -> tuple[Segment, Segment]:
    return asks(request(1, key=SASL_HANDSHAKE, version=version)), answers(response(1, b"\0\0\0\0\0\1\0\5PLAIN"))


def after(*tokens: Segment) -> tuple[Segment, ...]:
    return (*handshake(), *tokens, asks(request(2)), answers(response(2)), asks(request(3)), answers(response(3)))


EXCHANGES = {
    "plain": after(asks(frame(PLAIN)), answers(frame(b""))),
    "scram": after(*(side(frame(token)) for side, token in zip((asks, answers) * 2, SCRAM, strict=True))),
    "first like a request": after(asks(frame(LIKE_A_REQUEST)), answers(frame(b""))),
    "no answer": after(asks(frame(b"\x60\x82token"))),
    "in pieces": after(asks(frame(PLAIN)[:3]), asks(frame(PLAIN)[3:9]), asks(frame(PLAIN)[9:]), answers(frame(b""))),
    "a packet lost": after(asks(frame(PLAIN)[:8]), asks(frame(PLAIN)[8:], is_lost=True), answers(frame(b""))),
}


@pytest.mark.parametrize("segments", EXCHANGES.values(), ids=EXCHANGES.keys())
def test_requests_after_the_tokens_are_decoded(segments: tuple[Segment, ...]) -> None:
    found = talk(*segments)
    assert [exchange.correlation_id for exchange in found.exchanges] == [1, 2, 3]
    assert {exchange.status for exchange in found.exchanges} == {"answered"}
    assert {reason for _, reason in found.reasons()} == {"sasl_tokens"}
    assert accounted(found)


@pytest.mark.parametrize("segments", EXCHANGES.values(), ids=EXCHANGES.keys())
@pytest.mark.parametrize("most", [1, 2, 7])
def test_tokens_are_the_same_however_packets_are_cut(segments: tuple[Segment, ...], most: int) -> None:
    rows = batch(packets([*OPENING, *segments]))
    assert understand(cut(rows, most), rows=most, payload_bytes=1) == understand([rows])


def test_every_byte_of_a_token_is_counted_as_one() -> None:
    found = talk(*EXCHANGES["scram"])
    sizes = [sum(4 + len(token) for token in SCRAM[side::2]) for side in (0, 1)]
    assert [(direction, size) for _, direction, _, size, _, _ in found.losses] == [(0, sizes[0]), (1, sizes[1])]
    assert found.only["unframed_bytes"] == sum(sizes)


def test_a_response_with_only_a_header_is_no_token() -> None:
    found = talk(*handshake(), asks(frame(PLAIN)), answers(frame(b"")), asks(request(2)), answers(response(2, b"")))
    assert found.pairs()[-1] == (request(2)[4:], response(2, b"")[4:])


def test_no_tokens_follow_a_handshake_of_version_1() -> None:
    """After version 1, SaslAuthenticate requests follow (KIP-152)."""
    found = talk(*handshake(version=1), asks(request(2, key=36)), answers(response(2)))
    assert [exchange.correlation_id for exchange in found.exchanges] == [1, 2]
    assert found.losses == []


def test_bytes_whose_size_is_no_tokens_end_the_tokens() -> None:
    found = talk(*handshake(), asks(b"\x7f\xff\xff\xff"), asks(request(2)), answers(response(2)))
    assert [exchange.correlation_id for exchange in found.exchanges] == [1, 2]
    assert [reason for _, reason in found.reasons()] == ["not_a_frame"]


def test_responses_whose_requests_are_lost_do_not_count_as_tokens_for_ever() -> None:
    orphans = [answers(response(100 + n)) for n in range(40)]
    found = talk(
        *handshake(), asks(frame(PLAIN)), answers(frame(b"")), *orphans, asks(request(2)), answers(response(2))
    )
    assert found.only["orphan_responses"] > 20
    assert found.pairs()[-1] == (request(2)[4:], response(2)[4:])
