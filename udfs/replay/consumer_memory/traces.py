"""What a client or broker exchanged, gathered row by row: sizes, times, and how long each message held its memory.

A response's memory is held until the client fetches again every partition of which the response had records, or drops
what it got of it, having lost it to another member of its group (see `takeovers`) or given it up (see `given_up`). One
of which neither is seen (it is paused, or the capture ends) pins its response, until the process has no connection any
more: of one that ends and another that begins later under its name, the second holds nothing of it.

Both take their memory when their size is known, which is the time of their first byte where packets tell it.

A request's memory is held until it is parsed, or handled. A channel is muted from a request until its response: what
came meanwhile is read then (SocketServer.Processor).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from schemas.tables.steps import MEMORY_EVENTS
from schemas.wire.apis import API_KEYS
from udfs.columns.arrays import Bools, Ints, read_only
from udfs.columns.time_units import NEVER
from udfs.replay.consumer_memory.draining import (
    BATCH,
    CODES,
    EXCHANGE,
    FETCH,
    PARTITION,
    TAKEN_OVER,
    UNKNOWN,
    Exchanges,
    Partitions,
    Rows,
    follow_partitions,
)
from udfs.replay.consumer_memory.given_up import TakenOver, after_giving_up, not_taken, when_dropped
from udfs.replay.consumer_memory.state import NONE, NOT_GIVEN_BACK, Trace
from udfs.replay.consumer_memory.takeovers import Takeovers, after_takeovers, lost_by, only_taken_over
from udfs.replay.shared.caps import MOST_EXCHANGES
from udfs.replay.shared.columns import int_column

CONSUMER, BROKER, PRODUCER = "consumer", "broker", "producer"
BY_RESPONSE, BY_REPLICATION, BY_LOG = range(3)
"""What tells when a request was handled."""
GONE_US = 1_000_000
"""Without a connection for longer a process is gone; one that lost it comes again within reconnect.backoff.max.ms."""
GROUP_APIS = tuple(
    API_KEYS[name]
    for name in (
        "OFFSET_COMMIT", "OFFSET_FETCH", "JOIN_GROUP", "HEARTBEAT", "LEAVE_GROUP", "SYNC_GROUP",
        "CONSUMER_GROUP_HEARTBEAT",
    )
)  # fmt: skip
# APIs whose request memory is held until the request is handled (RequestChannel.Request and
# ApiKeys.requiresDelayedAllocation, Kafka 4.4): Produce, JoinGroup, SyncGroup, and what a broker may forward to the
# controller. All others are released when parsed.
DELAYED_APIS = tuple(
    API_KEYS[name]
    for name in (
        "PRODUCE", "JOIN_GROUP", "SYNC_GROUP", "CREATE_TOPICS", "DELETE_TOPICS", "CREATE_ACLS", "DELETE_ACLS",
        "ALTER_CONFIGS", "SASL_AUTHENTICATE", "CREATE_PARTITIONS", "CREATE_DELEGATION_TOKEN", "RENEW_DELEGATION_TOKEN",
        "EXPIRE_DELEGATION_TOKEN", "ELECT_LEADERS", "INCREMENTAL_ALTER_CONFIGS", "ALTER_PARTITION_REASSIGNMENTS",
        "LIST_PARTITION_REASSIGNMENTS", "ALTER_CLIENT_QUOTAS", "ALTER_USER_SCRAM_CREDENTIALS", "DESCRIBE_QUORUM",
        "UPDATE_FEATURES", "ENVELOPE", "UNREGISTER_BROKER", "ALLOCATE_PRODUCER_IDS", "PUSH_TELEMETRY", "ADD_RAFT_VOTER",
        "REMOVE_RAFT_VOTER", "UNREGISTER_CONTROLLER",
    )
)  # fmt: skip


_T = MEMORY_EVENTS
OF_EXCHANGE = (
    _T.time, _T.started, _T.came, _T.size, _T.held, _T.max_bytes, _T.api_key, _T.released, _T.released_by,
    _T.closes_session,
)  # fmt: skip
OF_PARTS = (
    _T.kind, _T.partition_key, _T.fetch_offset, _T.returned_bytes, _T.end_offset, _T.cut_end_offset, _T.records,
    _T.partition_max_bytes, _T.size, _T.compressed, _T.uncompressed, _T.time, _T.started, _T.came, _T.broker_key,
)  # fmt: skip
"""What is looked at of exchanges beside their connection, and of their partitions and batches."""


def with_room(columns: tuple[Ints, ...], used: int, more: int, fill: int) -> tuple[Ints, ...]:
    """The columns with room for so many more, doubled where they grow."""
    room = len(columns[0])
    if used + more <= room:
        return columns
    extra = np.full(max(used + more - room, room), fill, np.int64)
    return tuple(np.concatenate([column, extra]) for column in columns)


def numbered(index: dict[int, int], keys: Ints) -> Ints:
    """A number from 0 for each key; new keys are added to the index."""
    distinct, at = np.unique(keys, return_inverse=True)
    numbers = np.array([index.setdefault(key, len(index)) for key in distinct.tolist()], np.int64)
    return numbers[at]


@dataclass
class Gathered:
    """A unit's rows so far; at most MOST_EXCHANGES exchanges, the others are counted in `left_out`."""

    exchanges: Exchanges = field(default_factory=lambda: Exchanges(*(np.zeros(0, np.int64) for _ in Exchanges._fields)))
    count: int = 0
    left_out: int = 0
    partitions: Partitions = field(
        default_factory=lambda: Partitions(*(np.zeros(0, np.int64) for _ in Partitions._fields))
    )
    partition_index: dict[int, int] = field(default_factory=dict)
    brokers: set[int] = field(default_factory=set)
    verdicts: Ints = field(default_factory=lambda: np.zeros(len(CODES) + 1, np.int64))
    numbers: Counter[str] = field(default_factory=Counter)
    takeovers: list[TakenOver] = field(default_factory=list)

    def add(self, batch: pa.RecordBatch) -> None:
        """Take some rows of MEMORY_EVENTS, which follow those before in time."""
        t = MEMORY_EVENTS
        kind = int_column(batch, t.kind, 0)
        place = self.count + self.left_out + np.cumsum(kind == EXCHANGE) - 1
        kept = place < MOST_EXCHANGES
        self._add_exchanges(batch.select([_T.connection_id, *OF_EXCHANGE]).filter(pa.array((kind == EXCHANGE) & kept)))
        self.left_out += int(((kind == EXCHANGE) & ~kept).sum())
        parts = ((kind == PARTITION) | (kind == BATCH) | (kind == TAKEN_OVER)) & kept
        if parts.any():
            self._add_parts(batch.select([*OF_PARTS]).filter(pa.array(parts)), place[parts])

    def _add_exchanges(self, batch: pa.RecordBatch) -> None:
        t, n = MEMORY_EVENTS, batch.num_rows
        grown = with_room(tuple(self.exchanges), self.count, n, 0)
        self.exchanges = Exchanges(*grown)
        rows = slice(self.count, self.count + n)
        columns = (int_column(batch, name, UNKNOWN) for name in OF_EXCHANGE)
        asked, started, came, size, held, max_bytes, api_key, released, released_by, closes = columns
        e = self.exchanges
        e.connection[rows] = int_column(batch, t.connection_id, 0)
        e.asked[rows], e.came[rows] = asked, np.where(came == UNKNOWN, UNKNOWN, np.maximum(asked, came))
        e.started[rows] = np.where(started == UNKNOWN, came, started)
        e.size[rows], e.held[rows] = np.maximum(size, 0), np.maximum(held, 0)
        e.released[rows], e.released_by[rows] = released, released_by
        e.max_bytes[rows], e.api_key[rows], e.closes[rows] = np.maximum(max_bytes, 0), api_key, closes == 1
        e.drained[rows], e.lost[rows], e.taken_over[rows] = UNKNOWN, UNKNOWN, UNKNOWN
        self.count += n

    def _add_parts(self, batch: pa.RecordBatch, exchange: Ints) -> None:
        t = MEMORY_EVENTS
        kind = int_column(batch, t.kind, 0)
        partition = numbered(self.partition_index, int_column(batch, t.partition_key, 0))
        used = len(self.partitions.holder)
        more = max(len(self.partition_index) - used, 0)
        self.partitions = Partitions(*with_room(tuple(self.partitions), used, more, NONE))
        offset, returned, end, cut_end, records, limit, size, compressed, uncompressed = (
            int_column(batch, name, missing)
            for name, missing in (
                (t.fetch_offset, UNKNOWN), (t.returned_bytes, 0), (t.end_offset, UNKNOWN), (t.cut_end_offset, UNKNOWN),
                (t.records, 0), (t.partition_max_bytes, 0), (t.size, 0), (t.compressed, 0), (t.uncompressed, UNKNOWN),
            )
        )  # fmt: skip
        time, taken_over = int_column(batch, t.time, 0), kind == TAKEN_OVER
        lost = self._lost(batch, taken_over)
        self._keep_takeovers(TakenOver(*(column[taken_over] for column in (partition, time, lost))))
        rows = Rows(kind, time, lost, exchange, partition, offset, returned, end, cut_end, records)
        follow_partitions(Rows(*map(read_only, rows)), self.exchanges, self.partitions, self.verdicts)
        is_batch, is_read = kind == BATCH, kind == PARTITION
        np.add.at(self.exchanges.returned, exchange[is_read], returned[is_read])
        np.add.at(self.exchanges.served, exchange[is_read], returned[is_read] > 0)
        self.brokers.update(np.unique(int_column(batch, t.broker_key, 0)[is_read]).tolist())
        self.numbers["partition_max_bytes"] = max(self.numbers["partition_max_bytes"], int(limit.max(initial=0)))
        self.numbers["record_bytes"] += int(returned.sum())
        is_compressed, is_measured = is_batch & (compressed == 1), uncompressed != UNKNOWN
        self.numbers["compressed_batches"] += int(is_compressed.sum())
        self.numbers["unmeasured_batches"] += int((is_compressed & ~is_measured).sum())
        self.numbers["bytes_saved"] += int((uncompressed - size)[is_compressed & is_measured].sum())

    def _lost(self, batch: pa.RecordBatch, taken_over: Bools) -> Ints:
        """When partitions were lost that were taken over, UNKNOWN of other rows: int64[rows]."""
        t, lost = MEMORY_EVENTS, np.full(batch.num_rows, UNKNOWN)
        if taken_over.any():
            names = (t.time, t.started, t.came)
            rows = Takeovers(*(int_column(batch, name, UNKNOWN)[taken_over] for name in names))
            lost[taken_over] = lost_by(rows, Exchanges(*(column[: self.count] for column in self.exchanges)))
        return lost

    def _keep_takeovers(self, found: TakenOver) -> None:
        room = MOST_EXCHANGES - sum(len(piece.time) for piece in self.takeovers)
        if len(found.time):
            self.takeovers.append(TakenOver(*(column[:room] for column in found)))

    @property
    def max_bytes(self) -> int:
        """The largest fetch.max.bytes asked for."""
        return int(self.exchanges.max_bytes[: self.count].max(initial=0))

    def taken_over(self) -> int:
        """Partitions with records, of a response, that only another member of the group fetched from then on."""
        return len(only_taken_over(self.partitions))

    def given_up(self) -> int:
        """... that it gave up."""
        return int((when_dropped(all_of(self), self.partitions) != NEVER).sum())

    def not_fetched_again(self) -> int:
        """... of which nothing tells what became of them."""
        return len(not_taken(self.partitions)) - self.given_up()


