"""Rows of SESSION_EVENTS as the arrays that the replay of fetch sessions takes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from schemas.tables.steps import SESSION_EVENTS
from schemas.wire.fetch import SESSION_ERRORS
from udfs.columns.arrays import Records, edges, read_only
from udfs.replay.session_cache.session_entries import NOT_TOLD, NOWHERE, Partitions
from udfs.replay.session_cache.session_fetches import FETCH, NO_TIME, UNTOLD_EPOCH
from udfs.replay.shared.columns import int_column
from udfs.replay.shared.key_numbers import key_numbers

OF_FETCH = -1  # position of a row that is a fetch
NAME_PARTS = (SESSION_EVENTS.client_id, SESSION_EVENTS.client_address)
SIZE_UNKNOWN = -1


def events_of(batch: pa.RecordBatch, names: dict[str, int], number: int) -> tuple[Records, Partitions]:
    """(FETCH[fetches], their partitions) of whole fetches of one broker.

    names: a number for each client id and address, to which new ones are added. number: of the first fetch among the
    broker's.
    """
    t = SESSION_EVENTS
    is_fetch = int_column(batch, t.position, 0) == OF_FETCH
    at = np.flatnonzero(is_fetch)
    fetches = np.zeros(len(at), FETCH)
    heads, parts = batch.filter(pa.array(is_fetch)), batch.filter(pa.array(~is_fetch))
    fetches["number"] = number + np.arange(len(at))
    fetches["name"] = key_numbers(names, *(heads[part] for part in NAME_PARTS))
    for field, column, missing in (
        ("connection", t.connection_id, 0), ("request_us", t.request_time, 0),
        ("response_us", t.response_time, NO_TIME), ("version", t.api_version, 0),
        ("session_id", t.session_id, 0), ("epoch", t.session_epoch, UNTOLD_EPOCH),
        ("request_bytes", t.request_bytes, SIZE_UNKNOWN), ("response_bytes", t.response_bytes, SIZE_UNKNOWN),
    ):  # fmt: skip
        fetches[field] = int_column(heads, column, missing)
    error = int_column(heads, t.fetch_error, 0)
    fetches["error"] = np.where(np.isin(error, SESSION_ERRORS), error, 0)
    fetches["is_cut"] = int_column(heads, t.is_cut, 0)
    fetches["privileged"] = int_column(heads, t.is_follower, 0)
    fetches["is_throttled"] = int_column(heads, t.throttle_time_ms, 0) > 0
    fetches["first"] = at - np.arange(len(at))
    fetches["end"] = np.append(fetches["first"][1:], parts.num_rows)
    rows = partitions_of(parts)
    add_what_partitions_tell(fetches, parts, rows)
    return fetches, rows


def partitions_of(parts: pa.RecordBatch) -> Partitions:
    """The rows that are partitions."""
    t = SESSION_EVENTS
    return Partitions(
        *(
            read_only(int_column(parts, column, missing).astype(np.int64))
            for column, missing in (
                (t.topic_key, 0), (t.name_length, 0), (t.partition, 0), (t.is_wanted, 0), (t.is_listed, 0),
                (t.is_returned, 0), (t.fetch_offset, -1), (t.partition_max_bytes, -1), (t.current_leader_epoch, -1),
                (t.returned_bytes, 0), (t.high_watermark, NOT_TOLD), (t.log_start_offset, NOT_TOLD), (t.error_code, 0),
                (t.preferred_read_replica, NOWHERE),
            )
        )
    )  # fmt: skip


def add_what_partitions_tell(fetches: Records, parts: pa.RecordBatch, rows: Partitions) -> None:
    """What each fetch's partitions say of it: the first one of the session, all of them of its set."""
    t = SESSION_EVENTS
    there = fetches["end"] > fetches["first"]
    first = fetches["first"][there]
    fetches["has_partitions"] = there
    fetches["is_known"] = 1
    fetches["is_known"][there] = int_column(parts, t.session_known, 0)[first]
    fetches["max_wait_us"][there] = 1000 * np.maximum(int_column(parts, t.max_wait_ms, 0)[first], 0)
    fetches["response_session_id"][there] = int_column(parts, t.response_session_id, 0)[first]
    is_full = np.repeat(fetches["epoch"] == 0, fetches["end"] - fetches["first"])
    strayed = np.where(rows.is_wanted == 1, is_full & (rows.is_returned == 0), rows.is_returned == 1)
    so_far = edges(strayed)
    fetches["strayed"] = so_far[fetches["end"]] - so_far[fetches["first"]]
