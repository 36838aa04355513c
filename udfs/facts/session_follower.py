"""Finds all partitions of each fetch of a connection, in the order in which the broker reads them (KIP-227).

A full fetch names every partition. An incremental fetch names only what changed since the session's last fetch. The
rest is found by following the session as the broker does (org.apache.kafka.server.FetchSession and FetchContext, Kafka
4.3). If a session was opened before the capture began, or if the capture lacks one of its responses, only some of its
partitions are known. Its rows are marked, and `joined_session` finds out when the known partitions are all those that
have something to read.
"""

from __future__ import annotations

from typing import NamedTuple

from schemas.wire.errors import INVALID_FETCH_SESSION_EPOCH
from udfs.columns.arrays import Ints, Record, Records
from udfs.facts.fetch_lists import FetchPartitionRows, Forgotten, Lists, Requested, Returned, unwritten_rows
from udfs.facts.fetch_session import (
    GENERATION,
    IS_BEHIND_GAP,
    IS_KNOWN,
    IS_READABLE,
    NEXT_EPOCH,
    NO_HIGH_WATERMARK,
    NOWHERE,
    ORDERED,
    SESSION_ID,
    Session,
    clear_marks,
    entry_number,
    find_or_add_entry,
    find_slot,
    forget_all,
    keep_ordered,
    new_session,
)
from udfs.facts.joined_session import join_session, learn_from_response, note_gap, remove_returned_in_gap
from udfs.kernels.kernel import allocating_kernel, kernel

GREATEST_EPOCH = (1 << 31) - 1


@kernel
def apply_requested(session: Session, requested: Requested, row: int) -> None:
    """Apply one partition of a request. A new partition goes to the tail, others keep their place. If a partition is
    repeated, the last one counts.
    """
    index, _ = find_or_add_entry(session, requested.topic[row], requested.partition[row])
    entry = session.entries[index]
    is_first = entry.requested == NOWHERE and entry.current_leader_epoch == requested.current_leader_epoch[row]
    is_not_behind = 0 <= entry.high_watermark <= entry.fetch_offset < requested.fetch_offset[row]
    entry.moves_on = 1 if is_first and is_not_behind else 0
    entry.requested = row if entry.requested == NOWHERE else entry.requested
    entry.fetch_offset = requested.fetch_offset[row]
    entry.partition_max_bytes = requested.partition_max_bytes[row]
    entry.current_leader_epoch = requested.current_leader_epoch[row]
    entry.last_fetched_epoch = requested.last_fetched_epoch[row]
    entry.reader_log_start_offset = requested.log_start_offset[row]


@kernel
def remove_forgotten(session: Session, forgotten: Forgotten, first: int, end: int) -> None:
    """Remove the partitions that a request forgets, rows [first, end)."""
    for row in range(first, end):
        slot = find_slot(session, forgotten.topic[row], forgotten.partition[row])
        if session.stamps[slot] == session.state[GENERATION]:
            session.entries[session.slots[slot]].is_live = 0
    if end > first:
        keep_ordered(session)


@kernel
def note_returned(session: Session, returned: Returned, first: int, end: int) -> int:
    """Note what a response has of each partition. Unknown partitions go to the tail; returns how many there were."""
    unknown = 0
    for row in range(first, end):
        index, is_new = find_or_add_entry(session, returned.topic[row], returned.partition[row])
        unknown += is_new
        entry = session.entries[index]
        entry.returned = row
        entry.high_watermark = returned.high_watermark[row]
        entry.last_stable_offset = returned.last_stable_offset[row]
        entry.log_start_offset = returned.log_start_offset[row]
    return unknown


@kernel
def shows_wait(session: Session) -> bool:
    """Whether a response shows that the fetch, if it is a follower's, was parked before it was answered.

    A leader reads first, and only then notes how far the follower is (Partition.fetchRecords, Kafka 4.3; also in 0.10).
    Until then the high watermark is not above the offset that the follower asked for before, as long as the leader
    waits for that follower. So a response with a higher high watermark comes from a second read, that of
    DelayedFetch.onComplete: the first read had found less than min_bytes.
    """
    for position in range(session.state[ORDERED]):
        entry = session.entries[session.order[position]]
        if entry.moves_on == 1 and entry.returned != NOWHERE and entry.high_watermark >= entry.fetch_offset:
            return True
    return False