def all_of(gathered: Gathered) -> Exchanges:
    """The exchanges, without what takeovers and what is given up tell."""
    return Exchanges(*(column[: gathered.count] for column in gathered.exchanges))


def answered(gathered: Gathered) -> Exchanges:
    """The exchanges whose message is there."""
    rows = all_of(gathered)
    dropped = when_dropped(rows, gathered.partitions)
    rows = after_giving_up(after_takeovers(rows, gathered.partitions), gathered.partitions, dropped)
    return Exchanges(*(column[rows.came != UNKNOWN] for column in rows))


def chained(rows: Exchanges) -> tuple[Exchanges, Ints]:
    """The exchanges with connections numbered in the order of their ids, and the next one of each on its connection."""
    rows = rows._replace(connection=numbered({}, rows.connection))
    order = np.argsort(rows.connection, kind="stable")
    follows = rows.connection[order][1:] == rows.connection[order][:-1]
    behind = np.full(len(order), NONE)
    behind[order[:-1][follows]] = order[1:][follows]
    return rows, behind


def first_of(behind: Ints, connection: Ints) -> Ints:
    """The first exchange of each connection."""
    is_first = np.ones(len(behind), np.bool_)
    is_first[behind[behind != NONE]] = False
    first = np.zeros(int(is_first.sum()), np.int64)
    first[connection[is_first]] = np.flatnonzero(is_first)
    return first


