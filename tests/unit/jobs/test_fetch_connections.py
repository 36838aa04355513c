"""What the replay of fetches takes from the table `connections`."""

from __future__ import annotations

from datetime import timedelta

from jobs.replays.fetch_max_bytes.reads import ends_of_brokers, ends_of_connections, lossy_connections
from schemas.tables.silver import CONNECTIONS
from tests.gate_rows import TIME, whole

US = int(TIME.timestamp()) * 1_000_000
LATER = TIME + timedelta(seconds=2)
CONNECTIONS_THERE = whole(
    CONNECTIONS,
    [
        {"connection_id": 5, "broker": "1", "last_time": TIME, "ended": True},
        {"connection_id": 6, "broker": "1", "last_time": LATER, "ended": False, "missing_bytes": 9},
        {"connection_id": 7, "broker": "2", "last_time": TIME, "ended": None},
    ],
)


def test_only_connections_whose_end_is_captured_have_ended() -> None:
    assert ends_of_connections(CONNECTIONS_THERE) == {5: US}


def test_a_broker_is_shown_until_the_last_packet_of_its_connections() -> None:
    assert ends_of_brokers(CONNECTIONS_THERE) == {"1": US + 2_000_000, "2": US}


def test_a_connection_is_lossy_if_bytes_are_missing() -> None:
    assert lossy_connections(CONNECTIONS_THERE) == frozenset({6})
