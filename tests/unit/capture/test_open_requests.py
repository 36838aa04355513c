"""How many requests may wait for a response. That depends only on the packets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tests.unit.capture.conversations import (
    OPENING,
    Segment,
    answers,
    asks,
    batch,
    cut,
    packets,
    produce,
    request,
    response,
)
from udfs.capture.open_requests import MOST_OPEN_BYTES, MOST_OPEN_REQUESTS
from udfs.capture.packet_chunks import frames_by_chunk

ROWS = [1, 7, 10_000]
TOGETHER = 2000
"""How many small requests are in a segment."""


def numbers(segments: Sequence[Segment], rows: int) -> tuple[list[int], list[int]]:
    """The numbers of answered requests, and of responses that answer no request."""
    found = [
        chunk.responses[["number", "partner"]]
        for chunk in frames_by_chunk(cut(batch(packets([*OPENING, *segments])), rows), rows=rows, payload_bytes=1 << 28)
    ]
    responses = np.concatenate(found)
    orphans = responses["partner"] < 0
    return sorted(responses["number"][~orphans].tolist()), sorted(responses["number"][orphans].tolist())


def small(n: int) -> list[Segment]:
    """This many small requests, in segments of TOGETHER."""
    return [asks(b"".join(map(request, range(at, min(at + TOGETHER, n))))) for at in range(0, n, TOGETHER)]


def answered(*correlation_ids: int) -> list[Segment]:
    return [answers(response(i)) for i in correlation_ids]


@pytest.mark.parametrize("rows", [100, *ROWS[1:]])
def test_thousands_of_open_requests_are_all_answered(rows: int) -> None:
    """librdkafka leaves up to 1,000,000 open (max.in.flight), so a broker that stood still has many to answer."""
    n = 3000
    assert numbers([asks(request(i)) for i in range(n)] + answered(*range(n)), rows) == (list(range(n)), [])


@pytest.mark.parametrize("rows", ROWS)
def test_if_more_requests_wait_than_may_be_open_the_oldest_ones_are_given_up(rows: int) -> None:
    n = MOST_OPEN_REQUESTS + 10
    found = numbers([*small(n), *answered(9, 10, n - 1)], rows)
    assert found == ([10, n - 1], [-1])


@pytest.mark.parametrize("rows", ROWS)
def test_requests_that_get_no_answer_do_not_count(rows: int) -> None:
    n = MOST_OPEN_REQUESTS + 10
    sent = [asks(b"".join(produce(i, 0) for i in range(at, at + TOGETHER))) for at in range(1, n, TOGETHER)]
    assert numbers([asks(request(0)), *sent, *answered(0)], rows) == ([0], [])


@pytest.mark.parametrize("rows", ROWS)
def test_a_response_answers_what_was_open_when_it_came_however_much_follows(rows: int) -> None:
    more = small(MOST_OPEN_REQUESTS + 10)
    assert numbers([*more[:1], *answered(0), *more[1:], *answered(1, 10)], rows) == ([0, 10], [-1])


@pytest.mark.parametrize("rows", ROWS)
def test_a_request_is_given_up_if_more_was_sent_after_it_than_a_socket_can_hold(rows: int) -> None:
    large = bytes(MOST_OPEN_BYTES // 64)
    sent = [asks(request(i, large)) for i in range(70)]
    assert numbers([*sent, *answered(4, 5, 6, 69)], rows) == ([5, 6, 69], [-1])


@pytest.mark.parametrize("rows", ROWS)
def test_a_large_request_waits_for_its_answer_while_another_is_sent(rows: int) -> None:
    largest = request(1, bytes(MOST_OPEN_BYTES + 1000))
    parts = [asks(largest[at : at + (1 << 20)]) for at in range(0, len(largest), 1 << 20)]
    assert numbers([*parts, asks(request(2)), *answered(1, 2)], rows) == ([0, 1], [])


MIB = 1 << 20
HELD = 110
"""How many messages of 1 MiB are sent: more than may wait for others in memory."""


@pytest.mark.parametrize("rows", [7, 10_000])
def test_a_request_that_the_capture_lacks_costs_no_other_request_however_much_follows(rows: int) -> None:
    sent = [[asks(request(i), is_lost=i == 1), answers(response(i, bytes(MIB)))] for i in range(HELD)]
    assert numbers([part for pair in sent for part in pair], rows) == ([0, *range(1, HELD - 1)], [-1])


@pytest.mark.parametrize("rows", [7, 10_000])
def test_a_response_that_the_capture_lacks_costs_no_other_response_however_much_follows(rows: int) -> None:
    sent = [[asks(request(i, bytes(MIB))), answers(response(i), is_lost=i == 1)] for i in range(HELD)]
    assert numbers([part for pair in sent for part in pair], rows) == ([0, *range(2, HELD)], [])
