"""What the replay of fetch sessions takes from silver tables: each fetch, and after it each of its partitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa

from schemas.tables.silver import CONNECTIONS, EXCHANGES, FETCH_PARTITIONS
from schemas.tables.steps import SESSION_EVENTS
from schemas.wire.fetch import FETCH_REQUEST
from schemas.wire.fetch_sessions import FIRST_WITH_SESSIONS
from udfs.columns.arrays import stretch_edges
from udfs.columns.arrow_columns import compute as pc
from udfs.columns.arrow_columns import us_since_1970
from udfs.columns.time_units import ALWAYS as NEVER_OPEN
from udfs.facts.metadata_log import fetches_metadata_log
from udfs.replay.session_cache.events import OF_FETCH
from udfs.replay.shared.dealt_rows import Step
from udfs.replay.shared.silver_columns import (
    ByConnection,
    Column,
    event_rows,
    first_text,
    is_known,
    rows_where,
    text_bytes,
    text_hash,
    text_or_empty,
)
from udfs.wire.fetch_sizes import FIRST_WITH_TOPIC_IDS

_T, _X, _F = SESSION_EVENTS, EXCHANGES, FETCH_PARTITIONS
BROKERS = Step(
    _T,
    (_T.broker,),
    (_T.request_time, _T.connection_id, _T.exchange_no, _T.position, _T.topic_key, _T.partition),
)
LAST = (1 << 31) - 1
"""The position of partitions that the broker does not read for a fetch."""
EXCHANGE_COLUMNS = (
    _X.connection_id, _X.exchange_no, _X.broker, _X.client_address, _X.client_id, _X.api_key, _X.api_version,
    _X.request_time, _X.response_time, _X.response_first_time, _X.request_bytes, _X.response_bytes, _X.missing_bytes,
    _X.unsent_bytes, _X.error_code, _X.throttle_time_ms, _X.fetch_session_id, _X.fetch_session_epoch,
    _X.fetch_replica_id,
)  # fmt: skip
PARTITION_COLUMNS = (
    _F.connection_id, _F.exchange_no, _F.broker, _F.request_time, _F.read_position, _F.request_position,
    _F.response_position, _F.topic, _F.topic_id, _F.partition, _F.max_wait_ms, _F.session_known,
    _F.response_session_id, _F.fetch_offset, _F.partition_max_bytes, _F.current_leader_epoch,
    _F.last_fetched_epoch, _F.reader_log_start_offset, _F.diverging_epoch, _F.returned_bytes,
    _F.high_watermark, _F.log_start_offset, _F.error_code, _F.preferred_read_replica, _F.api_version,
)  # fmt: skip

LIFE_COLUMNS = (CONNECTIONS.broker, CONNECTIONS.connection_id, CONNECTIONS.first_time, CONNECTIONS.last_time)


def fetch_events(batches: Iterable[pa.RecordBatch], lives: ByConnection) -> Iterator[pa.RecordBatch]:
    """A row for each Fetch request, from rows of EXCHANGES. A request that is cut off, or could not be decoded, has a
    row if its version has sessions. Fetches of the metadata log have none, because no broker's cache is about them.

    lives: from `lives_of`.
    """
    t, x = SESSION_EVENTS, EXCHANGES
    for batch in batches:
        may_have_session = pc.or_(
            is_known(batch[x.fetch_session_epoch]),
            pc.fill_null(pc.greater_equal(batch[x.api_version], FIRST_WITH_SESSIONS), False),
        )
        is_fetch = pc.and_(pc.equal(batch[x.api_key], FETCH_REQUEST.api_key), is_known(batch[x.request_time]))
        of_log = fetches_metadata_log(
            *(batch[c] for c in (x.fetch_replica_id, x.fetch_session_id, x.fetch_session_epoch, x.api_version))
        )
        rows = rows_where(batch, pc.and_not(pc.and_(is_fetch, may_have_session), of_log))
        is_whole = pc.equal(pc.add(rows[x.missing_bytes], rows[x.unsent_bytes]), 0)
        # Nothing is known of a response that is cut off, not even its session. Of a response to a request without an
        # epoch, only the time is used.
        is_decoded = pc.or_(is_known(rows[x.error_code]), pc.invert(is_known(rows[x.fetch_session_epoch])))
        answered = pc.coalesce(rows[x.response_first_time], rows[x.response_time])
        null = pa.scalar(None, pa.int64())
        columns = {
            **{c: rows[c] for c in (t.broker, t.connection_id, t.exchange_no, t.client_address, t.api_version)},
            t.throttle_time_ms: rows[x.throttle_time_ms],
            t.life: lives.of(rows[x.connection_id], 0),
            t.request_time: us_since_1970(rows[x.request_time]),
            t.position: pa.repeat(pa.scalar(OF_FETCH, pa.int64()), rows.num_rows),
            t.client_id: text_or_empty(rows[x.client_id]),
            t.response_time: pc.if_else(is_decoded, us_since_1970(answered), null),
            t.session_id: rows[x.fetch_session_id],
            t.session_epoch: rows[x.fetch_session_epoch],
            t.is_cut: pc.invert(is_known(rows[x.fetch_replica_id])),
            t.fetch_error: rows[x.error_code],
            t.is_follower: pc.greater_equal(rows[x.fetch_replica_id], 0),
            **{
                c: pc.if_else(pc.and_(is_whole, pc.greater(rows[c], 0)), rows[c], null)
                for c in (t.request_bytes, t.response_bytes)
            },
        }
        yield event_rows(columns)


def partition_events(batches: Iterable[pa.RecordBatch], lives: ByConnection) -> Iterator[pa.RecordBatch]:
    """A row for each partition of a fetch, from rows of FETCH_PARTITIONS. lives: from `lives_of`."""
    t, f = SESSION_EVENTS, FETCH_PARTITIONS
    as_they_are = (
        t.broker, t.connection_id, t.exchange_no, t.max_wait_ms, t.session_known, t.response_session_id, t.partition,
        t.fetch_offset, t.partition_max_bytes, t.current_leader_epoch, t.last_fetched_epoch,
        t.reader_log_start_offset, t.diverging_epoch, t.returned_bytes, t.high_watermark,
        t.log_start_offset, t.error_code, t.preferred_read_replica,
    )  # fmt: skip
    for batch in batches:
        rows = rows_where(batch, is_known(batch[f.request_time]))
        columns = {
            **{c: rows[c] for c in as_they_are},
            t.life: lives.of(rows[f.connection_id], 0),
            t.request_time: us_since_1970(rows[f.request_time]),
            t.position: pc.fill_null(rows[f.read_position], LAST).cast(pa.int64()),
            t.topic_key: topic_keys(rows),
            t.name_length: text_bytes(rows[f.topic]),
            t.is_wanted: is_known(rows[f.read_position]),
            t.is_listed: is_known(rows[f.request_position]),
            t.is_returned: is_known(rows[f.response_position]),
        }
        yield event_rows(columns)


def topic_keys(rows: pa.RecordBatch) -> Column:
    """The hash of what a session knows each topic by: its id, or before version 13 of Fetch its name.

    A session without ids keeps a partition when its topic is deleted and made again (FetchSession.CachedPartition,
    Kafka 4.3).
    """
    f = FETCH_PARTITIONS
    topic_id, name = rows[f.topic_id], rows[f.topic]
    has_ids = pc.greater_equal(rows[f.api_version], FIRST_WITH_TOPIC_IDS)
    return pc.if_else(has_ids, text_hash(first_text(topic_id, name)), text_hash(first_text(name, topic_id)))


def lives_of(connections: pa.Table) -> ByConnection:
    """How often all connections to its broker had ended before a connection was opened, for each connection with more
    than 0. A broker that is restarted has no earlier sessions.

    connections: broker, connection_id, first_time and last_time of CONNECTIONS.
    """
    c = CONNECTIONS
    rows = connections.filter(pc.is_valid(connections[c.broker]))
    broker = rows[c.broker].combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
    ids, first, last = (
        rows[name].cast(pa.int64()).combine_chunks().to_numpy() for name in (c.connection_id, c.first_time, c.last_time)
    )
    order = np.lexsort((ids, first, broker))
    life = np.zeros(len(order), np.int64)
    for begin, end in pairwise(stretch_edges(np.bincount(broker)).tolist()):
        of_broker = order[begin:end]
        open_until = np.maximum.accumulate(np.append(NEVER_OPEN, last[of_broker][:-1]))[: end - begin]
        life[of_broker] = np.cumsum((first[of_broker] > open_until) & (np.arange(end - begin) > 0))
    later = np.flatnonzero(life > 0)
    later = later[np.argsort(ids[later])]
    return ByConnection(ids[later], life[later])
