"""The client software that ApiVersions requests report, and the exchanges that get it, wherever chunks end."""

from __future__ import annotations

from typing import Any

import pytest

from schemas.wire.api_versions import API_VERSIONS_REQUEST, API_VERSIONS_RESPONSE
from schemas.wire.metadata import METADATA_REQUEST, METADATA_RESPONSE
from schemas.wire.produce import PRODUCE_REQUEST
from tests.unit.capture.conversations import Segment, answers, asks
from tests.unit.facts.brokers import answered, asked, tables

Told = dict[int, str | None]


def tells(correlation_id: int, software: str) -> Segment:
    """A request that reports the client's software, given as `name version`."""
    name, version = software.encode().split(b" ")
    told = {"client_software_name": name, "client_software_version": version}
    return asks(asked(API_VERSIONS_REQUEST, 3, correlation_id, **told))


def versions(correlation_id: int) -> Segment:
    return answers(answered(API_VERSIONS_RESPONSE, 3, correlation_id))


def turn(correlation_id: int) -> tuple[Segment, Segment]:
    """A request that says nothing about the client's software, and its response."""
    return (
        asks(asked(METADATA_REQUEST, 9, correlation_id, topics=[])),
        answers(answered(METADATA_RESPONSE, 9, correlation_id)),
    )


UNHEARD = answers(answered(METADATA_RESPONSE, 9, 77))
"""A response to a request that the capture does not have."""
SENT = asks(asked(PRODUCE_REQUEST, 8, 5, acks=0, timeout_ms=1, topic_data=[]))
"""A request that gets no response."""


def software(row: dict[str, Any]) -> str | None:
    told = row["client_software_name"], row["client_software_version"]
    return None if told == (None, None) else " ".join(told)


CASES: dict[str, tuple[tuple[Segment, ...], Told, str | None]] = {
    "the first request": ((tells(1, "lib 2.6"), versions(1), *turn(2)), {0: "lib 2.6", 1: "lib 2.6"}, "lib 2.6"),
    "a later request": ((*turn(1), tells(2, "lib 2.6"), versions(2), *turn(3)),
                        {0: None, 1: "lib 2.6", 2: "lib 2.6"}, "lib 2.6"),
    "another request, told otherwise": ((tells(1, "lib 2.6"), versions(1), *turn(2), tells(3, "app 1"), versions(3),
                                         *turn(4)),
                                        {0: "lib 2.6", 1: "lib 2.6", 2: "app 1", 3: "app 1"}, "app 1"),
    "a request after it that nobody answers": ((tells(1, "lib 2.6"), SENT, SENT, versions(1)),
                                                {0: "lib 2.6", 1: "lib 2.6", 2: "lib 2.6"}, "lib 2.6"),
    "a request that is never answered": ((tells(1, "lib 2.6"), SENT), {0: "lib 2.6", 1: "lib 2.6"}, "lib 2.6"),
    "no request of an orphan's": ((tells(1, "lib 2.6"), versions(1), UNHEARD, *turn(2)),
                                  {0: "lib 2.6", 1: "lib 2.6", -1: None}, "lib 2.6"),
    "no request that has an empty name": ((tells(1, "lib 2.6"), versions(1), tells(2, " "), versions(2)),
                                          {0: "lib 2.6", 1: "lib 2.6"}, "lib 2.6"),
    "none": (turn(1), {0: None}, None),
}  # fmt: skip


@pytest.mark.parametrize(("segments", "told", "of_connection"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("rows", [1, 2, 3, 50_000])
def test_an_exchange_has_the_software_that_the_last_request_up_to_it_reported(
    segments: tuple[Segment, ...], told: Told, of_connection: str | None, rows: int
) -> None:
    found = tables(*segments, rows=rows)
    assert {row["exchange_no"]: software(row) for row in found["exchanges"]} == told
    assert [software(row) for row in found["connections"]] == [of_connection]
