"""Joins a fetch session in its middle: one from before the capture, or one of whose fetches the capture lacks some.

Its requests name only what changes, so the partitions of which nothing comes stay unknown. But every response names the
partitions of which it has records. They had not been named by a request since the session was joined, so the broker had
not returned any of theirs meanwhile, and had them before all others in the order in which it reads
(org.apache.kafka.server.FetchContext, Kafka 4.3: what is returned moves to the end). Where the first batch begins is
where the fetch reads from.
"""

from __future__ import annotations

from udfs.columns.arrays import Record
from udfs.facts.fetch_lists import Returned
from udfs.facts.fetch_session import IS_KNOWN, IS_READABLE, NOWHERE, ORDERED, Session, find_slot, forget_all
from udfs.kernels.kernel import kernel


@kernel
def join(session: Session) -> None:
    """Begin to follow a session whose partitions are not known."""
    forget_all(session)
    session.state[IS_KNOWN] = session.state[IS_READABLE] = 0


@kernel
def lose_track(session: Session) -> None:
    """Go on with a session in which records may have been returned that the capture does not show."""
    session.state[IS_KNOWN] = session.state[IS_READABLE] = 0
    for position in range(session.state[ORDERED]):
        session.entries[session.order[position]].has_served = 0


@kernel
def usual_max_bytes(session: Session) -> int:
    """The partition_max_bytes of the first partition that has one, which clients ask for of all; NOWHERE for none."""
    for position in range(session.state[ORDERED]):
        most = session.entries[session.order[position]].partition_max_bytes
        if most != NOWHERE:
            return int(most)
    return NOWHERE


@kernel
def put_first(session: Session, returned: Returned, first_new: int) -> int:
    """Put the partitions that a response alone has named before all others, with the offsets that they are read from.

    first_new: where they begin in the order; they are at its end, in the order of the response. Returns how many of
    them have records and no offset from which these are read.
    """
    end = session.state[ORDERED]
    usual, n_new, without_offset = usual_max_bytes(session), end - first_new, 0
    for i in range(n_new):
        session.moved[i] = session.order[first_new + i]
    for position in range(first_new - 1, -1, -1):
        session.order[position + n_new] = session.order[position]
    for i in range(n_new):
        session.order[i] = session.moved[i]
        entry = session.entries[session.moved[i]]
        if returned.records_bytes[entry.returned] > 0:
            if usual == NOWHERE or returned.first_offset[entry.returned] < 0:
                without_offset += 1
            else:
                entry.fetch_offset = returned.first_offset[entry.returned]
                entry.partition_max_bytes = usual
    return without_offset


@kernel
def shows_all_with_records(session: Session, fetch: Record, returned: Returned) -> bool:
    """Whether the response to a fetch shows that no partition with records is unknown, and note what it has of whom.

    One that has fewer bytes than the fetch allows has records of every partition that has any. One that has records of
    a partition for the second time comes after all have had their turn.
    """
    total, is_second = 0, False
    for row in range(fetch.returned_from, fetch.returned_to):
        if returned.records_bytes[row] > 0:
            total += returned.records_bytes[row]
            entry = session.entries[session.slots[find_slot(session, returned.topic[row], returned.partition[row])]]
            is_second = is_second or entry.has_served == 1
            entry.has_served = 1
    return is_second or (fetch.is_throttled == 0 and total < fetch.max_bytes)
