"""What the replay of share sessions takes from silver tables: requests of share groups, and their connections' ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.tables.silver import CONNECTIONS
from schemas.tables.silver_shares import SHARE_FETCHES
from schemas.tables.steps import SHARE_EVENTS
from schemas.tables.values import ACKNOWLEDGE
from udfs.columns.arrays import Bools, Ints
from udfs.columns.arrow_columns import arrow_array, us_since_1970
from udfs.columns.arrow_columns import compute as pc
from udfs.replay.session_cache.share_sessions.state import BEGAN_BEFORE, END, FINAL_EPOCH, RELEASE, REQUEST
from udfs.replay.session_cache.silver_events import lives_of
from udfs.replay.shared.dealt_rows import Step
from udfs.replay.shared.silver_columns import ByConnection, event_rows, is_known, is_text, rows_where, text_or_empty

_T, _S, _C = SHARE_EVENTS, SHARE_FETCHES, CONNECTIONS
SHARE_BROKERS = Step(_T, (_T.broker,), (_T.time, _T.kind, _T.connection_id, _T.exchange_no))
SHARE_COLUMNS = (
    _S.connection_id, _S.exchange_no, _S.broker, _S.client_id, _S.kind, _S.request_time, _S.response_time, _S.group_id,
    _S.member_id, _S.share_session_epoch, _S.error_code,
)  # fmt: skip
SHARE_CONNECTION_COLUMNS = (
    _C.connection_id, _C.broker, _C.first_time, _C.last_time, _C.ended, _C.began_before_capture,
)  # fmt: skip
CONNECTION_IDS = pa.schema([pa.field("connection_id", pa.int64())])
"""Ids of connections, without duplicates in a batch."""


@dataclass(frozen=True)
class ShareConnections:
    """The connections of share groups.

    lives: from `lives_of`. ends: us since 1970, for connections whose end is known, or, in a request log, taken to be
    their last response. logged: the connections of a request log.
    """

    ids: Ints
    lives: ByConnection
    ends: ByConnection
    logged: ByConnection


def distinct_connections(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of CONNECTION_IDS from rows of `share_fetches`."""
    for batch in batches:
        yield pa.RecordBatch.from_arrays([pc.unique(batch[_S.connection_id])], schema=CONNECTION_IDS)


def share_connections(ids: Ints, connections: pa.Table) -> ShareConnections:
    """The connections of share groups. ids: int64[n]. connections: SHARE_CONNECTION_COLUMNS of all connections."""
    c = CONNECTIONS
    ids = np.unique(ids)
    own = connections.filter(pc.is_in(connections[c.connection_id], value_set=arrow_array(ids))).sort_by(
        c.connection_id
    )
    of = own[c.connection_id].combine_chunks().to_numpy()
    ended = own[c.ended].combine_chunks()
    last: Ints = own[c.last_time].cast(pa.int64()).combine_chunks().to_numpy()
    is_logged: Bools = ended.is_null().to_numpy(zero_copy_only=False)
    has_end: Bools = pc.fill_null(ended, True).to_numpy(zero_copy_only=False)
    return ShareConnections(
        ids,
        lives_of(connections),
        ByConnection(of[has_end], last[has_end]),
        ByConnection(of[is_logged], np.ones(int(is_logged.sum()), np.int64)),
    )


def share_events(batches: Iterable[pa.RecordBatch], known: ShareConnections) -> Iterator[pa.RecordBatch]:
    """A row for each request of `share_fetches`, and one for each response to a request that closes a session."""
    s = SHARE_FETCHES
    for batch in batches:
        rows = rows_where(batch, is_known(batch[s.request_time]))
        yield request_events(rows, REQUEST, us_since_1970(rows[s.request_time]), known)
        closes = pc.and_(pc.equal(rows[s.share_session_epoch], FINAL_EPOCH), is_known(rows[s.error_code]))
        closing = rows_where(rows, pc.and_(closes, is_known(rows[s.response_time])))
        yield request_events(closing, RELEASE, us_since_1970(closing[s.response_time]), known)


def request_events(rows: pa.RecordBatch, kind: int, time: pa.Array[Any], known: ShareConnections) -> pa.RecordBatch:
    """A row of SHARE_EVENTS for each of these rows of `share_fetches`. time: of the event, us since 1970."""
    t, s = SHARE_EVENTS, SHARE_FETCHES
    answered = pc.and_(is_known(rows[s.response_time]), is_known(rows[s.error_code]))
    columns = {
        **{c: rows[c] for c in (t.broker, t.connection_id, t.exchange_no, t.share_session_epoch)},
        **{c: text_or_empty(rows[c]) for c in (t.client_id, t.group_id, t.member_id)},
        t.error_code: pc.if_else(answered, rows[s.error_code], pa.scalar(None, pa.int16())),
        t.is_acknowledge: is_text(rows[s.kind], ACKNOWLEDGE),
    }
    return event_rows(columns | common_columns(rows, kind, time, known))


def common_columns(
    rows: pa.RecordBatch, kind: int, time: pa.Array[Any], known: ShareConnections
) -> dict[str, pa.Array[Any]]:
    """The columns that events of requests and events of connections have in common."""
    t = SHARE_EVENTS
    connection = rows[t.connection_id]
    return {
        t.life: known.lives.of(connection, 0),
        t.time: time,
        t.kind: pa.array(np.full(rows.num_rows, kind, np.int8)),
        t.ended_time: known.ends.of(connection, None),
        t.is_logged: pc.equal(known.logged.of(connection, 0), 1),
    }


def connection_events(batches: Iterable[pa.RecordBatch], known: ShareConnections) -> Iterator[pa.RecordBatch]:
    """A row for the end of each connection of a share group, if it is known, and a row for each connection that began
    before the capture. A request log does not say when connections began.
    """
    c = CONNECTIONS
    for batch in batches:
        of_broker = pc.and_(is_known(batch[c.broker]), is_known(batch[c.connection_id]))
        own = pc.is_in(batch[c.connection_id], value_set=arrow_array(known.ids))
        rows = rows_where(batch, pc.and_(of_broker, own))
        ends = rows_where(rows, pc.fill_null(rows[c.ended], True))
        begins = rows_where(rows, pc.and_(rows[c.began_before_capture], is_known(rows[c.ended])))
        yield connection_rows_of_kind(ends, END, us_since_1970(ends[c.last_time]), known)
        yield connection_rows_of_kind(begins, BEGAN_BEFORE, us_since_1970(begins[c.first_time]), known)


def connection_rows_of_kind(
    rows: pa.RecordBatch, kind: int, time: pa.Array[Any], known: ShareConnections
) -> pa.RecordBatch:
    """A row of SHARE_EVENTS for each of these connections."""
    t = SHARE_EVENTS
    nowhere = pa.array(np.full(rows.num_rows, -1))
    columns = {t.broker: rows[t.broker], t.connection_id: rows[t.connection_id], t.exchange_no: nowhere}
    return event_rows(columns | common_columns(rows, kind, time, known))
