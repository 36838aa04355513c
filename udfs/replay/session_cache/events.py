"""Turns rows of SESSION_EVENTS into the records that the replay of fetch sessions takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from schemas.tables.steps import SESSION_EVENTS
from schemas.wire.fetch import SESSION_ERRORS
from udfs.columns.arrays import Ints, Records, stretch_edges
from udfs.columns.records import join_records
from udfs.columns.sentinels import NONE
from udfs.replay.session_cache.state import EPOCH_UNKNOWN, LISTED_PARTITION, NO_TIME, SESSION_FETCH, SIZE_UNKNOWN
from udfs.replay.shared.columns import int_column, known_rows, numbers_of
from udfs.replay.shared.key_numbers import key_numbers

OF_FETCH = -1
"""The position of a row that is a fetch; the rows of its partitions follow it."""
ROWS_AT_A_TIME = 50_000
"""How many rows are gathered into a part: enough that the cost of a part itself does not matter."""

_T = SESSION_EVENTS
FETCH_COLUMNS: Mapping[str, tuple[str, int]] = {
    "connection": (_T.connection_id, 0),
    "request_us": (_T.request_time, 0),
    "response_us": (_T.response_time, NO_TIME),
    "request_bytes": (_T.request_bytes, SIZE_UNKNOWN),
    "response_bytes": (_T.response_bytes, SIZE_UNKNOWN),
    "life": (_T.life, 0),
    "session_id": (_T.session_id, 0),
    "epoch": (_T.session_epoch, EPOCH_UNKNOWN),
    "version": (_T.api_version, 0),
    "error": (_T.fetch_error, 0),
    "privileged": (_T.is_follower, 0),
    "is_cut": (_T.is_cut, 0),
}
"""The column of each field of SESSION_FETCH, and the value that stands for null."""
PARTITION_COLUMNS: Mapping[str, tuple[str, int]] = {
    "topic": (_T.topic_key, 0),
    "fetch_offset": (_T.fetch_offset, -1),
    "high_watermark": (_T.high_watermark, NONE),
    "log_start_offset": (_T.log_start_offset, NONE),
    "records_bytes": (_T.returned_bytes, 0),
    "partition": (_T.partition, 0),
    "partition_max_bytes": (_T.partition_max_bytes, -1),
    "current_leader_epoch": (_T.current_leader_epoch, -1),
    "last_fetched_epoch": (_T.last_fetched_epoch, -1),
    "reader_log_start_offset": (_T.reader_log_start_offset, -1),
    "diverging_epoch": (_T.diverging_epoch, NONE),
    "preferred_read_replica": (_T.preferred_read_replica, NONE),
    "name_length": (_T.name_length, 0),
    "max_wait_ms": (_T.max_wait_ms, 0),
    "response_session_id": (_T.response_session_id, 0),
    "session_known": (_T.session_known, 0),
    "is_wanted": (_T.is_wanted, 0),
    "is_listed": (_T.is_listed, 0),
    "is_returned": (_T.is_returned, 0),
    "error": (_T.error_code, 0),
}
"""The column of each field of a partition, and the value that stands for null."""


@dataclass
class Keys:
    """The numbers of the brokers and clients that have come so far."""

    brokers: dict[str, int] = field(default_factory=dict)
    clients: dict[str, int] = field(default_factory=dict)  # by client id and address


class ListedFetches(NamedTuple):
    """Whole fetches, SESSION_FETCH[n], and the rows from which they come, LISTED_PARTITION[m], blank for a row that is
    a fetch.
    """

    fetches: Records
    rows: Records


def parts_by_life(batches: Iterable[pa.RecordBatch], keys: Keys) -> Iterator[ListedFetches]:
    """The fetches of rows of SESSION_EVENTS. Each part has fetches of one broker and one of its lives (broker.py).

    The rows are sorted by broker, request time, fetch and position; batches may be split anywhere.
    """
    for whole in parts_of_whole_fetches(batches, keys):
        whole.fetches["is_throttled"] &= returned_partitions(whole) == 0
        broker, life = whole.fetches["broker"], whole.fetches["life"]
        changes = np.flatnonzero((np.diff(broker) != 0) | (np.diff(life) != 0)) + 1
        for first, end in pairwise([0, *changes.tolist(), len(whole.fetches)]):
            if end > first:
                yield ListedFetches(whole.fetches[first:end], whole.rows)


def returned_partitions(part: ListedFetches) -> Ints:
    """How many partitions the response to each fetch has, int64[n].

    If a quota was exceeded, a broker before 2.0 (KIP-219) sent the whole response later, with its session. Since then,
    a broker sends a response without partitions at once.
    """
    before = stretch_edges(part.rows["is_returned"])
    return before[part.fetches["end"]] - before[part.fetches["first"]]


def parts_of_whole_fetches(batches: Iterable[pa.RecordBatch], keys: Keys) -> Iterator[ListedFetches]:
    """The fetches of some batches at a time. The last fetch is kept back, because the next batch may have more of its
    partitions.
    """
    held: list[ListedFetches] = []
    for batch in batches:
        held.append(part_of_batch(batch, keys))
        if sum(len(part.rows) for part in held) >= ROWS_AT_A_TIME:
            part = join_parts(held)
            if len(part.fetches) > 1:
                last_row = int(part.fetches["first"][-1]) - 1
                yield ListedFetches(part.fetches[:-1], part.rows[:last_row])
                part = ListedFetches(part.fetches[-1:].copy(), part.rows[last_row:].copy())
                part.fetches["first"] = 1
            held = [part]
    if held:
        yield join_parts(held)


def join_parts(parts: list[ListedFetches]) -> ListedFetches:
    """The parts joined. Each fetch gets its end, which is where the next fetch begins."""
    behind = stretch_edges([len(part.rows) for part in parts])
    for part, before in zip(parts, behind[:-1].tolist(), strict=True):
        part.fetches["first"] += before
    fetches = join_records(SESSION_FETCH, [part.fetches for part in parts])
    rows = join_records(LISTED_PARTITION, [part.rows for part in parts])
    fetches["end"] = np.append(fetches["first"][1:] - 1, len(rows))[: len(fetches)]
    return ListedFetches(fetches, rows)


def part_of_batch(batch: pa.RecordBatch, keys: Keys) -> ListedFetches:
    """The fetches and partitions of a batch of SESSION_EVENTS."""
    columns: dict[str, pa.Array[Any]] = dict(zip(batch.schema.names, batch.columns, strict=True))
    is_fetch = numbers_of(columns[_T.position]) == OF_FETCH
    places = np.flatnonzero(is_fetch)
    fetches, rows = np.zeros(len(places), SESSION_FETCH), np.zeros(batch.num_rows, LISTED_PARTITION)
    for name, (column, missing) in FETCH_COLUMNS.items():
        known = known_rows(columns[column])[places]
        fetches[name] = np.where(known, numbers_of(columns[column])[places], missing)
    for name, (column, missing) in PARTITION_COLUMNS.items():
        rows[name] = numbers_of(columns[column])
        if columns[column].null_count:  # null in every row that is a fetch, and often in no other
            rows[name][np.flatnonzero(~(known_rows(columns[column]) | is_fetch))] = missing
    fetches["first"] = places + 1
    broker, *client = (columns[c].take(places) for c in (_T.broker, _T.client_id, _T.client_address))
    fetches["broker"], fetches["client"] = key_numbers(keys.brokers, broker), key_numbers(keys.clients, *client)
    fetches["error"][~np.isin(fetches["error"], SESSION_ERRORS)] = 0
    fetches["is_throttled"] = int_column(batch, _T.throttle_time_ms, 0)[places] > 0
    return ListedFetches(fetches, rows)
