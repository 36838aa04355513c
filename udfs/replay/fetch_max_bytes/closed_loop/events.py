"""What is kept of a reader's captured fetches until all of them have come, and the reader is replayed in closed loop.

Kept are a few numbers for each fetch and for each partition with records, and the batches of the logs. If a connection
has more than FETCH_CAP fetches, the first ones are kept and the others are counted. If it has more than BATCH_CAP
batches, no log of it is kept, and its log content counts as unknown.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from schemas.tables.steps import READS
from udfs.columns.arrays import Bools, Ints, Records, stretch_edges
from udfs.columns.picking import position_among
from udfs.columns.records import GrowingRecords, int_fields, new_records, pick_records
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import ALWAYS, NEVER
from udfs.replay.fetch_max_bytes.events import ConnectionLogs, Reads, logs_from_rows

FETCH_CAP = 1 << 20
BATCH_CAP = 1 << 22
NUMBER_BITS = 32
"""Bits of a partition's number in a key; the bits above have the index of its connection or node."""

LIMITS = ("max_bytes", "min_bytes", "max_wait_ms", "in_session", "profile", "api_version")
"""What a connection's first fetch asks for. Two connections of one process have the same values."""
COUNTED = (
    "readable_known",
    "refused",
    "sent_to_replica",
    "is_converted",
    "is_compacted",
    "may_be_remote",
)
"""Properties of reads; a connection counts how many of its reads have each."""

READER_CONNECTION = int_fields(
    "id",
    "broker",  # its number
    "fetches",  # how many are kept
    "left_out",  # how many more there were
    "reads",  # of partitions in the fetches
    "batches",  # of the logs
    "begin",  # us: the first request
    "last_request",  # us, or NEVER before the first
    "last_response",  # us
    *LIMITS,
    *COUNTED,
)
"""A connection of a reader."""
FETCHED_PARTITION = int_fields(
    "connection",
    "number",
    "since",  # us: the earliest time at which the reader can have begun to want it
    "first_request",  # us
    "first_offset",
    "partition_max_bytes",
    "last_fetch",  # its number
    "last_offset",
    "last_returned",  # bytes
    "refused_since",  # us: the request of the first read after which none was answered without error, or NEVER
    "bound",  # the highest in any of its responses
)
"""A partition that a connection reads: its first read and its last."""
ANSWERED_FETCH = int_fields(
    "connection",
    "request",  # us
    "response",  # us
    "opens_session",
    "throttled",
    "throttle_ms",
    "beyond_bound",  # 1: it asks for records beyond the bound of a partition
    "returned",  # record bytes
)
"""An answered fetch."""
SERVING = int_fields(
    "partition",  # FETCHED_PARTITION
    "fetch",  # its number
    "response",  # us
    "fetch_offset",
    "returned",  # bytes
    "partition_max_bytes",
    "bound",
)
"""A serving: a partition of a response that has records."""
BOUND = int_fields("partition", "request", "response", "bound")
"""A bound of a partition that is above its earlier bounds, with the times of the fetch (us)."""
MOVE = int_fields(
    "partition",  # FETCHED_PARTITION
    "fetch",  # its number
    "before",  # the number of the fetch of the partition's read before, below 0 for none
    "fetch_offset",
    "from_offset",  # the fetch_offset of the read before
    "returned",  # the bytes that the read before got
    "refused_since",  # us: refused_since of the partition after the read before
)
"""A move: a read that does not merely repeat the partition's read before, or the first that is no longer refused."""


class KeptFetches(NamedTuple):
    """Whole fetches that are kept: their reads, and for each read the index of its connection and its fetch's number.

    first_read: int64[fetches], where the reads of each fetch begin. since: int64[fetches], us, just after the fetch
    before on the same connection was sent, which may have left out a partition; for the first fetch its own time.
    """

    reads: Records
    connection: Ints
    fetch: Ints
    first_read: Ints
    since: Ints


