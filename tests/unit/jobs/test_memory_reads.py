"""What the replay of memory reads of exchanges: responses of all, but only requests that a broker receives."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

import jobs.replays.consumer_memory.job as job
from jobs.replays.algorithm import Source
from schemas.tables.silver import CONNECTIONS, EXCHANGES
from schemas.tables.steps_memory import MEMORY_EVENTS
from schemas.tables.values import BROKER
from schemas.wire.apis import API_KEYS
from tests.gate_rows import TIME, whole
from tests.silver_rows import plain, silver_rows
from udfs.replay.consumer_memory.controllers import ASKED
from udfs.replay.shared.process_addresses import ONE_ADDRESS_EACH

SERVERS = {5: "10.0.0.1:9092", 6: "10.0.0.1:9093"}


@pytest.mark.parametrize(("asks_controller", "received"), [(True, 1), (False, 2)])
def test_requests_to_a_controller_take_no_memory_of_a_broker(
    monkeypatch: pytest.MonkeyPatch, asks_controller: bool, received: int
) -> None:
    asked = pa.table({"connection_id": pa.array([6] if asks_controller else [], pa.int64())}, schema=ASKED)
    there = whole(CONNECTIONS, [{"connection_id": number, "server": server} for number, server in SERVERS.items()])
    found: dict[str, Any] = {
        "client_software": lambda source: {},
        "client_addresses": lambda source: ONE_ADDRESS_EACH,
        "may_have_rows": lambda source, table, column, least: True,
        "mapped_silver": lambda source, reads, schema: SimpleNamespace(toArrow=lambda: asked),
        "read_small_table": lambda source, table, columns: there,
    }
    for name, function in found.items():
        monkeypatch.setattr(job, name, function)
    of_exchanges, *_ = job.message_reads(cast(Source, None))
    rows = [
        {"connection_id": number, "broker": "1", "api_key": API_KEYS["PRODUCE"], "request_time": TIME}
        for number in SERVERS
    ]
    events = plain(of_exchanges.mapped(silver_rows(EXCHANGES, of_exchanges.columns, rows)))
    assert sum(row[MEMORY_EVENTS.side] == BROKER for row in events) == received
