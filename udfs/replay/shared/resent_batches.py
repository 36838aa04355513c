"""Which produced batches repeat records that their producer has sent before: as the same batch, or as parts of it.

A batch that is sent again has the same sequence numbers. Without idempotence it has none. It is then recognised by the
times of its records, and by the error with which the earlier batch was answered.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints, read_only
from udfs.columns.sentinels import NONE
from udfs.kernels.kernel import kernel


class ProducedBatches(NamedTuple):
    """Produced batches in the order of their first records: int64[rows] each. Unknown values are NONE; the time of a
    missing response is NEVER.
    """

    request_time: Ints  # us
    response_time: Ints  # us
    size: Ints  # bytes
    codec: Ints
    records: Ints
    sequence: Ints  # base sequence
    error: Ints
    uncompressed: Ints  # bytes
    first_timestamp: Ints  # ms
    last_timestamp: Ints  # ms


def resendings(rows: ProducedBatches, stream: Ints) -> tuple[Ints, Ints]:
    """(parent: the row that sent each row's records first, NONE if the row itself did; offset: the index of the row's
    first record among the parent's records). Both int64[rows].

    stream: int64[rows]; rows of the same partition, producer id and epoch have the same number, from 0 on.
    """
    n = len(stream)
    parent, offset = np.zeros(n, np.int64), np.zeros(n, np.int64)
    before, last = np.zeros(n, np.int64), np.full(int(stream.max(initial=-1)) + 1, NONE)
    mark_resent(read_only(stream), ProducedBatches(*map(read_only, rows)), before, last, parent, offset)
    return parent, offset


@kernel
def mark_resent(stream: Ints, rows: ProducedBatches, before: Ints, last: Ints, parent: Ints, offset: Ints) -> None:
    """Write what `resendings` returns to `parent` and `offset`.

    stream: int64[rows], as in `resendings`. parent, offset: int64[rows]. before, last: working memory, int64[rows], and
    int64[streams] with NONE everywhere.
    """
    for row in range(len(stream)):
        parent[row], offset[row] = NONE, 0
        earlier = last[stream[row]]
        while earlier != NONE and parent[row] == NONE:
            place = place_in(rows, earlier, row)
            if place != NONE:
                parent[row], offset[row] = earlier, place
            elif comes_behind_row(rows, earlier, row):
                break
            earlier = before[earlier]
        if parent[row] == NONE:
            before[row], last[stream[row]] = last[stream[row]], row


@kernel
def place_in(rows: ProducedBatches, earlier: int, row: int) -> int:
    """The index of the row's first record in the batch of the earlier row, NONE if it is not in that batch."""
    if rows.sequence[row] >= 0:
        place = rows.sequence[row] - rows.sequence[earlier]
        return place if 0 <= place < rows.records[earlier] else NONE
    is_again = rows.error[earlier] != 0 and rows.request_time[row] > rows.response_time[earlier]
    is_inside = rows.first_timestamp[earlier] <= rows.first_timestamp[row]
    is_inside = is_inside and rows.last_timestamp[row] <= rows.last_timestamp[earlier]
    return 0 if is_again and is_inside and rows.records[row] <= rows.records[earlier] else NONE


@kernel
def comes_behind_row(rows: ProducedBatches, earlier: int, row: int) -> bool:
    """Whether the row's records come after those of the earlier row, and so after those of all rows before it."""
    if rows.sequence[row] >= 0:
        return bool(rows.sequence[row] >= rows.sequence[earlier])
    return bool(rows.first_timestamp[row] > rows.last_timestamp[earlier])
