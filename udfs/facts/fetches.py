"""Fetch requests and responses as rows of `fetch_partitions`: what was requested, and what was returned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.tables.silver import FETCH_PARTITIONS
from schemas.tables.values import CONSUMER, FOLLOWER, FULL, INCREMENTAL, SESSIONLESS
from schemas.wire.fetch import FETCH_REQUEST, FETCH_REQUEST_START, FETCH_RESPONSE, RACKS_FROM
from udfs.columns.arrays import Bytes, Ints, Records
from udfs.columns.arrow_columns import arrow_array, dictionary_column
from udfs.columns.picking import pick_values, position_among
from udfs.columns.sentinels import UNKNOWN
from udfs.facts.arrow_tables import Values, make_rows
from udfs.facts.exchange_messages import Messages
from udfs.facts.exchanges import Exchanges, shared_columns
from udfs.facts.fetch_lists import LISTED_FETCH, FetchPartitionRows, Forgotten, Lists, Requested, Returned
from udfs.facts.fetch_session import NOWHERE, Session, new_session, resize_session
from udfs.facts.message_bodies import note_faults, request_bodies, request_body_starts, response_bodies
from udfs.facts.number_columns import Picked
from udfs.facts.session_follower import FollowedSession, follow_sessions
from udfs.wire.encoding import least_bytes
from udfs.wire.layout import newest_version
from udfs.wire.messages import DecodedFrames, decode_bodies
from udfs.wire.record_batches import HEADER_UP_TO_MAGIC, MAGIC_VALUE_V2

ROWS_AT_A_TIME = 200_000
KINDS = pa.array([FULL, INCREMENTAL, SESSIONLESS])
READERS = pa.array([CONSUMER, FOLLOWER])
_NEWEST = newest_version(FETCH_REQUEST_START.versions)
START_BYTES = np.array([least_bytes(FETCH_REQUEST_START.fields, version, False) for version in range(_NEWEST + 1)])
"""The bytes of a body before its topics, by version: int64[versions]."""
NO_SESSIONS: Mapping[int, Session] = MappingProxyType({})


@dataclass
class CarriedSession:
    """The fetch session of the connection that the last chunk left unfinished."""

    followed: FollowedSession = field(default_factory=lambda: FollowedSession(new_session(1), NOWHERE))


@dataclass(frozen=True)
class FetchMessages:
    """A chunk's Fetch messages.

    request_exchanges, response_exchanges: int64[n], the exchange of each message, UNKNOWN if it could not be decoded.
    """

    exchanges: Exchanges
    request: DecodedFrames
    response: DecodedFrames
    request_exchanges: Ints
    response_exchanges: Ints

    @cached_property
    def lists(self) -> Lists:
        """The partitions that the messages list."""
        return partition_lists(self.exchanges, self.request, self.response)


def decode_fetches(exchanges: Exchanges, which: Ints) -> FetchMessages:
    """Decode some Fetch exchanges, and note what their messages say about the exchange, even for cut requests.

    which: int64[n], indices of exchanges.
    """
    note_cut_sessions(exchanges, which)
    arena = exchanges.frames.arena
    request_exchanges, bodies = request_bodies(exchanges, which)
    request = decode_bodies(FETCH_REQUEST, arena, *bodies)
    response_exchanges, bodies = response_bodies(exchanges, which)
    response = decode_bodies(FETCH_RESPONSE, arena, *bodies)
    return fetch_messages(exchanges, Messages(request_exchanges, request, response_exchanges, response))


def fetch_messages(exchanges: Exchanges, messages: Messages) -> FetchMessages:
    """Decoded Fetch messages as FetchMessages. Notes their faults, and what they say about the exchange."""
    request, response = messages.request, messages.response
    requests_ok = note_faults(exchanges, messages.request_exchanges, request.fault)
    of_request, top = messages.request_exchanges[requests_ok], request.levels[""]
    exchanges.fetch_max_bytes[of_request] = top.column("max_bytes")[requests_ok]
    exchanges.fetch_replica_id[of_request] = replica_ids(request)[requests_ok]
    exchanges.fetch_session_id[of_request] = top.column("session_id")[requests_ok]
    exchanges.fetch_session_epoch[of_request] = top.column("session_epoch")[requests_ok]
    exchanges.fetch_rack[of_request] = consumer_racks(exchanges, messages)[requests_ok]
    responses_ok = note_faults(exchanges, messages.response_exchanges, response.fault)
    of_response, top = messages.response_exchanges[responses_ok], response.levels[""]
    exchanges.error[of_response] = top.column("error_code")[responses_ok]
    exchanges.throttle[of_response] = top.column("throttle_time_ms")[responses_ok]
    return FetchMessages(
        exchanges=exchanges,
        request=request,
        response=response,
        request_exchanges=np.where(requests_ok, messages.request_exchanges, UNKNOWN),
        response_exchanges=np.where(responses_ok, messages.response_exchanges, UNKNOWN),
    )


def partition_lists(exchanges: Exchanges, request: DecodedFrames, response: DecodedFrames) -> Lists:
    """The partitions that Fetch requests and responses list."""
    arena, names = exchanges.frames.arena, exchanges.names
    requested, forgotten = request.levels["topics.partitions"], request.levels["forgotten_topics_data.partitions"]
    return Lists(
        Requested(
            names.learn_topics(arena, request.levels["topics"])[requested.parent],
            *(requested.column(name) for name in Requested._fields[1:]),
        ),
        Forgotten(
            names.learn_topics(arena, request.levels["forgotten_topics_data"])[forgotten.parent],
            forgotten.column("value"),
        ),
        returned_partitions(exchanges, response),
    )


def returned_partitions(exchanges: Exchanges, response: DecodedFrames) -> Returned:
    """The partitions that Fetch responses list."""
    arena, returned = exchanges.frames.arena, response.levels["responses.partitions"]
    return Returned(
        exchanges.names.learn_topics(arena, response.levels["responses"])[returned.parent],
        returned.column("partition_index"),
        returned.span("records")[1],
        first_offsets(arena, *returned.span("records")),
        *(returned.column(name) for name in Returned._fields[4:]),
    )


def first_offsets(arena: Bytes, starts: Ints, sizes: Ints) -> Ints:
    """The offset of the first record of each returned partition, int64[n]; NOWHERE if there are no records.

    Formats 0 and 1 are left out: a compressed message there has the offset of its last record.
    arena: uint8. starts, sizes: int64[n], where the records are; start is NOWHERE for request logs, which have none.
    """
    offsets = np.full(len(starts), NOWHERE)
    rows = np.flatnonzero((sizes >= HEADER_UP_TO_MAGIC) & (starts != NOWHERE))
    rows = rows[arena[starts[rows] + HEADER_UP_TO_MAGIC - 1] == MAGIC_VALUE_V2]
    offsets[rows] = arena[starts[rows][:, None] + np.arange(8)].view(">i8")[:, 0]
    return offsets


def row_ranges(decoded: DecodedFrames, path: str, frames: int) -> tuple[Ints, Ints]:
    """(first row, end) of each frame in a level that is two arrays deep: int64[frames] both; frames: their number."""
    level = decoded.levels[path]
    frame = decoded.levels[path.rpartition(".")[0]].parent[level.parent]
    rows = np.bincount(frame, minlength=frames)
    end = np.cumsum(rows)
    return end - rows, end


def decoded_fetches(exchanges: Exchanges, messages: FetchMessages) -> Records:
    """The exchanges whose request was decoded, as LISTED_FETCH[n] for `udfs.facts.session_follower`."""
    usable = messages.request_exchanges != UNKNOWN
    fetches = np.zeros(int(usable.sum()), LISTED_FETCH)
    top = messages.request.levels[""]
    fetches["connection"] = exchanges.connection[messages.request_exchanges[usable]]
    for name in ("session_id", "session_epoch", "max_bytes"):
        fetches[name] = top.column(name)[usable]
    for name, path in (("requested", "topics.partitions"), ("forgotten", "forgotten_topics_data.partitions")):
        first, end = row_ranges(messages.request, path, len(usable))
        fetches[f"{name}_from"], fetches[f"{name}_to"] = first[usable], end[usable]
    fetches["is_follower"] = replica_ids(messages.request)[usable] >= 0
    row = np.full(len(exchanges), UNKNOWN)
    there = messages.response_exchanges != UNKNOWN
    row[messages.response_exchanges[there]] = np.flatnonzero(there)
    response_row = row[messages.request_exchanges[usable]]
    fetches["is_answered"] = response_row != UNKNOWN
    for name, values in response_fields(messages.response, len(there)).items():
        fetches[name] = pick_values(values, response_row, 0)
    return fetches


def response_fields(response: DecodedFrames, frames: int) -> dict[str, Ints]:
    """The fields of LISTED_FETCH that responses have, int64[frames] each; frames: the number of responses."""
    first, end = row_ranges(response, "responses.partitions", frames)
    top = response.levels[""]
    return {
        "returned_from": first,
        "returned_to": end,
        "response_session_id": top.column("session_id"),
        "response_error": top.column("error_code"),
        "is_throttled": (top.column("throttle_time_ms") > 0).astype(np.int64),
    }


def session_capacities(fetches: Records) -> Ints:
    """The most partitions that the session of each fetch's connection can hold in this chunk: int64[fetches]."""
    rows = fetches["requested_to"] - fetches["requested_from"] + fetches["returned_to"] - fetches["returned_from"]
    _, connection = np.unique(fetches["connection"], return_inverse=True)
    return (np.bincount(connection, rows).astype(np.int64) + 1)[connection] if len(fetches) else rows