@kernel
def write_rows(session: Session, fetch: Record, f: int, n_read: int, rows: FetchPartitionRows, n: int) -> int:
    """Write a row for each partition of the session, for fetch number `f`; returns the new number of rows.

    n_read: how many partitions the session had when the broker read them. n: the number of rows before.
    """
    is_delayed = fetch.is_known == 1 and fetch.session_epoch > 0 and shows_wait(session)
    for position in range(session.state[ORDERED]):
        entry = session.entries[session.order[position]]
        rows.fetch[n], rows.is_delayed[n] = f, 1 if is_delayed else 0
        rows.is_known[n], rows.is_readable[n] = fetch.is_known, fetch.is_readable
        rows.topic[n], rows.partition[n] = entry.topic, entry.partition
        rows.requested[n], rows.returned[n] = entry.requested, entry.returned
        rows.read_position[n] = position if position < n_read else NOWHERE
        rows.fetch_offset[n], rows.partition_max_bytes[n] = entry.fetch_offset, entry.partition_max_bytes
        rows.current_leader_epoch[n] = entry.current_leader_epoch
        rows.last_fetched_epoch[n] = entry.last_fetched_epoch
        rows.reader_log_start_offset[n] = entry.reader_log_start_offset
        rows.high_watermark[n], rows.last_stable_offset[n] = entry.high_watermark, entry.last_stable_offset
        rows.log_start_offset[n] = entry.log_start_offset
        entry.requested = NOWHERE
        n += 1
    return n


@kernel
def move_returned_to_end(
    session: Session, returned: Returned, first: int, end: int, also_without_records: bool
) -> None:
    """Move returned partitions to the end, in the order of the response: all of them, or only those with records."""
    n = 0
    for row in range(first, end):
        if not also_without_records and returned.records_bytes[row] <= 0:
            continue
        index = entry_number(session, returned.topic[row], returned.partition[row])
        if session.entries[index].is_live == 1:
            session.entries[index].is_live = 0
            session.moved[n] = index
            n += 1
    keep_ordered(session)
    for i in range(n):
        session.entries[session.moved[i]].is_live = 1
        session.order[session.state[ORDERED]] = session.moved[i]
        session.state[ORDERED] += 1


@kernel
def follow_full(session: Session, fetch: Record, f: int, lists: Lists, rows: FetchPartitionRows, n: int) -> int:
    """Follow a full fetch, number `f`. It ends the session that it names and, unless it is a final fetch, may open
    another one.

    Returns the new number of rows; n: the number of rows before.
    """
    forget_all(session)
    for row in range(fetch.requested_from, fetch.requested_to):
        apply_requested(session, lists.requested, row)
    n_read = session.state[ORDERED]
    note_returned(session, lists.returned, fetch.returned_from, fetch.returned_to)
    fetch.is_known = fetch.is_readable = 1
    n = write_rows(session, fetch, f, n_read, rows, n)
    opens = fetch.session_epoch == 0 and fetch.is_answered == 1 and fetch.response_session_id > 0
    session.state[SESSION_ID] = fetch.response_session_id if opens else 0
    session.state[IS_KNOWN] = session.state[IS_READABLE] = session.state[NEXT_EPOCH] = 1
    session.state[IS_BEHIND_GAP] = 0
    if opens:  # the session's first order is that of the full response: partitions with errors come last
        move_returned_to_end(session, lists.returned, fetch.returned_from, fetch.returned_to, True)
    return n


@kernel
def follow_incremental(session: Session, fetch: Record, f: int, lists: Lists, rows: FetchPartitionRows, n: int) -> int:
    """Follow a fetch in a session: apply its changes, read all partitions, move those with records to the end.

    Returns the new number of rows; n: the number of rows before.
    """
    state = session.state
    if state[SESSION_ID] != fetch.session_id:
        join_session(session)
        state[SESSION_ID] = fetch.session_id
    elif state[NEXT_EPOCH] != fetch.session_epoch:
        note_gap(session)  # the broker accepts no other epoch, so fetches in between were not captured
    state[NEXT_EPOCH] = 1 if fetch.session_epoch == GREATEST_EPOCH else fetch.session_epoch + 1
    if state[IS_KNOWN] == 0:
        remove_returned_in_gap(session, lists.requested, fetch.requested_from, fetch.requested_to)
    for row in range(fetch.requested_from, fetch.requested_to):
        apply_requested(session, lists.requested, row)
    remove_forgotten(session, lists.forgotten, fetch.forgotten_from, fetch.forgotten_to)
    n_read = state[ORDERED]
    unknown = note_returned(session, lists.returned, fetch.returned_from, fetch.returned_to)
    fetch.is_readable = 1
    if state[IS_KNOWN] == 0:
        fetch.is_readable = 1 if learn_from_response(session, fetch, lists.returned, n_read) else 0
        n_read += unknown
    elif unknown > 0:
        fetch.is_readable = state[IS_KNOWN] = state[IS_READABLE] = 0
    fetch.is_known = state[IS_KNOWN]
    n = write_rows(session, fetch, f, n_read, rows, n)
    if fetch.is_answered == 0:
        note_gap(session)
    elif fetch.response_session_id == 0:
        state[SESSION_ID] = 0
    else:
        move_returned_to_end(session, lists.returned, fetch.returned_from, fetch.returned_to, False)
    return n


