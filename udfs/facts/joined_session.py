"""Joins a fetch session in its middle: one from before the capture, or one with fetches that the capture lacks.

The session's requests name only what changes, so partitions without new records stay unknown. But every response names
the partitions of which it has records. If no request has named such a partition since the session was joined, it was
not returned meanwhile, so the broker read it before all others: returned partitions move to the end (FetchContext of
org.apache.kafka.server, Kafka 4.3). The fetch reads from where the partition's first batch begins.
"""

from __future__ import annotations

from udfs.columns.arrays import Record
from udfs.facts.fetch_lists import Requested, Returned
from udfs.facts.fetch_session import (
    GENERATION,
    IS_BEHIND_GAP,
    IS_KNOWN,
    IS_READABLE,
    NEXT_EPOCH,
    NO_HIGH_WATERMARK,
    NOWHERE,
    ORDERED,
    Session,
    entry_number,
    find_slot,
    forget_all,
    keep_ordered,
)
from udfs.kernels.kernel import kernel


@kernel
def join_session(session: Session) -> None:
    """Begin to follow a session whose partitions are not known. If the connection had another session before, the
    capture lacks the fetch that opened this one.
    """
    forget_all(session)
    state = session.state
    state[IS_KNOWN] = state[IS_READABLE] = 0
    state[IS_BEHIND_GAP] = 1 if state[NEXT_EPOCH] != 0 else 0


@kernel
def note_gap(session: Session) -> None:
    """Go on with a session after a gap, in which records may have been returned that the capture does not show.

    The session's partitions are still known, but not the offsets from which the next fetches read.
    """
    session.state[IS_KNOWN] = session.state[IS_READABLE] = 0
    session.state[IS_BEHIND_GAP] = 1
    for position in range(session.state[ORDERED]):
        entry = session.entries[session.order[position]]
        entry.fetch_offset, entry.has_served = NOWHERE, 0


@kernel
def remove_returned_in_gap(session: Session, requested: Requested, first: int, end: int) -> None:
    """Remove partitions that rows [first, end) of a request name, if a gap has hidden their offsets.

    The request names them because their records were returned in the gap. That moved them to the end of the order,
    where the request then adds them again.
    """
    removed = 0
    for row in range(first, end):
        slot = find_slot(session, requested.topic[row], requested.partition[row])
        if session.stamps[slot] == session.state[GENERATION]:
            entry = session.entries[session.slots[slot]]
            if entry.is_live == 1 and entry.fetch_offset == NOWHERE:
                entry.is_live = 0
                removed += 1
    if removed > 0:
        keep_ordered(session)


@kernel
def put_first(session: Session, first_new: int) -> None:
    """Move the partitions that only a response has named before all others. They are at the end of the order, in the
    order of the response; first_new: where they begin.
    """
    n_new = session.state[ORDERED] - first_new
    for i in range(n_new):
        session.moved[i] = session.order[first_new + i]
    for position in range(first_new - 1, -1, -1):
        session.order[position + n_new] = session.order[position]
    for i in range(n_new):
        session.order[i] = session.moved[i]


@kernel
def order_as_returned(session: Session, fetch: Record, returned: Returned) -> None:
    """Order partitions as in the response that has their first records since the join: that is the order of reading.

    Until then, partitions that were returned in a gap are in the order of the request that named them, which does not
    depend on the order of reading.
    """
    n = 0
    for row in range(fetch.returned_from, fetch.returned_to):
        index = entry_number(session, returned.topic[row], returned.partition[row])
        entry = session.entries[index]
        is_last_of_it = entry.returned == row  # a broken response may name a partition twice
        if returned.records_bytes[row] > 0 and entry.has_served == 0 and is_last_of_it:
            session.moved[n] = index
            n += 1
    at = 0
    for position in range(session.state[ORDERED] if n > 1 else 0):
        entry = session.entries[session.order[position]]
        if entry.has_served == 0 and entry.returned != NOWHERE and returned.records_bytes[entry.returned] > 0:
            session.order[position] = session.moved[at]
            at += 1


@kernel
def usual_max_bytes(session: Session) -> int:
    """The partition_max_bytes of the first partition that has one, because clients send the same for all; NOWHERE if
    none has one.
    """
    for position in range(session.state[ORDERED]):
        most = session.entries[session.order[position]].partition_max_bytes
        if most != NOWHERE:
            return int(most)
    return NOWHERE


@kernel
def infer_offsets(session: Session, fetch: Record, returned: Returned) -> int:
    """Give partitions of a response, whose offsets no request shows, the offsets with which their records begin.

    Returns how many partitions have records but still no offset.
    """
    usual, without_offset = NOWHERE, 0
    for row in range(fetch.returned_from, fetch.returned_to):
        entry = session.entries[entry_number(session, returned.topic[row], returned.partition[row])]
        if entry.fetch_offset != NOWHERE or returned.records_bytes[row] <= 0:
            continue
        usual = usual_max_bytes(session) if usual == NOWHERE else usual
        most = usual if entry.partition_max_bytes == NOWHERE else entry.partition_max_bytes
        if most == NOWHERE or returned.first_offset[row] < 0:
            without_offset += 1
        else:
            entry.fetch_offset, entry.partition_max_bytes = returned.first_offset[row], most
    return without_offset


@kernel
def has_room_left(fetch: Record, returned: Returned) -> bool:
    """Whether a response that was not throttled has fewer bytes than the fetch allows. It then has records of all
    partitions that had any.
    """
    total = 0
    for row in range(fetch.returned_from, fetch.returned_to):
        total += max(returned.records_bytes[row], 0)
    return bool(fetch.is_answered == 1 and fetch.is_throttled == 0 and total < fetch.max_bytes)


@kernel
def is_second_turn(session: Session, fetch: Record, returned: Returned) -> bool:
    """Note of which partitions a response has records. Returns whether it has records of a partition for the second
    time since the join: then all partitions with records have had their turn.
    """
    is_second = False
    for row in range(fetch.returned_from, fetch.returned_to):
        if returned.records_bytes[row] > 0:
            entry = session.entries[entry_number(session, returned.topic[row], returned.partition[row])]
            is_second = is_second or entry.has_served == 1
            entry.has_served = 1
    return is_second


@kernel
def note_ends_of_logs(session: Session) -> None:
    """Note where logs end: if a response with room left does not name a partition, there was nothing to read from the
    consumer's offset on.
    """
    for position in range(session.state[ORDERED]):
        entry = session.entries[session.order[position]]
        if entry.returned == NOWHERE and entry.high_watermark == NO_HIGH_WATERMARK:
            entry.high_watermark = entry.fetch_offset


@kernel
def learn_from_response(session: Session, fetch: Record, returned: Returned, first_new: int) -> bool:
    """Learn from a response what a joined session has. first_new: where the partitions that only the response has named
    begin in the order.

    Returns whether all partitions that had something to read for the fetch are known. For the first fetch after a gap
    it returns False, so that this fetch shows what the reader has received in the gap.
    """
    put_first(session, first_new)
    order_as_returned(session, fetch, returned)
    without_offset, has_room = infer_offsets(session, fetch, returned), has_room_left(fetch, returned)
    if is_second_turn(session, fetch, returned) or has_room:
        session.state[IS_READABLE] = 1
    if has_room and fetch.is_follower == 0:
        note_ends_of_logs(session)
    is_behind_gap = session.state[IS_BEHIND_GAP] == 1
    session.state[IS_BEHIND_GAP] = 0
    is_known = session.state[IS_READABLE] == 1 and without_offset == 0 and fetch.is_answered == 1
    return bool(is_known and not is_behind_gap)
