"""Rebuilds fetch sessions from the rows of an earlier capture set, so that the session follower can go on with them.

The rows of a connection's last fetch name all partitions of its session, in the order in which the broker read them
(`udfs.facts.session_follower`), so nothing else about a session has to be stored. A fetch that still waited for its
response when the earlier set ended is continued, too: its response is the connection's first one in the next set.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from schemas.tables.silver import FETCH_PARTITIONS
from udfs.columns.arrays import Ints, Records
from udfs.columns.arrow_columns import compute
from udfs.facts.fetch_lists import LISTED_FETCH, Forgotten, Lists, Requested, Returned
from udfs.facts.fetch_session import (
    IS_KNOWN,
    IS_READABLE,
    NEXT_EPOCH,
    NOWHERE,
    SESSION_ID,
    Session,
    find_or_add_entry,
    new_session,
)
from udfs.facts.session_follower import GREATEST_EPOCH, FollowedSession, follow_sessions
from udfs.kernels.kernel import allocating_kernel

_F = FETCH_PARTITIONS
ENTRY_COLUMNS = (
    _F.fetch_offset, _F.partition_max_bytes, _F.current_leader_epoch, _F.last_fetched_epoch,
    _F.reader_log_start_offset, _F.high_watermark, _F.last_stable_offset, _F.log_start_offset,
)  # fmt: skip
"""What a session stores for each partition, in the order of the argument of `session_of_entries`."""
FETCH_COLUMNS = (
    _F.session_id, _F.session_epoch, _F.response_session_id, _F.session_known, _F.readable_known, _F.max_bytes,
    _F.replica_id, _F.response_record_bytes,
)  # fmt: skip
"""The columns that are the same in all rows of a fetch."""
PLACE_COLUMNS = (
    _F.partition, _F.request_position, _F.read_position, _F.response_position, _F.returned_bytes,
)  # fmt: skip


class LateResponse(NamedTuple):
    """The response to a fetch that was under way: LISTED_FETCH[1] with the fields of responses, and its partitions."""

    fetch: Records
    returned: Returned


@dataclass(frozen=True)
class LastFetch:
    """The rows of a connection's last fetch that the broker did not refuse.

    columns: int64[partitions] each, by the names in ENTRY_COLUMNS, FETCH_COLUMNS and PLACE_COLUMNS; NOWHERE for null.
    topics: int64[partitions], hashes of names or ids.
    """

    columns: Mapping[str, Ints]
    topics: Ints

    def of_fetch(self, column: str) -> int:
        """The value of a column of FETCH_COLUMNS."""
        return int(self.columns[column][0])

    @property
    def is_answered(self) -> bool:
        """Whether the earlier set has the response."""
        return self.of_fetch(_F.response_record_bytes) != NOWHERE


def last_fetch(rows: pa.Table, topics: Ints) -> LastFetch:
    """The rows of a fetch, with the columns of `LastFetch`, as numbers; topics: as in LastFetch."""
    names = (*ENTRY_COLUMNS, *FETCH_COLUMNS, *PLACE_COLUMNS)
    return LastFetch({str(name): _numbers(rows[name]) for name in names}, topics)


def _numbers(column: pa.ChunkedArray[Any]) -> Ints:
    return compute.fill_null(column.cast(pa.int64()), NOWHERE).to_numpy().astype(np.int64)


@allocating_kernel
def session_of_entries(topics: Ints, partitions: Ints, values: Ints, room: int) -> Session:
    """A session with these partitions, in this order, and room for `room` more.

    topics, partitions: int64[n]. values: int64[n, 8], the ENTRY_COLUMNS.
    """
    session = new_session(len(topics) + room)
    for row in range(len(topics)):
        index, _ = find_or_add_entry(session, topics[row], partitions[row])
        entry = session.entries[index]
        entry.fetch_offset, entry.partition_max_bytes = values[row, 0], values[row, 1]
        entry.current_leader_epoch, entry.last_fetched_epoch = values[row, 2], values[row, 3]
        entry.reader_log_start_offset, entry.high_watermark = values[row, 4], values[row, 5]
        entry.last_stable_offset, entry.log_start_offset = values[row, 6], values[row, 7]
    return session


def session_behind(fetch: LastFetch, answer: LateResponse | None) -> Session | None:
    """The session of a connection after its last fetch in the earlier set; None if it had none.

    answer: the response, if the fetch waited for it when the earlier set ended and the next set has it.
    """
    epoch = fetch.of_fetch(_F.session_epoch)
    is_full = epoch == 0
    if epoch < 0 or (is_full and fetch.is_answered and fetch.of_fetch(_F.response_session_id) <= 0):
        return None
    room = 0 if answer is None else len(answer.returned.topic)
    if fetch.is_answered:
        session = _with_rows(fetch, _order_behind(fetch, is_full), room)
    else:
        order = np.argsort(_place(fetch, _F.read_position), kind="stable")
        session = _with_rows(fetch, order[:0] if is_full else order, room + len(order))
    _note_state(session.state, fetch, is_full)
    if not fetch.is_answered:
        session = _behind_answer(session, fetch, answer)
    return session


def _note_state(state: Ints, fetch: LastFetch, is_full: bool) -> None:
    """Write the state of a session, int64[8]: that after a fetch, or before the fetch's response if it has none."""
    if is_full:
        state[SESSION_ID] = max(fetch.of_fetch(_F.response_session_id), 0)
        state[IS_KNOWN] = state[IS_READABLE] = state[NEXT_EPOCH] = 1
        return
    epoch, is_closed = fetch.of_fetch(_F.session_epoch), fetch.of_fetch(_F.response_session_id) == 0
    state[SESSION_ID] = 0 if is_closed else fetch.of_fetch(_F.session_id)
    state[IS_KNOWN], state[IS_READABLE] = fetch.of_fetch(_F.session_known), fetch.of_fetch(_F.readable_known)
    behind = 1 if epoch == GREATEST_EPOCH else epoch + 1
    state[NEXT_EPOCH] = behind if fetch.is_answered else epoch


