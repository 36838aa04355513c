"""Joins a fetch session in its middle: one from before the capture, or one with fetches that the capture lacks.

Its requests name only what changes, so the partitions of which nothing comes stay unknown. But every response names the
partitions of which it has records. One that no request has named since the session was joined was not returned
meanwhile, so the broker read it before all others: what is returned moves to the end (FetchContext of
org.apache.kafka.server, Kafka 4.3). Where its first batch begins is where the fetch reads from.
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
    """Begin to follow a session whose partitions are not known. If the connection had another before, the capture lacks
    the fetch that opened this one.
    """
    forget_all(session)
    state = session.state
    state[IS_KNOWN] = state[IS_READABLE] = 0
    state[IS_BEHIND_GAP] = 1 if state[NEXT_EPOCH] != 0 else 0


@kernel
def note_gap(session: Session) -> None:
    """Go on with a session in which records may have been returned that the capture does not show.

    What it has is still known, but not from which offsets the next fetches read.
    """
    session.state[IS_KNOWN] = session.state[IS_READABLE] = 0
    session.state[IS_BEHIND_GAP] = 1
    for position in range(session.state[ORDERED]):
        entry = session.entries[session.order[position]]
        entry.fetch_offset, entry.has_served = NOWHERE, 0


@kernel
def remove_returned_in_gap(session: Session, requested: Requested, first: int, end: int) -> None:
    """Remove partitions that rows [first, end) of a request name, if a gap has hidden their offsets.

    A request names them because records of them were returned in the gap, which moved them to the end of the order. The
    request then adds them there anew.
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
    """Put the partitions that a response alone has named before all others. first_new: where they begin in the order;
    they are at its end, in the order of the response.
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
    """Order the partitions of which a response has the first records since the join as it does: in order of reading.

    Until then, partitions that were returned in a gap are in the order of the request that names them. That order says
    nothing about the order of reading.
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
    """The partition_max_bytes of the first partition that has one, for clients send the same for all; else NOWHERE."""
    for position in range(session.state[ORDERED]):
        most = session.entries[session.order[position]].partition_max_bytes
        if most != NOWHERE:
            return int(most)
    return NOWHERE


@kernel
def infer_offsets(session: Session, fetch: Record, returned: Returned) -> int:
    """Give the partitions of a response the offsets that their records begin with, where no request tells them.

    Returns how many have records and still no offset.
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
    """Whether the response to a fetch has fewer bytes than the fetch allows: it has records of all that had any."""
    total = 0
    for row in range(fetch.returned_from, fetch.returned_to):
        total += max(returned.records_bytes[row], 0)
    return bool(fetch.is_answered == 1 and fetch.is_throttled == 0 and total < fetch.max_bytes)


@kernel
def is_second_turn(session: Session, fetch: Record, returned: Returned) -> bool:
    """Note which partitions a response has records of. Returns whether it has any of a partition for the second time.

    By then all partitions with records have had their turn.
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
    """Note where logs end: of a partition that a response with room left does not name, a consumer had nothing to read
    from its offset on.
    """
    for position in range(session.state[ORDERED]):
        entry = session.entries[session.order[position]]
        if entry.returned == NOWHERE and entry.high_watermark == NO_HIGH_WATERMARK:
            entry.high_watermark = entry.fetch_offset


@kernel
def learn_from_response(session: Session, fetch: Record, returned: Returned, first_new: int) -> bool:
    """Learn from a response what a joined session has. first_new: where in the order begins what it alone has named.

    Returns whether all partitions are known that had something to be read by the fetch. A fetch after a gap counts as
    one of which that is not known, so that it shows what the reader is taken to have received without it.
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
