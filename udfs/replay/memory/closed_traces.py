"""What a client would exchange under other fetch limits: the closed loop's responses in place of the captured fetches.

Everything else stays as captured, and so does a connection that the closed loop does not have. The closed loop tells
record bytes; what a response takes beside them, and how long it takes to come, is measured on the captured ones of the
same connection, so that the captured responses would add up to what they are.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from schemas.tables.steps import MEMORY_EVENTS
from udfs.replay.fetch.client_pace import line
from udfs.replay.fetch.log_reads import numbers_of
from udfs.replay.memory.drained import FETCH, UNKNOWN, Exchanges
from udfs.replay.memory.memory_state import NOT_GIVEN_BACK, Trace
from udfs.replay.memory.memory_trace import MOST_EXCHANGES, Gathered, answered, trace_of_responses
from udfs.wire.arrays import Ints

MOST_RESPONSES = 4 * MOST_EXCHANGES
"""Most responses of a process that are kept, of all lanes together: 56 bytes each."""


class Responses(NamedTuple):
    """Responses of the closed loop in the order of their requests, int64[n] each.

    connection: its id. held: us from came on, or NOT_GIVEN_BACK.
    """

    connection: Ints
    asked: Ints
    came: Ints
    held: Ints
    returned: Ints
    records: Ints
    partitions: Ints


@dataclass
class ClosedLoop:
    """A process's responses so far, by number of the fetch limits; those beyond MOST_RESPONSES are in `left_out`.

    unchecked: why its closed loop cannot be held against the capture.
    """

    parts: dict[int, list[Responses]] = field(default_factory=dict)
    count: int = 0
    left_out: Counter[int] = field(default_factory=Counter)
    unchecked: set[str] = field(default_factory=set)

    def add(self, batch: pa.RecordBatch) -> None:
        """Take some rows of MEMORY_EVENTS of kind RESPONSE."""
        t = MEMORY_EVENTS
        lane, left_out = numbers_of(batch, t.lane, 0), numbers_of(batch, t.left_out, 0)
        names = (t.connection_id, t.time, t.came, t.held, t.returned_bytes, t.records, t.partitions)
        rows = Responses(*(numbers_of(batch, name, NOT_GIVEN_BACK) for name in names))
        room = max(MOST_RESPONSES - self.count, 0)
        for number in np.unique(lane).tolist():
            mine = lane == number
            self.left_out[number] += int(left_out[mine].sum()) + int(mine[room:].sum())
            kept = Responses(*(column[:room][mine[:room]] for column in rows))
            self.parts.setdefault(number, []).append(kept)
        self.count += min(len(lane), room)
        self.unchecked.update(reason for reason in batch[t.unchecked].unique().to_pylist() if reason)

    def responses(self, number: int) -> Responses:
        """All of one number's."""
        none = Responses(*(np.zeros(0, np.int64) for _ in Responses._fields))
        return Responses(*map(np.concatenate, zip(none, *self.parts.get(number, ()), strict=True)))


class Beside(NamedTuple):
    """What a connection's responses take beside records: bytes in all, and for each partition with records; and how
    long a byte takes to come (us)."""

    size: float
    partition: float
    byte_us: float


def beside(rows: Exchanges) -> Beside:
    """As measured on the captured fetches of a connection."""
    size, partition = line(rows.served, np.maximum(rows.size - rows.returned, 0))
    took = np.maximum(rows.came - np.clip(rows.started, rows.asked, rows.came), 0)
    return Beside(size, partition, float(took.sum()) / max(int(rows.size.sum()), 1))


def as_exchanges(found: Responses, captured: Exchanges, max_bytes: int) -> Exchanges:
    """The responses with all that exchanges have. captured: the captured fetches of the same connections."""
    size, started = np.zeros_like(found.came), found.came.copy()
    for connection in np.unique(found.connection).tolist():
        mine = found.connection == connection
        of = beside(Exchanges(*(column[captured.connection == connection] for column in captured)))
        size[mine] = found.returned[mine] + np.round(of.size + of.partition * found.partitions[mine]).astype(np.int64)
        started[mine] -= np.round(of.byte_us * size[mine]).astype(np.int64)
    n, pinned = len(size), found.held == NOT_GIVEN_BACK
    unknown = np.full(n, UNKNOWN)
    return Exchanges(
        found.connection, found.asked, started, found.came, size, np.zeros(n, np.int64), found.records,
        np.full(n, max_bytes), np.full(n, FETCH), pinned.astype(np.int64),
        np.where(pinned, UNKNOWN, found.came + found.held), unknown, unknown, unknown, unknown,
        found.returned, found.partitions,
    )  # fmt: skip


def closed_exchanges(gathered: Gathered, closed: ClosedLoop, number: int, max_bytes: int) -> Exchanges:
    """The exchanges of a process under the fetch limits of this number, in the order of their requests."""
    found, captured = closed.responses(number), answered(gathered)
    is_replayed = (captured.api_key == FETCH) & np.isin(captured.connection, found.connection)
    fetches, others = (Exchanges(*(column[rows] for column in captured)) for rows in (is_replayed, ~is_replayed))
    joined = zip(others, as_exchanges(found, fetches, max_bytes), strict=True)
    rows = Exchanges(*(np.concatenate(columns) for columns in joined))
    order = np.argsort(rows.asked, kind="stable")
    return Exchanges(*(column[order] for column in rows))


def closed_trace(gathered: Gathered, closed: ClosedLoop, number: int, max_bytes: int) -> Trace:
    """The same as the replay takes it. max_bytes: fetch.max.bytes of the fetches."""
    return trace_of_responses(closed_exchanges(gathered, closed, number, max_bytes))
