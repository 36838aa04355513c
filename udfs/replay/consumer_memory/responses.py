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
import pyarrow.compute as pc

from schemas.tables.steps import CLOSED_RESPONSES, MEMORY_EVENTS
from udfs.columns.arrays import Floats, Ints
from udfs.columns.time_units import NEVER
from udfs.facts.arrow_tables import unpack_rows
from udfs.replay.consumer_memory.draining import FETCH, RESPONSE, UNKNOWN, Exchanges
from udfs.replay.consumer_memory.given_up import GivenUp, TakenOver, when_gone
from udfs.replay.consumer_memory.state import NONE, NOT_GIVEN_BACK
from udfs.replay.consumer_memory.traces import Gathered, all_of
from udfs.replay.shared.caps import MOST_RESPONSES
from udfs.replay.shared.columns import int_column
from udfs.replay.shared.line_fit import fitted_line


class Responses(NamedTuple):
    """Responses of the closed loop in the order of their requests, int64[n] each: the columns of CLOSED_RESPONSES.

    number: its own. connection: its id. held: us from came on, or NOT_GIVEN_BACK.
    """

    number: Ints
    connection: Ints
    asked: Ints
    came: Ints
    held: Ints
    returned: Ints
    records: Ints
    partitions: Ints


class Left(NamedTuple):
    """What is given up of responses before it is taken, int64[n] each: of GivenUp, and the partition's hash."""

    response: Ints
    partition_key: Ints
    since: Ints
    until: Ints
    turn: Ints


@dataclass
class ClosedLoop:
    """A process's responses so far, by number of the fetch limits; those beyond MOST_RESPONSES are in `left_out`.

    unchecked: why its closed loop cannot be held against the capture.
    """

    parts: dict[int, list[Responses]] = field(default_factory=dict)
    given_up: dict[int, list[Left]] = field(default_factory=dict)
    count: int = 0
    left_out: Counter[int] = field(default_factory=Counter)
    unchecked: set[str] = field(default_factory=set)

    def add(self, batch: pa.RecordBatch) -> None:
        """Take some rows of MEMORY_EVENTS of kinds RESPONSE and GIVEN_UP."""
        is_response = pa.array(int_column(batch, MEMORY_EVENTS.kind, 0) == RESPONSE)
        self._add_responses(batch.filter(is_response))
        self._add_given_up(batch.filter(pc.invert(is_response)))

    def _add_given_up(self, batch: pa.RecordBatch) -> None:
        t = MEMORY_EVENTS
        lane = int_column(batch, t.lane, 0)
        names = (t.exchange_no, t.partition_key, t.started, t.released, t.came)
        rows = Left(*(int_column(batch, name, NEVER) for name in names))
        for number in np.unique(lane).tolist():
            self.given_up.setdefault(number, []).append(Left(*(column[lane == number] for column in rows)))

    def _add_responses(self, batch: pa.RecordBatch) -> None:
        t = MEMORY_EVENTS
        lanes, left_out = (int_column(batch, name, 0).tolist() for name in (t.lane, t.left_out))
        for lane, left, stream in zip(lanes, left_out, batch[t.responses], strict=True):
            self.left_out[lane] += left
            for responses in unpack_rows(stream):
                self._add_lane(lane, responses)
        self.unchecked.update(reason for reason in batch[t.unchecked].unique().to_pylist() if reason)

    def _add_lane(self, lane: int, responses: pa.RecordBatch) -> None:
        room = max(MOST_RESPONSES - self.count, 0)
        kept = responses.slice(0, room)
        self.left_out[lane] += responses.num_rows - kept.num_rows
        columns = (int_column(kept, column, NOT_GIVEN_BACK) for column in CLOSED_RESPONSES.columns)
        self.parts.setdefault(lane, []).append(Responses(*columns))
        self.count += kept.num_rows

    def responses(self, number: int) -> Responses:
        """All of one number's."""
        none = Responses(*(np.zeros(0, np.int64) for _ in Responses._fields))
        return Responses(*map(np.concatenate, zip(none, *self.parts.get(number, ()), strict=True)))

    def left(self, number: int) -> Left:
        """What is given up of them."""
        none = Left(*(np.zeros(0, np.int64) for _ in Left._fields))
        return Left(*map(np.concatenate, zip(none, *self.given_up.get(number, ()), strict=True)))


