"""Which sendings of a client repeat records, and the order in which its records were appended: kernels over rows."""

from __future__ import annotations

from typing import NamedTuple

from udfs.columns.arrays import Ints
from udfs.kernels.kernel import kernel

NONE = -1


class Rows(NamedTuple):
    """Columns of SENT that are numbers: int64[rows]; what is not known is NONE, times NEVER."""

    request_time: Ints
    response_time: Ints
    size: Ints
    codec: Ints
    records: Ints
    sequence: Ints
    error: Ints
    uncompressed: Ints
    first_timestamp: Ints
    last_timestamp: Ints


@kernel
def mark_resent(stream: Ints, rows: Rows, before: Ints, last: Ints, parent: Ints, offset: Ints) -> None:
    """Find out which rows send records again.

    stream: int64[rows], a number for the partition and producer id. parent: written, the row that sent the records
    first, NONE for one that does itself; offset: of its first record in that. before, last: working memory, int64[rows]
    and, NONE everywhere, int64[streams].
    """
    for row in range(len(stream)):
        parent[row], offset[row] = NONE, 0
        earlier = last[stream[row]]
        while earlier != NONE and parent[row] == NONE:
            at = place_in(earlier, row, rows)
            if at >= 0:
                parent[row], offset[row] = earlier, at
            elif is_behind(earlier, row, rows):
                break
            earlier = before[earlier]
        if parent[row] == NONE:
            before[row], last[stream[row]] = last[stream[row]], row


@kernel
def place_in(earlier: int, row: int, rows: Rows) -> int:
    """Where the row's first record is in the earlier row's batch, NONE where it is not."""
    if rows.sequence[row] >= 0:
        at = rows.sequence[row] - rows.sequence[earlier]
        return at if 0 <= at < rows.records[earlier] else NONE
    again = rows.error[earlier] != 0 and rows.request_time[row] > rows.response_time[earlier]
    inside = rows.first_timestamp[earlier] <= rows.first_timestamp[row]
    inside = inside and rows.last_timestamp[row] <= rows.last_timestamp[earlier]
    return 0 if again and inside and rows.records[row] <= rows.records[earlier] else NONE


@kernel
def is_behind(earlier: int, row: int, rows: Rows) -> bool:
    """Whether the row's records come behind those of the earlier row, and so of all before that."""
    if rows.sequence[row] >= 0:
        return bool(rows.sequence[row] >= rows.sequence[earlier])
    return bool(rows.first_timestamp[row] > rows.last_timestamp[earlier])


@kernel
def append_order(time: Ints, topic: Ints, partition: Ints, order: Ints, current: Ints, moved: Ints) -> None:
    """Put records of the same time in the order in which a client without keys sends them: it stays with a partition.

    order: rows by time, topic and partition, rewritten. current: int64[topics], NONE. moved: int64[records], memory.
    """
    first = 0
    while first < len(order):
        end, row = first, order[first]
        while end < len(order) and time[order[end]] == time[row] and topic[order[end]] == topic[row]:
            end += 1
        at = first
        for same in (True, False):
            for place in range(first, end):
                if (partition[order[place]] == current[topic[row]]) == same:
                    moved[at] = order[place]
                    at += 1
        for place in range(first, end):
            order[place] = moved[place]
        current[topic[row]] = partition[order[end - 1]]
        first = end
