"""Rows of SESSION_EVENTS as tests write them, and the gold rows of their replay."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from schemas.tables.steps import SESSION_EVENTS
from udfs.facts.arrow_tables import arrow_schema
from udfs.replay.session_cache.replay import replay_sessions
from udfs.replay.session_cache.settings import SessionLanes

Gold = Mapping[str, list[dict[str, Any]]]
Row = dict[str, Any]


def fetch_row(**columns: Any) -> Row:
    """A fetch; times in us."""
    fetch = {
        "broker": "1", "position": -1, "client_id": "", "client_address": "10.0.0.1", "api_version": 18,
        "session_id": 0, "session_epoch": 0, "fetch_error": 0, "throttle_time_ms": 0,
        "is_follower": False, "is_cut": False,
    }  # fmt: skip
    return {**fetch, **columns}


def partition_row(**columns: Any) -> Row:
    """A partition that a fetch wants, lists and gets without records."""
    partition = {
        "broker": "1", "max_wait_ms": 0, "session_known": True, "topic_key": 1, "name_length": 1, "is_wanted": True,
        "is_listed": True, "is_returned": True, "fetch_offset": 0, "partition_max_bytes": 1, "current_leader_epoch": 0,
        "returned_bytes": 0, "high_watermark": 5, "log_start_offset": 0, "error_code": 0, "preferred_read_replica": -1,
        "response_session_id": 0,
    }  # fmt: skip
    return {**partition, **columns}


def rows_of_events(rows: Iterable[Row]) -> pa.RecordBatch:
    """The rows as a batch, in this order. A column that a row lacks is null, but shard and life are 0."""
    schema = arrow_schema(SESSION_EVENTS)
    missing = {"shard": 0, "life": 0}
    filled = [{field.name: row.get(field.name, missing.get(field.name)) for field in schema} for row in rows]
    return pa.RecordBatch.from_pylist(filled, schema=schema)


def gold_rows(batches: Iterable[pa.RecordBatch], lanes: SessionLanes, seed: str = "seed") -> Gold:
    """The rows of each gold table."""
    gold: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for packed in replay_sessions(batches, lanes, "run", seed):
        for table, rows in zip(packed["table"].to_pylist(), packed["rows"], strict=True):
            gold[str(table)].extend(pa.ipc.open_stream(rows.as_buffer()).read_all().to_pylist())
    return gold
