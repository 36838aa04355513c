"""When a client has taken what a response brought of its partitions: what its next fetches, and its group's, tell.

A consumer asks for more of a partition once it has taken what it got (AbstractFetch.fetchablePartitions, Kafka 4.4).

Or it has lost the partition to another member of its group, see `takeovers`, or given it up, see `given_up`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from schemas.wire.fetch import FETCH_REQUEST
from udfs.columns.arrays import Ints
from udfs.kernels.kernel import kernel
from udfs.replay.consumer_memory.state import NONE

EXCHANGE, PARTITION, BATCH, RESPONSE, TAKEN_OVER, GIVEN_UP = range(6)
"""Kinds of MEMORY_EVENTS."""
UNKNOWN = -1
FETCH = FETCH_REQUEST.api_key


class Reason(StrEnum):
    """Why it could not be checked that a partition was drained when it was fetched again, or what was found instead:
    schemas.tables.fidelity_reasons.
    """

    NOT_FETCHED_AGAIN = "not_fetched_again"
    OFFSETS_UNKNOWN = "offsets_unknown"
    ANOTHER_CONNECTION = "another_connection"
    FETCHED_BEFORE_END = "fetched_before_end"
    FETCHED_BEYOND_END = "fetched_beyond_end"
    TAKEN_OVER = "taken_over"
    GIVEN_UP = "given_up"


AGREED = 0
CODES = {reason: code for code, reason in enumerate(Reason, 1)}
UNCHECKED = (
    Reason.NOT_FETCHED_AGAIN, Reason.OFFSETS_UNKNOWN, Reason.ANOTHER_CONNECTION, Reason.TAKEN_OVER, Reason.GIVEN_UP,
)  # fmt: skip
_OFFSETS_UNKNOWN, _ANOTHER = CODES[Reason.OFFSETS_UNKNOWN], CODES[Reason.ANOTHER_CONNECTION]
_BEFORE, _BEYOND = CODES[Reason.FETCHED_BEFORE_END], CODES[Reason.FETCHED_BEYOND_END]
_TAKEN_OVER = CODES[Reason.TAKEN_OVER]


class Exchanges(NamedTuple):
    """int64[room] a column, in the order of the requests."""

    connection: Ints  # its id
    asked: Ints
    started: Ints  # when its size was known
    came: Ints
    size: Ints
    held: Ints  # as the capture's times tell without any fetch
    records: Ints
    max_bytes: Ints
    api_key: Ints
    closes: Ints  # 1: a fetch that closes its session
    undrained: Ints  # partitions with records that were neither fetched again nor taken over
    drained: Ints  # when the last of the others was fetched again, or UNKNOWN
    lost: Ints  # when the last of those was lost that another member took over, or UNKNOWN
    taken_over: Ints  # when that one fetched it
    released: Ints  # when a request was handled, or UNKNOWN
    released_by: Ints
    returned: Ints  # record bytes
    served: Ints  # partitions with records


class Partitions(NamedTuple):
    """int64[room] a column."""

    holder: Ints  # exchange whose records are not drained, or NONE
    end: Ints  # offset behind its last whole batch, or UNKNOWN
    cut_end: Ints  # offset behind the batch that was cut off, or UNKNOWN
    lost: Ints  # when it was lost to another member of the group, or UNKNOWN
    taken_over: Ints  # when that one first fetched it since


class Rows(NamedTuple):
    """Rows of kinds PARTITION, BATCH and TAKEN_OVER, int64[rows] a column."""

    kind: Ints
    time: Ints
    lost: Ints  # of a takeover
    exchange: Ints
    partition: Ints
    fetch_offset: Ints  # UNKNOWN where the fetch did not want the partition
    returned: Ints
    end: Ints
    cut_end: Ints
    records: Ints


@kernel
def judge(fetch_offset: int, end: int, cut_end: int, is_same_connection: bool) -> int:
    """Whether the next fetch of a partition begins where the response ended: behind its last whole batch, or within the
    one that was cut off. Kafka's clients leave such a batch alone; kafka-go takes the records of it that came whole.
    """
    if end == UNKNOWN:
        return _OFFSETS_UNKNOWN
    if fetch_offset == end or end < fetch_offset < cut_end:
        return AGREED
    if not is_same_connection:
        return _ANOTHER
    return _BEFORE if fetch_offset < end else _BEYOND


@kernel
def drain(exchanges: Exchanges, partitions: Partitions, partition: int, fetch: int, fetch_offset: int) -> int:
    """A partition is fetched again; returns the verdict on it."""
    holder, taken_over = partitions.holder[partition], partitions.taken_over[partition]
    is_same = exchanges.connection[holder] == exchanges.connection[fetch]
    verdict = judge(fetch_offset, partitions.end[partition], partitions.cut_end[partition], is_same)
    if verdict != AGREED and taken_over != UNKNOWN:
        verdict = _TAKEN_OVER
        exchanges.lost[holder] = max(exchanges.lost[holder], partitions.lost[partition])
        exchanges.taken_over[holder] = max(exchanges.taken_over[holder], taken_over)
    else:
        exchanges.drained[holder] = max(exchanges.drained[holder], exchanges.asked[fetch])
    exchanges.undrained[holder] -= 1
    partitions.holder[partition] = NONE
    return verdict


@kernel
def follow_partitions(rows: Rows, exchanges: Exchanges, partitions: Partitions, verdicts: Ints) -> None:
    """Have fetches drain what came before, and hold what they got. verdicts: int64[codes], counted up."""
    for row in range(len(rows.kind)):
        i, partition = rows.exchange[row], rows.partition[row]
        if rows.kind[row] == BATCH:
            exchanges.records[i] += rows.records[row]
            if partitions.holder[partition] == i:
                partitions.end[partition] = max(partitions.end[partition], rows.end[row])
                partitions.cut_end[partition] = max(partitions.cut_end[partition], rows.cut_end[row])
        elif rows.kind[row] == TAKEN_OVER:
            if partitions.taken_over[partition] == UNKNOWN:
                partitions.taken_over[partition], partitions.lost[partition] = rows.time[row], rows.lost[row]
        else:
            if rows.fetch_offset[row] != UNKNOWN and partitions.holder[partition] != NONE:
                verdicts[drain(exchanges, partitions, partition, i, rows.fetch_offset[row])] += 1
            if rows.returned[row] > 0:
                exchanges.undrained[i] += 1
                partitions.holder[partition], partitions.taken_over[partition] = i, UNKNOWN
                partitions.end[partition], partitions.cut_end[partition] = UNKNOWN, UNKNOWN
