"""The error, throttle time and faults of exchanges, whatever the API."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from schemas.wire.declared import (
    CONSUMER_GROUP_HEARTBEAT,
    FIND_COORDINATOR,
    JOIN_GROUP,
    LIST_OFFSETS,
    SHARE_FETCH,
    SYNC_GROUP,
    Declared,
)
from tests.unit.capture.conversations import asks, frame
from tests.unit.facts.brokers import TOPIC_ID, answered, asked, tables, turns
from udfs.facts.exchange_rows import API_NAMES, api_codes

UNKNOWN_SERVER_ERROR, UNKNOWN_TOPIC, NOT_LEADER, NOT_COORDINATOR, FENCED_MEMBER = -1, 3, 6, 16, 110

ANSWERS: dict[str, tuple[Declared, int, dict[str, Any], int]] = {
    "top-level": (JOIN_GROUP, 9, {"error_code": NOT_COORDINATOR}, NOT_COORDINATOR),
    "top-level of any sign": (SYNC_GROUP, 5, {"error_code": UNKNOWN_SERVER_ERROR}, UNKNOWN_SERVER_ERROR),
    "none": (FIND_COORDINATOR, 3, {"port": 9092}, 0),
    "of a coordinator": (FIND_COORDINATOR, 4, {"coordinators": [{}, {"error_code": NOT_COORDINATOR}]}, NOT_COORDINATOR),
    "before a missing struct": (CONSUMER_GROUP_HEARTBEAT, 1, {"error_code": FENCED_MEMBER}, FENCED_MEMBER),
    "of the first partition that has one": (
        LIST_OFFSETS,
        7,
        {"topics": [{"partitions": [{}]}, {"partitions": [{"error_code": NOT_LEADER}, {"error_code": UNKNOWN_TOPIC}]}]},
        NOT_LEADER,
    ),
    "of the whole before a partition's": (
        SHARE_FETCH,
        1,
        {
            "error_code": UNKNOWN_TOPIC,
            "responses": [{"topic_id": TOPIC_ID, "partitions": [{"records": b"", "error_code": NOT_LEADER}]}],
        },
        UNKNOWN_TOPIC,
    ),
}


@pytest.mark.parametrize(("declared", "version", "response", "error"), ANSWERS.values(), ids=ANSWERS)
def test_an_exchange_has_the_error_of_its_response(
    declared: Declared, version: int, response: dict[str, Any], error: int
) -> None:
    both = asked(declared.request, version, 1), answered(declared.response, version, 1, **response)
    (row,) = tables(*turns(*both))["exchanges"]
    assert (row["error_code"], row["decode_fault"]) == (error, None)


def test_a_response_says_how_long_it_throttles() -> None:
    both = asked(JOIN_GROUP.request, 2, 1), answered(JOIN_GROUP.response, 2, 1, throttle_time_ms=70)
    assert [row["throttle_time_ms"] for row in tables(*turns(*both))["exchanges"]] == [70]


def test_a_body_that_does_not_fit_its_version_has_a_fault() -> None:
    request = asked(SYNC_GROUP.request, 3, 1)
    found = tables(asks(frame(request[4:-1])))
    assert [row["decode_fault"] for row in found["exchanges"]] == ["truncated"]
    assert [row["reason"] for row in found["quarantine"]] == ["undecodable"]


def test_an_api_key_that_kafka_does_not_have_has_a_null_name() -> None:
    last = len(API_NAMES) - 1
    keys = np.array([-1, 0, 1, last - 1, last, last + 1])
    assert api_codes(keys).tolist() == [last, 0, 1, last - 1, last, last]
