"""Which connections lead to a controller, and which to a broker."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from schemas.tables.silver import CONNECTIONS, EXCHANGES
from schemas.wire.apis import API_KEYS
from tests.gate_rows import whole
from tests.silver_rows import silver_rows
from udfs.replay.consumer_memory.controllers import (
    ASKED,
    ASKED_COLUMNS,
    connections_asking_controllers,
    connections_to_controllers,
)

OF_LOG = {"fetch_replica_id": 2, "fetch_session_id": 0, "fetch_session_epoch": -1, "api_version": 17}
OF_FOLLOWER = OF_LOG | {"fetch_session_epoch": 0}
SERVERS = {5: "10.0.0.1:9092", 6: "10.0.0.1:9093", 7: "10.0.0.1:9093", 8: "10.0.0.2:9092"}
THERE = whole(CONNECTIONS, [{"connection_id": number, "server": server} for number, server in SERVERS.items()])


def to_controllers(*exchanges: dict[str, Any]) -> list[int]:
    rows = connections_asking_controllers(silver_rows(EXCHANGES, ASKED_COLUMNS, list(exchanges)))
    return connections_to_controllers(pa.Table.from_batches(rows, ASKED), THERE).connection_id.tolist()


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"api_key": API_KEYS["BROKER_HEARTBEAT"]}, [6, 7]),
        ({"api_key": API_KEYS["FETCH"], **OF_LOG}, [6, 7]),
        ({"api_key": API_KEYS["FETCH"], **OF_FOLLOWER}, []),
        ({"api_key": API_KEYS["HEARTBEAT"]}, []),
        ({"api_key": None}, []),
    ],
)
def test_all_connections_to_an_address_lead_to_a_controller_if_one_asks_what_only_a_controller_answers(
    asked: dict[str, Any], found: list[int]
) -> None:
    """A broker of the same process has another port."""
    assert to_controllers({"connection_id": 6} | asked, {"connection_id": 5, "api_key": API_KEYS["PRODUCE"]}) == found