def fetch_rows(
    exchanges: Exchanges,
    messages: FetchMessages,
    carried: CarriedSession,
    earlier: Mapping[int, Session] = NO_SESSIONS,
) -> Iterator[pa.RecordBatch]:
    """Rows of `fetch_partitions` for decoded Fetch messages.

    carried: the session that the last chunk left unfinished; afterwards, the one that this chunk leaves. earlier:
    sessions from an earlier capture set that continue with the first fetch here, by connection of the chunk.
    """
    fetches = decoded_fetches(exchanges, messages)
    capacity = session_capacities(fetches)
    exchange = messages.request_exchanges[messages.request_exchanges != UNKNOWN]
    followed = carried.followed
    if followed.connection != NOWHERE:
        goes_on = len(fetches) and fetches["connection"][0] == followed.connection
        session = resize_session(followed.session, int(capacity[0]) if goes_on else 0)
        followed = FollowedSession(session, followed.connection)
    going_on = sorted(earlier)
    at = 0
    for stop, next_one in zip(
        [*np.searchsorted(fetches["connection"], going_on).tolist(), len(fetches)], [*going_on, NOWHERE], strict=True
    ):
        while at < stop:
            room, n, at, followed = follow_sessions(
                fetches[:stop], at, messages.lists, followed, capacity, ROWS_AT_A_TIME
            )
            rows = FetchPartitionRows._make(column[:n] for column in room)
            exchanges.readable_known[exchange[rows.fetch]] = rows.is_readable
            yield followed_partition_rows(exchanges, messages, fetches, exchange, rows)
        if stop < len(fetches):
            followed = FollowedSession(resize_session(earlier[next_one], int(capacity[stop])), next_one)
    idle = (fetches["session_epoch"] > 0) & (exchanges.readable_known[exchange] == UNKNOWN)
    exchanges.readable_known[exchange[idle]] = fetches["is_readable"][idle]  # fetches of no partitions
    is_unfinished = len(exchanges.frames.connections) > exchanges.frames.finished == followed.connection
    carried.followed = FollowedSession(followed.session, 0 if is_unfinished else NOWHERE)


