"""A captured catch-up as the replay of KIP-74 reads it: rows of LOG_EVENTS, and those of READS made of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from schemas.tables.event_kinds import LogEvent
from schemas.tables.steps import LOG_EVENTS, READS
from tests.sort_keys import SortKeys
from udfs.columns.arrays import Records
from udfs.columns.records import new_records
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import NEVER
from udfs.facts.arrow_tables import arrow_schema
from udfs.replay.fetch_max_bytes.events import KEYS, rows_of_reads
from udfs.replay.fetch_max_bytes.partition_log.replay import read_rows
from udfs.replay.fetch_max_bytes.settings import FETCH_LIMITS, FetchLanes, as_captured_clients
from udfs.replay.fetch_max_bytes.state import CARRIED
from udfs.replay.shared.lanes import AS_CAPTURED

KEY_SCHEMA = pa.schema([arrow_schema(READS).field(name) for name in KEYS])
Rows = list[dict[str, Any]]
MS = 1000
BEGIN = 1_700_000_000 * 10**6
BATCHES, SIZE, PARTITIONS = 8, 100, 4
READER_CONNECTION = 5
READER: dict[str, Any] = {
    "client_id": "app", "client_address": "10.0.0.1", "reader": "consumer", "connection_id": READER_CONNECTION,
    "broker": "1",
}  # fmt: skip


def lanes_of(*max_bytes: int) -> FetchLanes:
    """Lanes that differ in fetch.max.bytes, of consumers and followers alike."""
    n = len(max_bytes)
    limits = limits_of(*max_bytes)
    clients = as_captured_clients(n)
    return FetchLanes(tuple(f"lane {i}" for i in range(n)), limits, limits, clients, clients, np.ones(n))


def limits_of(*max_bytes: int, partition_max_bytes: int = AS_CAPTURED, broker_max_bytes: int = 1 << 30) -> Records:
    """Limits that differ in max_bytes."""
    return new_records(
        FETCH_LIMITS,
        len(max_bytes),
        max_bytes=max_bytes,
        partition_max_bytes=partition_max_bytes,
        broker_max_bytes=broker_max_bytes,
    )


def batch_rows(partitions: int = PARTITIONS, batches: int = BATCHES) -> Rows:
    """The backlog: batches of ten records that some fetch showed."""
    return [
        {
            "topic": "t", "topic_key": "t", "partition": p, "kind": LogEvent.BATCH, "position": 10 * b,
            "last_offset": 10 * b + 9, "size_bytes": SIZE, "append_after": None, "append_before": BEGIN + MS,
        }
        for p in range(partitions)
        for b in range(batches)
    ]  # fmt: skip


def read_row(
    fetch: int, position: int, partition: int, batch: int, returned: int, batches: int = BATCHES
) -> dict[str, Any]:  # fmt: skip
    """One partition of a fetch that came 10 ms after the one before and took 2 ms."""
    request = BEGIN + 10 * MS * fetch
    return READER | {
        "topic": "t", "topic_key": "t", "partition": partition, "kind": LogEvent.READ, "position": request,
        "exchange_no": fetch, "request_time": request, "response_time": request + 2 * MS, "max_wait_ms": 500,
        "min_bytes": 1, "max_bytes": 2 * SIZE, "in_session": True, "opens_session": fetch == 0, "profile": 0,
        "fetch_offset": 10 * batch, "bound_low": 10 * batches, "bound_high": 10 * batches, "bound_known": True,
        "response_bound": 10 * batches, "readable_known": True, "redirected": False, "refused": False,
        "throttled": False, "throttle_ms": 0,
        "read_position": position, "partition_max_bytes": SIZE, "returned_bytes": returned,
        "response_record_bytes": 2 * SIZE,
    }  # fmt: skip


def catch_up(
    rotates: bool = True, partitions: int = PARTITIONS, batches: int = BATCHES, reconnects: int | None = None,
    broker: str = "1", returns: int | None = None,
) -> Rows:  # fmt: skip
    """A Java consumer's catch-up: two partitions fit into a response, and the session's order is Kafka's.

    reconnects: the fetch that opens another connection, to `broker`, and a session. returns: the fetch with which the
    consumer goes back to its first connection.
    """
    order, read, rows = list(range(partitions)), [0] * partitions, []
    client, node = order, {"connection_id": READER["connection_id"], "broker": READER["broker"]}
    for fetch in range(batches * partitions // 2):
        opens = fetch in (0, reconnects)
        if fetch == reconnects:
            order, node = client, {"connection_id": READER_CONNECTION + 1, "broker": broker}
        elif fetch == returns:
            order, node = client, {"connection_id": READER_CONNECTION, "broker": READER["broker"]}
        served = [p for p in order if read[p] < batches][:2]
        rows += [
            read_row(fetch, i, p, read[p], SIZE if p in served else 0, batches) | node | {"opens_session": opens}
            for i, p in enumerate(order)
        ]
        for p in served:
            read[p] += 1
        client = [p for p in client if p not in served] + served
        if rotates and not opens:  # the response that opens the session moves nothing
            order = [p for p in order if p not in served] + served
    return rows


def reads_of(events: Rows, most: int = 10_000) -> pa.Table:
    """The rows of READS in order. most: how many rows each batch has at most that the pass over logs gets."""
    t, r = LOG_EVENTS, READS
    keys: SortKeys = [(str(name), "ascending") for name in (t.topic_key, t.partition, t.kind, t.position)]
    sorted_events = pa.Table.from_pylist(events, schema=arrow_schema(t)).sort_by(keys)
    found = pa.Table.from_batches(list(read_rows(sorted_events.to_batches(max_chunksize=most), 1 << 20)))
    by_time: SortKeys = [
        (str(name), "ascending") for name in (r.request_time, r.connection_id, r.exchange_no, r.read_position)
    ]
    return found.sort_by(by_time)


def read_batch(rows: Rows) -> pa.RecordBatch:
    """READS from rows with the fields of CARRIED and `batch_sizes`. A field that is None or left out is not known."""
    keys = pa.RecordBatch.from_pylist([{name: row.get(name) for name in KEYS} for row in rows], KEY_SCHEMA)
    reads = np.zeros(len(rows), CARRIED)
    for name in CARRIED.names or ():
        missing = 0 if CARRIED[name] == np.bool_ else NEVER if name in ("response_time", "first_append") else NONE
        reads[name] = [missing if row.get(name) is None else row[name] for row in rows]
    sizes = np.array([size for row in rows for size in row["batch_sizes"]], np.int64)
    return rows_of_reads(keys, reads, sizes, np.array([len(row["batch_sizes"]) for row in rows], np.int64))