@kernel
def is_followed(session: Session, fetch: Record) -> bool:
    """Whether a refused fetch is the next one of the followed session.

    If the broker refused it for its epoch, fetches in between were not captured.
    """
    state = session.state
    is_next = state[SESSION_ID] == fetch.session_id and state[NEXT_EPOCH] == fetch.session_epoch
    return bool(is_next and fetch.response_error != INVALID_FETCH_SESSION_EPOCH)


@kernel
def write_refused(
    session: Session, fetch: Record, f: int, requested: Requested, rows: FetchPartitionRows, n: int
) -> int:
    """Write the rows of a fetch that the broker refused: it changed nothing, and only its own partitions are listed.

    Returns the new number of rows; n: the number of rows before.
    """
    fetch.is_known = session.state[IS_KNOWN] if is_followed(session, fetch) else 0
    fetch.is_readable = session.state[IS_READABLE] if is_followed(session, fetch) else 0
    for w in range(fetch.requested_from, fetch.requested_to):
        rows.fetch[n], rows.is_delayed[n] = f, 0
        rows.is_known[n], rows.is_readable[n] = fetch.is_known, fetch.is_readable
        rows.topic[n], rows.partition[n] = requested.topic[w], requested.partition[w]
        rows.requested[n], rows.returned[n], rows.read_position[n] = w, NOWHERE, NOWHERE
        rows.fetch_offset[n], rows.partition_max_bytes[n] = requested.fetch_offset[w], requested.partition_max_bytes[w]
        rows.current_leader_epoch[n] = requested.current_leader_epoch[w]
        rows.last_fetched_epoch[n] = requested.last_fetched_epoch[w]
        rows.reader_log_start_offset[n] = requested.log_start_offset[w]
        rows.high_watermark[n] = rows.last_stable_offset[n] = rows.log_start_offset[n] = NO_HIGH_WATERMARK
        n += 1
    return n


@kernel
def most_rows(session: Session, fetch: Record) -> int:
    """The most rows that `fetch`, the session's next one, can have."""
    changed = fetch.requested_to - fetch.requested_from + fetch.returned_to - fetch.returned_from
    return int(session.state[ORDERED] + changed)


@kernel
def follow_connection(
    fetches: Records, first: int, lists: Lists, session: Session, rows: FetchPartitionRows, n: int
) -> tuple[int, int]:
    """Follow one connection's fetches from `first` on while there is room for rows.

    fetches: LISTED_FETCH[fetches], by connection and in its order. n: rows written before. Returns (the next fetch,
    rows written).
    """
    f = first
    while f < len(fetches) and fetches[f].connection == fetches[first].connection:
        fetch = fetches[f]
        if n + most_rows(session, fetch) > len(rows.fetch):
            break
        clear_marks(session)
        if fetch.session_epoch <= 0:
            n = follow_full(session, fetch, f, lists, rows, n)
        elif fetch.is_answered == 1 and fetch.response_error != 0:
            n = write_refused(session, fetch, f, lists.requested, rows, n)
        else:
            n = follow_incremental(session, fetch, f, lists, rows, n)
        f += 1
    return f, n


class FollowedSession(NamedTuple):
    """The session of a connection; `connection` is NOWHERE if none is followed."""

    session: Session
    connection: int


@allocating_kernel
def follow_sessions(
    fetches: Records, first: int, lists: Lists, followed: FollowedSession, capacity: Ints, row_limit: int
) -> tuple[FetchPartitionRows, int, int, FollowedSession]:
    """Follow the fetches from `first` on until about `row_limit` rows are written.

    fetches: LISTED_FETCH[n], by connection and in its order. followed: the session with which the last call ended.
    capacity: int64[n], by fetch, the most partitions that the connection's session can get. Returns (rows, how many of
    them are written, the fetch to go on from, the session to go on with).
    """
    session, connection = followed.session, followed.connection
    rows = unwritten_rows(row_limit)
    n = 0
    f = first
    while f < len(fetches):
        if fetches[f].connection != connection:
            session, connection = new_session(capacity[f]), fetches[f].connection
        most = most_rows(session, fetches[f])
        if n + most > len(rows.fetch):
            if n > 0:
                break
            rows = unwritten_rows(most)
        f, n = follow_connection(fetches, f, lists, session, rows, n)
    return rows, n, f, FollowedSession(session, connection)