def replica_ids(request: DecodedFrames) -> Ints:
    """The broker that sends each request as a follower, -1 for a consumer: int64[requests]."""
    top = request.levels[""]
    replica = top.column("replica_id")
    return np.where(replica == -1, top.column("replica_state.replica_id"), replica)


def consumer_racks(exchanges: Exchanges, messages: Messages) -> Ints:
    """The hash of the rack in each consumer's request, ABSENT for followers and for versions without a rack:
    int64[requests].
    """
    starts, lengths = messages.request.levels[""].span("rack_id")
    versions = exchanges.api_version[messages.request_exchanges]
    has_rack = (replica_ids(messages.request) < 0) & (versions >= RACKS_FROM)
    return exchanges.names.learn(exchanges.frames.arena, starts, np.where(has_rack, lengths, NOWHERE))


def consumer_exchanges(messages: FetchMessages) -> Ints:
    """The exchanges whose request was decoded and comes from a consumer: int64[n]."""
    return messages.request_exchanges[(messages.request_exchanges != UNKNOWN) & (replica_ids(messages.request) < 0)]


def request_columns(exchanges: Exchanges, messages: FetchMessages, rows: Ints, exchange: Ints) -> dict[str, Values]:
    """Columns that are the same for all partitions of a request.

    rows, exchange: int64[n], the request and the exchange of each row.
    """
    top = messages.request.levels[""]
    replica, epoch = replica_ids(messages.request), top.column("session_epoch")
    return {
        FETCH_PARTITIONS.reader: dictionary_column(READERS, (replica >= 0).astype(np.int32)[rows]),
        FETCH_PARTITIONS.replica_id: Picked(replica, rows),
        FETCH_PARTITIONS.api_version: Picked(exchanges.api_version, exchange),
        FETCH_PARTITIONS.kind: dictionary_column(KINDS, np.select([epoch == 0, epoch > 0], [0, 1], default=2)[rows]),
        **{
            str(column): Picked(top.column(column), rows)
            for column in (
                FETCH_PARTITIONS.max_wait_ms,
                FETCH_PARTITIONS.min_bytes,
                FETCH_PARTITIONS.max_bytes,
                FETCH_PARTITIONS.isolation_level,
                FETCH_PARTITIONS.session_id,
                FETCH_PARTITIONS.session_epoch,
            )
        },
    }