@dataclass
class CapturedFetches:
    """What a reader's connections have shown until now.

    partitions: the number of each partition of answered fetches, by broker, topic and partition. connection_of: the
    index of each connection, by its id. brokers: the number of each broker, by its name. fetched_of: the index in
    `fetched` of each partition of a connection. log_partitions: the number of each partition that has a log.
    """

    partitions: dict[str, int] = field(default_factory=dict)
    connections: GrowingRecords = field(default_factory=lambda: GrowingRecords(READER_CONNECTION))
    connection_of: dict[int, int] = field(default_factory=dict)
    brokers: dict[str, int] = field(default_factory=dict)
    fetched: GrowingRecords = field(default_factory=lambda: GrowingRecords(FETCHED_PARTITION))
    fetched_of: dict[int, int] = field(default_factory=dict)
    fetches: list[Records] = field(default_factory=list)
    servings: list[Records] = field(default_factory=list)
    bounds: list[Records] = field(default_factory=list)
    moves: list[Records] = field(default_factory=list)
    log_partitions: dict[str, int] = field(default_factory=dict)
    logs: list[ConnectionLogs] = field(default_factory=list)

    def note_logs(self, rows: pa.RecordBatch) -> None:
        """Keep rows of READS that have logs. If a connection has more than BATCH_CAP batches, none of its rows is kept,
        in whichever order they come.
        """
        logs = logs_from_rows(rows, self.log_partitions)
        connection = self.connections_of(logs.connection_id, rows[READS.broker])
        batches = self.connections.records["batches"]
        np.add.at(batches, connection, np.diff(logs.first))
        self.logs.append(logs._replace(connection_id=connection))
        if (batches[connection] > BATCH_CAP).any():
            self.logs = [select_logs(logs, batches[logs.connection_id] <= BATCH_CAP) for logs in self.logs]

    def note_reads(self, fetches: Reads, rows: pa.RecordBatch) -> None:
        """Keep what matters of whole, answered fetches, which come in time order. rows: of READS."""
        if len(fetches.reads):
            connection = self.connections_of(fetches.reads["connection_id"], rows[READS.broker])
            part = self.kept_part(fetches, connection)
            if len(part.reads):
                place = self.places_of(part)
                note_moves(self, part, place)
                note_records_and_bounds(self, part, place)
                note_fetches(self, part)

    def connections_of(self, ids: Ints, brokers: pa.Array[Any]) -> Ints:
        """The index of each row's connection: int64[rows]. ids: int64[rows]. brokers: the broker of each row."""
        distinct, first, which = np.unique(ids, return_index=True, return_inverse=True)
        for id_, row in zip(distinct.tolist(), first.tolist(), strict=True):
            if id_ not in self.connection_of:
                self.connection_of[id_] = len(self.connection_of)
                broker = self.brokers.setdefault(brokers[row].as_py(), len(self.brokers))
                times = {"last_request": NEVER, "last_response": ALWAYS}
                self.connections.add(new_records(READER_CONNECTION, 1, id=id_, broker=broker, **times))
        return np.array([self.connection_of[id_] for id_ in distinct.tolist()], np.int64)[which]

    def kept_part(self, fetches: Reads, connection: Ints) -> KeptFetches:
        """The fetches up to FETCH_CAP of each connection; those beyond are counted.

        connection: int64[reads], the index of each read's connection.
        """
        first, known = fetches.first_read[:-1], self.connections.records
        of_fetch, request = connection[first], fetches.reads["request_time"][first]
        order = np.argsort(of_fetch, kind="stable")
        place, before = position_among(of_fetch[order]), np.empty_like(request)
        before[order] = np.where(place == 0, known["last_request"][of_fetch[order]], np.roll(request[order], 1))
        number = np.empty_like(place)
        number[order] = place + known["fetches"][of_fetch[order]]
        part = KeptFetches(
            reads=fetches.reads,
            connection=connection,
            fetch=np.repeat(number, np.diff(fetches.first_read)),
            first_read=first,
            since=np.where(before == NEVER, request, before + 1),
        )
        is_kept = number < FETCH_CAP
        if is_kept.all():
            return part
        np.add.at(known["left_out"], of_fetch[~is_kept], 1)
        kept = np.repeat(is_kept, np.diff(fetches.first_read))
        return KeptFetches(
            reads=pick_records(part.reads, kept),
            connection=connection[kept],
            fetch=part.fetch[kept],
            first_read=stretch_edges(np.diff(fetches.first_read)[is_kept])[:-1],
            since=part.since[is_kept],
        )

    def places_of(self, part: KeptFetches) -> Ints:
        """The index in `fetched` of each read's partition: int64[reads]. Partitions not read before are added."""
        keys = part.connection << NUMBER_BITS | part.reads["number"]
        distinct, first, which = np.unique(keys, return_index=True, return_inverse=True)
        in_order = np.argsort(first, kind="stable")
        known, places = len(self.fetched_of), np.empty_like(distinct)
        places[in_order] = [
            self.fetched_of.setdefault(key, len(self.fetched_of)) for key in distinct[in_order].tolist()
        ]  # fmt: skip
        rows = first[in_order][places[in_order] >= known]
        reads, fetch = pick_records(part.reads, rows), np.searchsorted(part.first_read, rows, side="right") - 1
        self.fetched.add(
            new_records(
                FETCHED_PARTITION,
                len(rows),
                connection=part.connection[rows],
                number=reads["number"],
                since=part.since[fetch],
                first_request=reads["request_time"],
                first_offset=reads["fetch_offset"],
                partition_max_bytes=reads["partition_max_bytes"],
                last_fetch=NONE,
                last_offset=NONE,
                refused_since=NEVER,
                bound=NONE,
            )
        )
        return places[which]