def _place(fetch: LastFetch, column: str) -> Ints:
    """A column of places, int64[partitions]. Rows without a place get one after all others."""
    place = fetch.columns[column]
    return np.where(place == NOWHERE, np.iinfo(np.int64).max, place)


def _order_behind(fetch: LastFetch, is_full: bool) -> Ints:
    """The rows of an answered fetch in the order in which the next fetch reads them, int64[partitions]. Returned
    partitions go to the end; for an incremental fetch only those with records (FetchSession, Kafka 4.3).
    """
    is_returned = fetch.columns[_F.response_position] != NOWHERE
    is_moved = is_returned & (is_full | (fetch.columns[_F.returned_bytes] > 0))
    response, read = _place(fetch, _F.response_position), _place(fetch, _F.read_position)
    return np.lexsort((response, np.where(is_moved, 0, read), is_moved))


def _with_rows(fetch: LastFetch, order: Ints, room: int) -> Session:
    values = np.stack([fetch.columns[name][order] for name in ENTRY_COLUMNS], axis=1)
    return session_of_entries(
        fetch.topics[order], fetch.columns[_F.partition][order], np.ascontiguousarray(values), room
    )


def _behind_answer(session: Session, fetch: LastFetch, answer: LateResponse | None) -> Session:
    """The session after the response for which a fetch waited; if that is not captured, the session after a gap."""
    listed = np.zeros(1, LISTED_FETCH) if answer is None else answer.fetch.copy()
    is_full = fetch.of_fetch(_F.session_epoch) == 0
    none = np.zeros(0, np.int64)
    rows = _requested_rows(fetch) if is_full else none  # an incremental fetch names only partitions of its session
    named = ENTRY_COLUMNS[: len(Requested._fields) - 2]
    listed["session_id"], listed["session_epoch"] = fetch.of_fetch(_F.session_id), fetch.of_fetch(_F.session_epoch)
    listed["max_bytes"], listed["is_follower"] = fetch.of_fetch(_F.max_bytes), fetch.of_fetch(_F.replica_id) >= 0
    listed["requested_to"] = len(rows)
    returned = Returned._make([none] * len(Returned._fields)) if answer is None else answer.returned
    lists = Lists(
        Requested(fetch.topics[rows], fetch.columns[_F.partition][rows], *(fetch.columns[c][rows] for c in named)),
        Forgotten(none, none),
        returned,
    )
    followed = FollowedSession(session, 0)
    return follow_sessions(listed, 0, lists, followed, np.zeros(1, np.int64), row_limit=1)[3].session


def _requested_rows(fetch: LastFetch) -> Ints:
    """The rows of the partitions that the request names, in the request's order: int64[requested]."""
    position = fetch.columns[_F.request_position]
    rows = np.flatnonzero(position != NOWHERE)
    return rows[np.argsort(position[rows], kind="stable")]
