"""Rows of SESSION_EVENTS from silver rows, without Spark."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from schemas.tables.silver import EXCHANGES, FETCH_PARTITIONS
from schemas.tables.steps import SESSION_EVENTS
from udfs.facts.arrow_tables import arrow_schema

FETCH = 1
ORDER = [SESSION_EVENTS.broker, SESSION_EVENTS.request_time, SESSION_EVENTS.connection_id, SESSION_EVENTS.exchange_no,
         SESSION_EVENTS.position]  # fmt: skip


def session_rows(exchanges: pa.Table, partitions: pa.Table) -> pa.Table:
    """As `jobs.replays.session_events` makes them, sorted."""
    heads, parts = fetch_rows(exchanges.to_pandas()), partition_rows(partitions.to_pandas())
    joined = pd.concat([heads, parts]).sort_values(ORDER, kind="stable")
    filled: dict[str, pa.Array[Any]] = {}
    for field in arrow_schema(SESSION_EVENTS):
        column = joined[field.name] if field.name in joined else pd.Series([0] * len(joined))
        filled[field.name] = pa.Array.from_pandas(column.convert_dtypes(), type=field.type, safe=False)
    return pa.table(filled)


def micros(times: Any) -> Any:
    """Times as microseconds since 1970, null where they are."""
    utc = pd.to_datetime(times, utc=True).dt.tz_localize(None).astype("datetime64[us]")
    return utc.astype("int64").astype("Int64").where(times.notna())


def fetch_rows(x: Any) -> Any:
    """The fetches."""
    e, t = EXCHANGES, SESSION_EVENTS
    x = x[(x[e.api_key] == FETCH) & x[e.request_time].notna() & x[e.decode_fault].isna()]
    return pd.DataFrame(
        {
            t.broker: x[e.broker], t.connection_id: x[e.connection_id], t.exchange_no: x[e.exchange_no],
            t.request_time: micros(x[e.request_time]), t.position: -1, t.client_id: x[e.client_id].fillna(""),
            t.client_address: x[e.client_address],
            t.response_time: micros(
                x[e.response_first_time].fillna(x[e.response_time]).where(x[e.error_code].notna())
            ),
            t.api_version: x[e.api_version], t.session_id: x[e.fetch_session_id],
            t.session_epoch: x[e.fetch_session_epoch], t.fetch_error: x[e.error_code],
            t.throttle_time_ms: x[e.throttle_time_ms],
            t.is_follower: x[e.fetch_replica_id] >= 0,
            t.request_bytes: x[e.request_bytes].where((x[e.missing_bytes] == 0) & (x[e.request_bytes] > 0)),
            t.response_bytes: x[e.response_bytes].where((x[e.missing_bytes] == 0) & (x[e.response_bytes] > 0)),
        }
    )  # fmt: skip


def partition_rows(f: Any) -> Any:
    """Their partitions."""
    c, t = FETCH_PARTITIONS, SESSION_EVENTS
    key = f[c.topic_id].fillna(f[c.topic])
    same = (t.broker, t.connection_id, t.exchange_no, t.max_wait_ms, t.session_known, t.response_session_id,
            t.partition, t.fetch_offset, t.partition_max_bytes, t.current_leader_epoch, t.returned_bytes,
            t.high_watermark, t.log_start_offset, t.error_code, t.preferred_read_replica)  # fmt: skip
    return pd.DataFrame(
        {
            **{name: f[name] for name in same},
            t.request_time: micros(f[c.request_time]),
            t.position: f[c.read_position].fillna(np.iinfo(np.int32).max).astype("int64"),
            t.topic_key: pd.util.hash_array(key.to_numpy(object)).astype(np.int64),
            t.name_length: f[c.topic].str.encode("utf-8").str.len(),
            t.is_wanted: f[c.read_position].notna(),
            t.is_listed: f[c.request_position].notna(),
            t.is_returned: f[c.response_position].notna(),
        }
    )