def select_logs(logs: ConnectionLogs, kept: Bools) -> ConnectionLogs:
    """Some of the rows. kept: bool[rows]."""
    counts = np.diff(logs.first)
    return ConnectionLogs(
        logs.connection_id[kept],
        logs.number[kept],
        stretch_edges(counts[kept]),
        pick_records(logs.batches, np.repeat(kept, counts)),
    )


def note_fetches(captured: CapturedFetches, part: KeptFetches) -> None:
    """Keep the fetches, and what they show of their connections."""
    reads, connections, first = part.reads, captured.connections.records, part.first_read
    is_bounded = (reads["response_bound"] != NONE) & ~reads["redirected"]
    is_beyond = is_bounded & (reads["fetch_offset"] > reads["response_bound"])
    of_fetch, heads = part.connection[first], pick_records(reads, first)
    distinct, begins, counts = np.unique(of_fetch, return_index=True, return_counts=True)
    is_new = connections["fetches"][distinct] == 0
    for name in LIMITS:
        connections[name][distinct[is_new]] = heads[name][begins[is_new]]
    connections["begin"][distinct[is_new]] = heads["request_time"][begins[is_new]]
    connections["fetches"][distinct] += counts
    np.add.at(connections["reads"], part.connection, 1)
    for name in COUNTED:
        np.add.at(connections[name], part.connection, reads[name])
    connections["last_request"][of_fetch] = heads["request_time"]  # of several values the last one stays
    np.maximum.at(connections["last_response"], of_fetch, heads["response_time"])
    captured.fetches.append(
        new_records(
            ANSWERED_FETCH,
            len(first),
            connection=of_fetch,
            request=heads["request_time"],
            response=heads["response_time"],
            opens_session=heads["opens_session"],
            throttled=heads["throttled"],
            throttle_ms=heads["throttle_ms"],
            beyond_bound=np.logical_or.reduceat(is_beyond, first),
            returned=np.add.reduceat(reads["returned_bytes"], first),
        )
    )


