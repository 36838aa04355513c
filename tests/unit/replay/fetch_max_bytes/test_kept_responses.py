"""The responses that the closed loop of fetches keeps for the replay of memory."""

from __future__ import annotations

import pytest

from tests.unit.replay.fetch_max_bytes.closed_units import Client, Part, replayed, responses_of
from udfs.columns.time_units import NEVER
from udfs.replay.fetch_max_bytes.settings import JAVA_3, JAVA_4


def kept_of(parts: list[Part], client: Client) -> dict[str, list[int]]:
    kept = responses_of(replayed(parts, [client]))
    return {name: kept[name].tolist() for name in kept.dtype.names or ()}


def given_up_of(parts: list[Part], client: Client) -> list[list[int]]:
    """(response, partition, since, until, turn) of all records that are given up."""
    outcome = replayed(parts, [client])
    return [list(row) for row in outcome.given_up[0, : outcome.lanes["given_up"][0]].tolist()]


def test_the_closed_loop_keeps_each_response_with_when_it_is_drained() -> None:
    """Two batches of 10 records at 1 ms each. A response takes 1 ms, and the client turns to it 1 ms later."""
    kept = kept_of([Part([100, 100], records=10)], Client(max_bytes=150, record_us=1000.0))
    assert (kept["requested_at"], kept["arrived_at"]) == ([1, 12_001], [1001, 13_001])
    assert kept["drained_at"] == [12_001, 23_001 + 1000]
    assert (kept["size"], kept["records"], kept["partitions"]) == ([150, 100], [10, 10], [1, 1])


def test_records_that_are_given_up_before_they_are_taken_are_kept_with_their_turn() -> None:
    """Both batches come at 1001 us, and the client turns to them 1 ms later."""
    parts = [Part([100], records=10), Part([100], records=10, leaves=5000, asked_last=1)]
    slow, fast = (Client(record_us=each, profile=JAVA_3) for each in (1000.0, 10.0))
    assert given_up_of(parts, slow) == [[0, 1, 1, NEVER, 2001 + 10_000]]
    assert kept_of(parts, slow)["drained_at"] == [2001 + 10_000]
    assert given_up_of(parts, fast) == []
    assert kept_of(parts, fast)["drained_at"] == [2201]


@pytest.mark.parametrize("profile", [JAVA_3, JAVA_4])
@pytest.mark.parametrize("seeks", [500, 5000])
def test_records_from_before_a_seek_are_gone_when_the_client_fetches_from_the_new_offset(
    profile: int, seeks: int
) -> None:
    """It seeks while the first response is on its way, or while it works on that response."""
    part = Part([100, 100], records=10, moves=[(seeks, 1)], gone_at=seeks + 1, asked_last=1)
    found = given_up_of([part], Client(record_us=1000.0, profile=profile))
    assert [(response, since, until) for response, _, since, until, _ in found] == [(0, 1, seeks + 1)]
