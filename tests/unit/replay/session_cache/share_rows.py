"""Rows of SHARE_EVENTS as tests write them, and the gold rows of their replay."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.tables.steps import SHARE_EVENTS
from udfs.facts.arrow_tables import arrow_schema
from udfs.replay.session_cache.settings import ShareLanes
from udfs.replay.session_cache.share_sessions.replay import replay_share_sessions
from udfs.replay.session_cache.share_sessions.state import BEGAN_BEFORE, END, RELEASE, REQUEST, SHARE_SETTINGS
from udfs.replay.shared.window import WHOLE, Window

Gold = Mapping[str, list[dict[str, Any]]]
Row = dict[str, Any]
CONNECTION = {"broker": "1", "life": 0, "is_logged": False, "exchange_no": -1}


def request_row(**columns: Any) -> Row:
    """A ShareFetch that opens a session and gets it; times in us."""
    request = {
        "kind": REQUEST, "client_id": "app", "group_id": "g", "member_id": "m", "share_session_epoch": 0,
        "is_acknowledge": False, "error_code": 0,
    }  # fmt: skip
    return {**CONNECTION, **request, **columns}


def release_row(**columns: Any) -> Row:
    """The response to a request that closes a session."""
    return request_row(**{"kind": RELEASE, "share_session_epoch": -1, **columns})


def end_row(**columns: Any) -> Row:
    """A connection's end."""
    return {**CONNECTION, "kind": END, **columns}


def began_row(**columns: Any) -> Row:
    """A connection that began before the capture."""
    return {**CONNECTION, "kind": BEGAN_BEFORE, **columns}


def share_lanes(*limits: int, window: Window = WHOLE, marks_stale: int = 1) -> ShareLanes:
    """A lane for each limit, named after it. The first one is the captured lane."""
    settings = np.zeros(len(limits), SHARE_SETTINGS)
    settings["limit"], settings["marks_stale"] = limits, marks_stale
    return ShareLanes(tuple(f"limit={limit}" for limit in limits), settings, window)


def share_gold(rows: Iterable[Row], lanes: ShareLanes, at_a_time: int = 10_000) -> Gold:
    """The rows of each gold table. A column that a row lacks is null. at_a_time: how many rows come at a time."""
    schema = arrow_schema(SHARE_EVENTS)
    batch = pa.RecordBatch.from_pylist([{f.name: row.get(f.name) for f in schema} for row in rows], schema=schema)
    batches = [batch.slice(first, at_a_time) for first in range(0, batch.num_rows, at_a_time)]
    gold: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for packed in replay_share_sessions(batches, lanes, "run"):
        for table, of_table in zip(packed["table"].to_pylist(), packed["rows"], strict=True):
            gold[str(table)].extend(pa.ipc.open_stream(of_table.as_buffer()).read_all().to_pylist())
    return gold