def note_records_and_bounds(captured: CapturedFetches, part: KeptFetches, place: Ints) -> None:
    """Keep reads that got records, and those whose response has a bound above all bounds before this part.

    place: int64[reads], indices in `fetched`.
    """
    reads, highest = part.reads, captured.fetched.records["bound"]
    rows = np.flatnonzero(reads["returned_bytes"] > 0)
    served = pick_records(reads, rows)
    captured.servings.append(
        new_records(
            SERVING,
            len(rows),
            partition=place[rows],
            fetch=part.fetch[rows],
            response=served["response_time"],
            fetch_offset=served["fetch_offset"],
            returned=served["returned_bytes"],
            partition_max_bytes=served["partition_max_bytes"],
            bound=served["response_bound"],
        )
    )
    rows = np.flatnonzero(reads["response_bound"] > highest[place])
    bounds = pick_records(reads, rows)
    captured.bounds.append(
        new_records(
            BOUND,
            len(rows),
            partition=place[rows],
            request=bounds["request_time"],
            response=bounds["response_time"],
            bound=bounds["response_bound"],
        )
    )
    np.maximum.at(highest, place[rows], bounds["response_bound"])


def note_moves(captured: CapturedFetches, part: KeptFetches, place: Ints) -> None:
    """Keep the reads that do not repeat what their partition's read before asked for, those that are no longer refused,
    and the last read of each partition.

    place: int64[reads], indices in `fetched`. Moves are in the order of reads: partitions that a fetch adds come to the
    end of the reader's order in the order in which that fetch names them.
    """
    fetched = captured.fetched.records
    order = np.argsort(place, kind="stable")
    place, fetch = place[order], part.fetch[order]
    offset, returned = part.reads["fetch_offset"][order], part.reads["returned_bytes"][order]
    begins = np.append(True, place[1:] != place[:-1])
    before, from_offset, had = (
        np.where(begins, fetched[name][place], np.roll(column, 1))
        for name, column in (("last_fetch", fetch), ("last_offset", offset), ("last_returned", returned))
    )
    ends = np.append(begins[1:], True)
    is_refused = (part.reads["redirected"] & ~part.reads["sent_to_replica"])[order]
    since = refused_since(is_refused, begins, part.reads["request_time"][order], fetched["refused_since"][place])
    since_before = np.where(begins, fetched["refused_since"][place], np.roll(since, 1))
    is_answered_again = (since_before != NEVER) & ~is_refused
    fetched["last_fetch"][place[ends]], fetched["refused_since"][place[ends]] = fetch[ends], since[ends]
    fetched["last_offset"][place[ends]], fetched["last_returned"][place[ends]] = offset[ends], returned[ends]
    moves = np.flatnonzero((before < fetch - 1) | (offset != from_offset) | (had > 0) | is_answered_again)
    moves = moves[np.argsort(order[moves])]
    captured.moves.append(
        new_records(
            MOVE,
            len(moves),
            partition=place[moves],
            fetch=fetch[moves],
            before=before[moves],
            fetch_offset=offset[moves],
            from_offset=from_offset[moves],
            returned=had[moves],
            refused_since=since_before[moves],
        )
    )


def refused_since(is_refused: Bools, begins: Bools, request: Ints, before: Ints) -> Ints:
    """When each partition was first refused, of the refusals in a row that end with each read; NEVER if it is answered:
    int64[reads], us.

    The reads of a partition are next to each other and in time order. is_refused, begins: bool[reads], whether the
    broker refused the read, and whether it is the first of its partition. request: int64[reads], us. before:
    int64[reads], the result for the read before the first of its partition.

    >>> refused_since(np.array([True, True, False, True]), np.array([True, False, False, False]), np.arange(4),
    ...     np.full(4, NEVER)).tolist() == [0, 0, NEVER, 3]
    True
    """
    carried, opens = begins & (before != NEVER), is_refused & (begins | ~np.roll(is_refused, 1))
    started = np.where(carried, before, request)
    first = np.maximum.accumulate(np.where(opens, np.arange(len(request)), 0))
    return np.where(is_refused, started[first], NEVER)
