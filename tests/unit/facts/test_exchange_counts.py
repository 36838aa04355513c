"""For each connection, it is counted what its exchanges lack."""

from __future__ import annotations

from typing import Any

import pytest

from schemas.wire.fetch import FETCH_REQUEST, FETCH_RESPONSE
from tests.unit.capture.conversations import answers, asks, frame, request, response
from tests.unit.facts.brokers import answered, asked, counts_by_connection, tables, turns

FULL: dict[str, Any] = {
    "session_id": 0,
    "session_epoch": 0,
    "topics": [{"topic": b"orders", "partitions": [{"partition": 0}]}],
}
IDLE: dict[str, Any] = {"session_id": 8, "session_epoch": 3}
OF_ANOTHER_SESSION = FULL | {"session_id": 9, "session_epoch": 4}


def fetch(correlation_id: int, wanted: dict[str, Any], throttle_time_ms: int = 0) -> tuple[bytes, bytes]:
    return (
        asked(FETCH_REQUEST, 12, correlation_id, **wanted),
        answered(
            FETCH_RESPONSE, 12, correlation_id, session_id=wanted["session_id"], throttle_time_ms=throttle_time_ms
        ),
    )


@pytest.mark.parametrize(("throttle_time_ms", "unknown"), [(0, 0), (20, 2)])
def test_an_idle_fetch_of_a_session_from_before_the_capture_may_read_more_only_if_a_quota_throttles_it(
    throttle_time_ms: int, unknown: int
) -> None:
    both = (fetch(n, IDLE | {"session_epoch": 2 + n}, throttle_time_ms) for n in (1, 2))
    found = tables(*turns(*(message for exchange in both for message in exchange)))["exchange_counts"]
    ((_, counts),) = counts_by_connection(found).items()
    assert (counts["fetches"], counts["fetches_of_unknown_sessions"]) == (2, unknown)


def test_a_refused_fetch_that_names_no_partition_counts_for_its_session() -> None:
    opened = asked(FETCH_REQUEST, 12, 1, **FULL), answered(FETCH_RESPONSE, 12, 1, session_id=8)
    next_one, later = (IDLE | {"session_epoch": epoch} for epoch in (1, 5))
    refused = [
        (asked(FETCH_REQUEST, 13, n, **of), answered(FETCH_RESPONSE, 13, n, error_code=106))
        for n, of in ((2, next_one), (3, later))
    ]
    found = tables(*turns(*opened, *refused[0], *refused[1]))["exchange_counts"]
    ((_, counts),) = counts_by_connection(found).items()
    assert (counts["fetches"], counts["fetches_of_unknown_sessions"]) == (3, 1)


@pytest.mark.parametrize("rows", [1, 7, 10_000])
def test_exchanges_are_counted_by_what_they_lack(rows: int) -> None:
    undecodable = frame(asked(FETCH_REQUEST, 12, 3, **FULL)[4:-1]), answered(FETCH_RESPONSE, 12, 3)
    fetches = turns(*fetch(1, FULL), *fetch(2, OF_ANOTHER_SESSION, throttle_time_ms=20), *undecodable)
    unasked, unanswered = answers(response(77)), asks(request(5))
    found = tables(*fetches, unasked, unanswered, rows=rows)["exchange_counts"]
    ((_, counts),) = counts_by_connection(found).items()
    assert counts == {
        "exchanges": 5,
        "unanswered_requests": 1,
        "orphan_responses": 1,
        "cut_exchanges": 0,
        "undecoded_exchanges": 1,
        "fetches": 2,
        "fetches_of_unknown_sessions": 1,
    }
