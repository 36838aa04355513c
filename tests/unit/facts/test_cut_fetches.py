"""The session of a Fetch request that is cut is known if the capture reaches that far."""

from __future__ import annotations

from typing import Any

import pytest

from schemas.wire.fetch import FETCH_REQUEST, FETCH_RESPONSE
from tests.unit.capture.conversations import Segment, answers, asks
from tests.unit.capture.packet_builders import ACK, FIN
from tests.unit.facts.brokers import TOPIC_ID, answered, asked, tables

SESSION: dict[str, Any] = {"session_id": 77, "session_epoch": 5}
TOPICS = [{"topic": b"t", "topic_id": TOPIC_ID, "partitions": [{"partition": 0}]}]
UP_TO_TOPICS = {7: 17 + 25, 11: 17 + 25, 12: 18 + 25, 14: 18 + 25, 15: 18 + 21, 18: 18 + 21}
"""By version, the bytes of a frame up to its topics: the size, the header with client id `app`, and fixed fields."""


def fetch(version: int, correlation_id: int = 1) -> bytes:
    names = "topic_id" if version > 12 else "topic"
    topics = [{name: value for name, value in topic.items() if name in (names, "partitions")} for topic in TOPICS]
    return asked(FETCH_REQUEST, version, correlation_id, topics=topics, max_bytes=9, **SESSION)


def first_exchange(*segments: Segment, rows: int = 50_000) -> dict[str, Any]:
    """The row of the first exchange."""
    return next(row for row in tables(*segments, rows=rows)["exchanges"] if row["exchange_no"] == 0)


@pytest.mark.parametrize("rows", [1, 50_000])
@pytest.mark.parametrize("version", UP_TO_TOPICS)
def test_session_and_epoch_are_known_if_the_snaplen_cuts_after_them(version: int, rows: int) -> None:
    answer = answers(answered(FETCH_RESPONSE, version, 1, session_id=77))
    for captured, session in ((UP_TO_TOPICS[version], (77, 5)), (UP_TO_TOPICS[version] - 1, (None, None))):
        row = first_exchange(asks(fetch(version), captured=captured), answer, rows=rows)
        assert (row["fetch_session_id"], row["fetch_session_epoch"]) == session
        assert (row["fetch_replica_id"], row["fetch_max_bytes"], row["error_code"]) == (None, None, 0)
        assert row["decode_fault"] is None


def test_bytes_after_a_loss_are_not_mistaken_for_session_and_epoch() -> None:
    request = fetch(18)
    row = first_exchange(asks(request[:30]), asks(request[30:40], is_lost=True), asks(request[40:]))
    assert (row["missing_bytes"], row["fetch_session_epoch"]) == (10, None)


def test_versions_without_sessions_and_unknown_versions_give_no_session() -> None:
    for version in (6, 19):
        request = bytearray(fetch(18))
        request[6:8] = version.to_bytes(2, "big")
        row = first_exchange(asks(bytes(request), captured=60))
        assert (row["api_version"], row["fetch_session_epoch"]) == (version, None)


def test_a_request_that_was_never_sent_whole_gives_no_session() -> None:
    row = first_exchange(asks(fetch(18)[:50]), asks(b"", flags=FIN | ACK))
    assert (row["unsent_bytes"] > 0, row["fetch_session_epoch"]) == (True, None)
