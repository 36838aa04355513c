"""What a producer process sent, gathered row by row: its batches from their first record on until their last answer.

A batch that is sent again keeps its memory. One that was too large gives its memory back to the pool when it is split,
and its parts take none of the pool (RecordAccumulator.splitAndReenqueue and deallocate, Kafka 4.4). Nor does its single
part, where all of it is within batch.size.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from schemas.tables.steps import MEMORY_EVENTS
from schemas.wire.errors import MESSAGE_TOO_LARGE
from udfs.columns.arrays import Bools, Ints, read_only
from udfs.columns.time_units import NEVER, US_PER_MS
from udfs.replay.consumer_memory.producer.captured_times import Batches
from udfs.replay.consumer_memory.producer.requests import Routes, Sends, Served, lingered, pieces_of, requests_of
from udfs.replay.shared.caps import MOST_EXCHANGES
from udfs.replay.shared.columns import int_column
from udfs.replay.shared.resent_batches import NONE, Rows, mark_resent
from udfs.wire.record_batches import RECORD_BATCH_OVERHEAD


class Sendings(NamedTuple):
    """Batches in produce requests, int64[n] each; times in us, `answered` NEVER where it is not known, timestamps in
    ms."""

    appended: Ints
    sent: Ints
    answered: Ints
    size: Ints
    stream: Ints  # a number for the partition and the producer
    sequence: Ints
    records: Ints
    error: Ints
    first_timestamp: Ints
    last_timestamp: Ints
    compressed: Ints
    connection: Ints
    request: Ints  # a number that tells the requests of a connection apart


class Sent(NamedTuple):
    """The batches that took memory, in the order of time; how many were sent again, and how many parts of splits."""

    batches: Batches
    sends: Sends
    resent: int
    split_parts: int


@dataclass
class Produced:
    """A producer's sendings so far; those beyond MOST_EXCHANGES are counted in `left_out`.

    is_java: it may be a Java client, whose BufferPool is replayed.
    """

    parts: list[Sendings] = field(default_factory=list)
    count: int = 0
    left_out: int = 0
    is_java: bool = True

    def add(self, batch: pa.RecordBatch) -> None:
        """Take some sendings, which follow those before in time."""
        t, room = MEMORY_EVENTS, MOST_EXCHANGES - self.count
        columns = (
            int_column(batch, name, missing)[:room]
            for name, missing in (
                (t.time, 0), (t.started, 0), (t.came, NEVER), (t.size, 0), (t.partition_key, 0), (t.sequence, NONE),
                (t.records, 0), (t.error_code, 0), (t.first_timestamp, 0), (t.last_timestamp, 0),
                (t.compressed, 0), (t.connection_id, 0), (t.exchange_no, 0),
            )
        )  # fmt: skip
        self.parts.append(Sendings(*columns))
        self.count += len(self.parts[-1].sent)
        self.left_out += batch.num_rows - len(self.parts[-1].sent)
        self.is_java &= bool(int_column(batch, t.is_java, 1).all())

    def sent(self) -> Sent:
        """What all of them come to."""
        rows = Sendings(*map(np.concatenate, zip(*self.parts, strict=True)))
        order = np.lexsort((rows.sent, rows.appended))
        return batches_of(Sendings(*(column[order] for column in rows)))


def batches_of(rows: Sendings) -> Sent:
    """The batches of sendings in the order of their first records, those of one batch in the order of their sending."""
    parent, offset = parents(rows)
    is_whole, end = held_until(rows, parent, offset)
    own, several = parent == NONE, rows.records > 1
    last = np.clip(rows.last_timestamp, 0, rows.sent // US_PER_MS)
    filled = np.where(several, np.minimum((last + 1) * US_PER_MS, rows.sent), rows.sent)
    may_grow = (several & (rows.compressed == 1)).astype(np.int64)
    sending = np.clip(end - np.maximum(rows.sent, rows.appended), 0, None)
    columns = (rows.appended, rows.size, np.maximum(end - rows.appended, 0), may_grow, filled, sending)
    batches = Batches(*(column[own] for column in columns))
    sends = sends_of(rows, own, end, batches)
    return Sent(batches, sends, int(is_whole.sum()), int((~own & ~is_whole).sum()))


def sends_of(rows: Sendings, own: Bools, end: Ints, batches: Batches) -> Sends:
    """What threads appended, and how connections served it."""
    answered = np.where(rows.answered == NEVER, rows.sent, rows.answered)
    connections, connection = np.unique(rows.connection, return_inverse=True)
    requests, request = requests_of(connection.astype(np.int64), rows.request, rows.sent, answered)
    mine = Sendings(*(column[own] for column in rows))
    streams, stream = np.unique(np.stack([connection[own], mine.stream]), axis=1, return_inverse=True)
    first = np.maximum(mine.size - RECORD_BATCH_OVERHEAD, 1) // np.maximum(mine.records, 1) + RECORD_BATCH_OVERHEAD
    alone = np.where(mine.records > 1, np.minimum(first, mine.size), mine.size)
    after = np.maximum(end[own] - answered[own], 0)
    bounds = np.searchsorted(streams[0], np.arange(len(connections) + 1)).astype(np.int64)
    linger = np.array([lingered(requests, request[own], mine.appended)], np.int64)
    return Sends(
        pieces_of(mine.appended, batches.filled, mine.size, mine.records),
        Served(stream.ravel().astype(np.int64), alone, after, batches.filled),
        Routes(streams[0].astype(np.int64), bounds, linger),
        requests,
    )


def held_until(rows: Sendings, parent: Ints, offset: Ints) -> tuple[Bools, Ints]:
    """(whether each sending is that of a whole batch again, until when a batch holds its memory, us)."""
    is_again, original = parent != NONE, np.where(parent != NONE, parent, np.arange(len(parent)))
    is_whole = is_again & (offset == 0) & (rows.records == rows.records[original])
    is_split = (rows.error == MESSAGE_TOO_LARGE) & (rows.records > 1) & (is_whole | ~is_again)
    split_at = np.full(len(parent), NEVER)
    np.minimum.at(split_at, original[is_split], rows.answered[is_split])
    is_whole &= rows.sent < split_at[original]
    end = np.where(rows.answered == NEVER, rows.sent, rows.answered)
    np.maximum.at(end, original[is_whole], end[is_whole])
    return is_whole, np.minimum(end, split_at)


def parents(rows: Sendings) -> tuple[Ints, Ints]:
    """(the sending of the same records before, NONE for the first; the place of the first record in that)."""
    n, none = len(rows.sent), np.zeros(len(rows.sent), np.int64)
    streams, stream = np.unique(rows.stream, return_inverse=True)
    numbers = Rows(
        rows.sent, rows.answered, rows.size, none, rows.records, rows.sequence, rows.error, none,
        rows.first_timestamp, rows.last_timestamp,
    )  # fmt: skip
    parent, offset = np.zeros(n, np.int64), np.zeros(n, np.int64)
    mark_resent(
        read_only(stream.astype(np.int64)), Rows(*map(read_only, numbers)), np.zeros(n, np.int64),
        np.full(len(streams), NONE), parent, offset,
    )  # fmt: skip
    return parent, offset