def until_gone(rows: Exchanges) -> Ints:
    """How long each response can be held (us): until no connection of the process is open, where GONE_US later another
    one begins; else NOT_GIVEN_BACK. rows: with connections by number. A connection is open from its first request to
    its last response.
    """
    begin, end = np.full(len(rows.came), np.iinfo(np.int64).max), np.zeros(len(rows.came), np.int64)
    np.minimum.at(begin, rows.connection, rows.asked)
    np.maximum.at(end, rows.connection, rows.came)
    order = np.argsort(begin, kind="stable")
    over = np.maximum.accumulate(end[order])
    gone = over[:-1][(begin[order][1:] > over[:-1] + GONE_US) & (end[order][1:] > 0)]
    at = np.searchsorted(gone, rows.came)
    return np.where(at < len(gone), np.append(gone, NOT_GIVEN_BACK)[at] - rows.came, NOT_GIVEN_BACK)


def response_trace(gathered: Gathered) -> Trace:
    """A client's responses as the replay takes them."""
    return trace_of_responses(answered(gathered))


def trace_of_responses(exchanges: Exchanges) -> Trace:
    """Responses, in the order of their requests, as the replay takes them."""
    rows, behind = chained(exchanges)
    first = first_of(behind, rows.connection)
    fetches = np.bincount(rows.connection, rows.api_key == FETCH, len(first)) > 0
    of_group = np.bincount(rows.connection, np.isin(rows.api_key, GROUP_APIS), len(first)) > 0
    held = np.where(rows.drained == UNKNOWN, 0, np.maximum(rows.drained - rows.came, 0))
    held = np.where(rows.undrained > 0, until_gone(rows), held)
    started = np.clip(rows.started, rows.asked, rows.came)
    return Trace(
        rows.connection, behind, rows.asked, started, rows.came, rows.size, held, rows.records, rows.max_bytes, first,
        (of_group & ~fetches).astype(np.int64),
    )  # fmt: skip


def request_trace(gathered: Gathered) -> Trace:
    """A broker's requests as the replay takes them: they come when their size is known."""
    rows, behind = chained(answered(gathered))
    first, done, free = first_of(behind, rows.connection), rows.asked + rows.held, np.zeros_like(rows.asked)
    follows = behind != NONE
    free[behind[follows]] = done[follows]
    started = np.maximum(np.minimum(rows.started, rows.asked), free)
    came = np.maximum(rows.asked, free)
    released = np.where(rows.released == UNKNOWN, done, np.minimum(rows.released, done))
    held = np.where(np.isin(rows.api_key, DELAYED_APIS), np.maximum(released - came, 0), 0)
    none = np.zeros(len(came), np.int64)
    return Trace(
        rows.connection, behind, started, started, came, rows.size, held, none, none, first, np.zeros_like(first)
    )


def releases(gathered: Gathered) -> Ints:
    """int64[3]: of a broker's requests whose memory is held while they are handled, how many each source tells of."""
    rows = answered(gathered)
    told = rows.released_by[np.isin(rows.api_key, DELAYED_APIS)]
    return np.bincount(np.maximum(told, BY_RESPONSE), minlength=BY_LOG + 1)
