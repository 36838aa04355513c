"""A consumer's rack is known from its Fetch requests, in packets and in request logs."""

from __future__ import annotations

from typing import Any

import pytest

from schemas.wire.fetch import FETCH_REQUEST, FETCH_RESPONSE
from tests.unit.capture.conversations import asks
from tests.unit.facts.brokers import answered, asked, tables, turns


def rack_of(version: int, **told: Any) -> str | None:
    """The rack of an exchange with this request."""
    both = asked(FETCH_REQUEST, version, 1, **told), answered(FETCH_RESPONSE, version, 1)
    (row,) = tables(*turns(*both))["exchanges"]
    rack: str | None = row["fetch_rack_id"]
    return rack


@pytest.mark.parametrize("version", [11, 12, 18])
def test_a_consumers_rack_is_that_of_its_request(version: int) -> None:
    assert rack_of(version, rack_id=b"eu-1a") == "eu-1a"
    assert rack_of(version) == ""


def test_versions_without_racks_and_followers_have_none() -> None:
    assert rack_of(10) is None
    assert rack_of(11, replica_id=2) is None
    assert rack_of(18, replica_state={"replica_id": 2, "replica_epoch": 7}) is None


def test_a_request_that_is_cut_has_no_rack() -> None:
    request = asked(FETCH_REQUEST, 18, 1, rack_id=b"eu-1a")
    (row,) = tables(asks(request, captured=len(request) - 4))["exchanges"]
    assert row["fetch_rack_id"] is None