def followed_partition_rows(
    exchanges: Exchanges, messages: FetchMessages, fetches: Records, exchange: Ints, rows: FetchPartitionRows
) -> pa.RecordBatch:
    """Rows of `fetch_partitions` from the rows of the session follower. exchange: int64[fetches], of each fetch."""
    fetch, requested, returned = rows.fetch, rows.requested, rows.returned
    request = np.flatnonzero(messages.request_exchanges != UNKNOWN)[fetch]
    answered, exchange_of_row = (fetches["is_answered"] == 1)[fetch], exchange[fetch]
    response = messages.response.levels["responses.partitions"]
    request_level = messages.request.levels["topics.partitions"]
    request_of_partition = messages.request.levels["topics"].parent[request_level.parent]
    response_of_partition = messages.response.levels["responses"].parent[response.parent]
    records = np.maximum(pick_values(messages.lists.returned.records_bytes, returned, 0), 0)
    total = np.bincount(fetch, records, len(fetches)).astype(np.int64)
    has_request = (requested != NOWHERE) | (rows.fetch_offset >= 0)
    topic, topic_id = exchanges.names.topic_columns(rows.topic)
    t = FETCH_PARTITIONS
    return make_rows(
        t,
        shared_columns(exchanges, exchange_of_row)
        | request_columns(exchanges, messages, request, exchange_of_row)
        | {
            t.response_session_id: Picked(fetches["response_session_id"], fetch, answered),
            t.session_known: rows.is_known == 1,
            t.readable_known: rows.is_readable == 1,
            t.is_delayed: (rows.is_delayed == 1) & (replica_ids(messages.request) >= 0)[request],
            t.topic: topic,
            t.topic_id: topic_id,
            t.partition: rows.partition,
            t.request_position: Picked(position_among(request_of_partition), requested),
            t.read_position: Picked(rows.read_position, known=rows.read_position != NOWHERE),
            t.response_position: Picked(position_among(response_of_partition), returned),
            t.fetch_offset: Picked(rows.fetch_offset, known=has_request),
            t.partition_max_bytes: Picked(rows.partition_max_bytes, known=has_request),
            t.current_leader_epoch: Picked(rows.current_leader_epoch, known=has_request),
            t.last_fetched_epoch: Picked(rows.last_fetched_epoch, known=has_request),
            t.reader_log_start_offset: Picked(rows.reader_log_start_offset, known=has_request),
            t.returned_bytes: Picked(records, known=answered),
            t.response_record_bytes: Picked(total, fetch, answered),
            t.high_watermark: Picked(rows.high_watermark, known=answered & (rows.high_watermark >= 0)),
            t.last_stable_offset: Picked(rows.last_stable_offset, known=answered & (rows.last_stable_offset >= 0)),
            t.log_start_offset: Picked(rows.log_start_offset, known=answered & (rows.log_start_offset >= 0)),
            t.preferred_read_replica: Picked(response.column("preferred_read_replica"), returned),
            t.diverging_epoch: Picked(response.column("diverging_epoch.epoch"), returned),
            t.aborted_producer_ids: aborted_lists(messages.response, "producer_id", returned),
            t.aborted_first_offsets: aborted_lists(messages.response, "first_offset", returned),
            t.error_code: Picked(pick_values(response.column("error_code"), returned, 0), known=answered),
            t.response_error_code: Picked(fetches["response_error"], fetch, answered),
            t.throttle_time_ms: Picked(exchanges.throttle, exchange_of_row, answered),
        },
    )


def aborted_lists(response: DecodedFrames, name: str, returned: Ints) -> pa.Array[Any]:
    """A field of the aborted transactions of returned partitions, as lists; null if there are none.

    returned: int64[rows], rows of the response's partitions, or NOWHERE.
    """
    aborted = response.levels["responses.partitions.aborted_transactions"]
    offsets = np.searchsorted(aborted.parent, np.arange(response.levels["responses.partitions"].rows + 1))
    has_none = (returned == NOWHERE) | (pick_values(np.diff(offsets), returned, 0) == 0)
    values: pa.Array[Any] = pa.array(aborted.column(name), pa.int64())
    lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)
    return lists.take(arrow_array(returned, ~has_none))


def note_cut_sessions(exchanges: Exchanges, which: Ints) -> None:
    """Note the session ids and epochs of cut requests among some Fetch exchanges, unless a version is unknown.

    which: int64[n], indices of exchanges.
    """
    cut, bodies = request_body_starts(exchanges, which)
    ends = bodies.starts + START_BYTES[np.clip(bodies.versions, 0, _NEWEST)]
    is_there = ends <= bodies.ends
    if not is_there.any():  # the usual case: the reader then is not needed
        return
    start = decode_bodies(
        FETCH_REQUEST_START, exchanges.frames.arena, bodies.starts[is_there], ends[is_there], bodies.versions[is_there]
    )
    fine, top = start.fault == 0, start.levels[""]
    exchange = cut[is_there][fine]
    exchanges.fetch_session_id[exchange] = top.column("session_id")[fine]
    exchanges.fetch_session_epoch[exchange] = top.column("session_epoch")[fine]