class Beside(NamedTuple):
    """What connections' responses take beside records: bytes in all, and for each partition with records; and how long
    a byte takes to come (us). float64[n] each."""

    size: Floats
    partition: Floats
    byte_us: Floats


def beside(rows: Exchanges) -> tuple[float, float, float]:
    """The columns of Beside as measured on the captured fetches of a connection."""
    size, partition = fitted_line(rows.served, np.maximum(rows.size - rows.returned, 0))
    took = np.maximum(rows.came - np.clip(rows.started, rows.asked, rows.came), 0)
    return size, partition, float(took.sum()) / max(int(rows.size.sum()), 1)


def of_connection(rows: Exchanges, connection: int) -> Exchanges:
    """One connection's exchanges."""
    mine = rows.connection == connection
    return Exchanges(*(column[mine] for column in rows))


def as_exchanges(found: Responses, captured: Exchanges, max_bytes: int) -> Exchanges:
    """The responses with all that exchanges have. captured: the captured fetches of the same connections."""
    connections, which = np.unique(found.connection, return_inverse=True)
    each = [beside(of_connection(captured, connection)) for connection in connections.tolist()]
    of = Beside(*np.array(each).reshape(-1, len(Beside._fields)).T[:, which])
    size = found.returned + np.round(of.size + of.partition * found.partitions).astype(np.int64)
    started = found.came - np.round(of.byte_us * size).astype(np.int64)
    n, pinned, none = len(size), found.held == NOT_GIVEN_BACK, np.zeros_like(found.came)
    unknown = np.full(n, UNKNOWN)
    return Exchanges(
        found.connection, found.asked, started, found.came, size, none, found.records,
        np.full(n, max_bytes), np.full(n, FETCH), none, pinned.astype(np.int64),
        np.where(pinned, UNKNOWN, found.came + found.held), unknown, unknown, unknown, unknown,
        found.returned, found.partitions,
    )  # fmt: skip


def with_given_up(found: Responses, left: Left, gathered: Gathered) -> Responses:
    """The responses, held until all that is given up of them is gone, too."""
    if not len(left.response):
        return found
    order = np.argsort(found.number, kind="stable")
    place = np.searchsorted(found.number[order], left.response)
    is_here = np.append(found.number[order], UNKNOWN)[place] == left.response
    left, at = Left(*(column[is_here] for column in left)), order[place[is_here]]
    index = gathered.partition_index
    partition = np.array([index.get(key, NONE) for key in left.partition_key.tolist()], np.int64)
    given = GivenUp(
        left.response, partition, found.connection[at], found.came[at], left.since, left.until, left.turn
    )  # fmt: skip
    gone = when_gone(given, taken_over_of(gathered), all_of(gathered))
    held = np.where(found.held == NOT_GIVEN_BACK, NEVER, found.held)
    np.maximum.at(held, at, np.where(gone == NEVER, NEVER, gone - given.came))
    return found._replace(held=np.where(held == NEVER, NOT_GIVEN_BACK, held))


def taken_over_of(gathered: Gathered) -> TakenOver:
    """All of a process's partitions that were taken over, as often as they were."""
    none = TakenOver(*(np.zeros(0, np.int64) for _ in TakenOver._fields))
    return TakenOver(*map(np.concatenate, zip(none, *gathered.takeovers, strict=True)))


def closed_exchanges(
    gathered: Gathered, captured: Exchanges, closed: ClosedLoop, number: int, max_bytes: int
) -> Exchanges:
    """The exchanges of a process under the fetch limits of this number, in the order of their requests.

    captured: those of the capture that were answered.
    """
    found = with_given_up(closed.responses(number), closed.left(number), gathered)
    is_replayed = (captured.api_key == FETCH) & np.isin(captured.connection, found.connection)
    fetches, others = (Exchanges(*(column[rows] for column in captured)) for rows in (is_replayed, ~is_replayed))
    joined = zip(others, as_exchanges(found, fetches, max_bytes), strict=True)
    rows = Exchanges(*(np.concatenate(columns) for columns in joined))
    order = np.argsort(rows.asked, kind="stable")
    return Exchanges(*(column[order] for column in rows))
