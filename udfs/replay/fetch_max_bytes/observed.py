"""What is kept of the captured fetches of a connection, to replay it in closed loop when all of them have been seen.

That is a few numbers for each fetch and for each partition with records, and the batches of the logs. Of a connection
with more than MOST_FETCHES fetches the first ones are kept and the others counted. Of one with more than MOST_BATCHES
batches no log is kept, so that it is not known.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from schemas.tables.steps import READS
from udfs.columns.arrays import Bools, Ints
from udfs.columns.arrow_columns import lists
from udfs.replay.fetch_max_bytes.closed_changes import Moves
from udfs.replay.fetch_max_bytes.known_logs import LISTS

MOST_FETCHES = 1 << 20
MOST_BATCHES = 1 << 22
LIMITS = (READS.max_bytes, READS.min_bytes, READS.max_wait_ms, READS.in_session, READS.profile, READS.api_version)
UNSET = -1

Columns = dict[str, Ints]
"""Columns of READS by name, as int64: UNSET where null."""
FETCHED = (READS.request_time, READS.response_time, READS.opens_session, READS.throttled, READS.returned_bytes)
SERVED = (
    READS.partition, READS.request_time, READS.response_time, READS.fetch_offset, READS.returned_bytes,
    READS.partition_max_bytes, READS.told_bound,
)  # fmt: skip
TOLD = (READS.partition, READS.request_time, READS.response_time, READS.told_bound)
FIRST = (READS.request_time, READS.fetch_offset, READS.partition_max_bytes)
FLAGS = (READS.session_known, READS.refused, READS.redirected, READS.is_converted, READS.is_compacted)


@dataclass
class FirstRead:
    """The first read of a partition: when (us), from where and how much.

    since: when the reader can have begun to want it, at the earliest: just after the fetch before was sent, which did
    not ask for it; for the first fetch its own time.
    """

    since: int
    time: int
    fetch_offset: int
    partition_max_bytes: int


class LastRead(NamedTuple):
    """The last read of a partition so far: the number of its fetch, from where, and the bytes that came."""

    fetch: int
    fetch_offset: int
    returned: int


NOT_READ = LastRead(UNSET, UNSET, 0)


@dataclass
class Observed:
    """One connection of a reader; fetches, servings, told: pieces of FETCHED, SERVED, TOLD, partitions by number.

    logs: by partition's key the pieces of its log, in the columns of LISTS. limits: LIMITS of the first fetch. flags:
    how many reads have each of FLAGS. bounds: the highest told by partition. moves: reads that do not repeat the one
    before. count: fetches; left_out: fetches beyond those; reads: of partitions in them; batches: in the logs.
    has_logs: whether there was room for those.
    last_sent: when the last fetch was (us).
    moved_away: by partition, when it was asked for at another broker (us). moved_here: by partition, the offset that
    was asked for first at the brokers before.
    """

    broker: str
    fetches: list[Columns] = field(default_factory=list)
    servings: list[Columns] = field(default_factory=list)
    told: list[Columns] = field(default_factory=list)
    logs: dict[str, list[Columns]] = field(default_factory=lambda: defaultdict(list))
    first: dict[int, FirstRead] = field(default_factory=dict)
    last: dict[int, LastRead] = field(default_factory=dict)
    moves: list[Moves] = field(default_factory=list)
    limits: dict[str, int] = field(default_factory=dict)
    flags: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    bounds: dict[int, int] = field(default_factory=dict)
    count: int = 0
    left_out: int = 0
    reads: int = 0
    batches: int = 0
    has_logs: bool = True
    last_sent: int | None = None
    moved_away: dict[int, int] = field(default_factory=dict)
    moved_here: dict[int, int] = field(default_factory=dict)


def joined(pieces: list[Columns], names: tuple[str, ...]) -> Columns:
    """The columns of all pieces."""
    empty = np.zeros(0, np.int64)
    return {str(name): np.concatenate([empty, *(piece[str(name)] for piece in pieces)]) for name in names}


def note_log(seen: Observed, key: str, piece: Columns) -> None:
    """Keep a piece of a partition's log. With more than MOST_BATCHES none is kept, whichever came first."""
    seen.batches += len(piece["base"])
    seen.has_logs = seen.batches <= MOST_BATCHES
    if seen.has_logs:
        seen.logs[key].append(piece)
    else:
        seen.logs.clear()


def log_pieces(rows: pa.RecordBatch) -> Iterator[tuple[str, Columns]]:
    """Of each row of READS that has a piece of a log: its partition's key and the piece, in the columns of LISTS."""
    names = (rows[name].to_pylist() for name in (READS.broker, READS.topic, READS.partition))
    keys = ("\0".join(map(str, key)) for key in zip(*names, strict=True))
    read = {part: lists(rows[column]) for part, column in LISTS.items()}
    ends, _ = read["base"]  # as all others
    for key, (begin, end) in zip(keys, pairwise(ends.tolist()), strict=True):
        yield key, {part: values[begin:end] for part, (_, values) in read.items()}


def note_reads(seen: Observed, reads: Columns, fetch_from: Ints) -> None:
    """Keep what matters of whole, answered fetches of the connection, in time order; `partition` being a number."""
    room = MOST_FETCHES - seen.count
    seen.left_out += max(len(fetch_from) - 1 - room, 0)
    fetch_from = fetch_from[: room + 1]
    if len(fetch_from) < 2:
        return
    reads = {name: column[: fetch_from[-1]] for name, column in reads.items()}
    starts = fetch_from[:-1]
    if not seen.limits:
        seen.limits = {str(name): int(reads[str(name)][0]) for name in LIMITS}
    fetch = seen.count + np.repeat(np.arange(len(starts)), np.diff(fetch_from))
    seen.moves.append(moves_of(seen, reads, fetch))
    seen.count += len(starts)
    seen.reads += int(fetch_from[-1])
    of_fetch = {str(name): reads[str(name)][starts] for name in FETCHED}
    of_fetch[str(READS.returned_bytes)] = np.add.reduceat(reads[str(READS.returned_bytes)], starts)
    seen.fetches.append(of_fetch)
    served = reads[str(READS.returned_bytes)] > 0
    seen.servings.append({str(name): reads[str(name)][served] for name in SERVED})
    for name in FLAGS:
        seen.flags[str(name)] += int((reads[str(name)] == 1).sum())
    news = note_partitions(seen, reads, fetch_from)
    seen.told.append({str(name): reads[str(name)][news] for name in TOLD})


def note_partitions(seen: Observed, reads: Columns, fetch_from: Ints) -> Bools:
    """Keep first reads of partitions; returns which rows may tell a bound above those told before."""
    sent = reads[str(READS.request_time)][fetch_from[:-1]]
    after_before = np.concatenate([[sent[0] if seen.last_sent is None else seen.last_sent + 1], sent[:-1] + 1])
    seen.last_sent = int(sent[-1])
    numbers, told = reads[str(READS.partition)], reads[str(READS.told_bound)]
    before = np.full(int(numbers.max()) + 1, UNSET)
    distinct, rows, places = np.unique(numbers, return_index=True, return_inverse=True)
    highest = np.full(len(distinct), UNSET)
    np.maximum.at(highest, places, told)
    for place in np.argsort(rows, kind="stable").tolist():
        number, row = int(distinct[place]), int(rows[place])
        before[number] = seen.bounds.get(number, UNSET)
        seen.bounds[number] = max(int(before[number]), int(highest[place]))
        if number not in seen.first:
            since = int(after_before[np.searchsorted(fetch_from, row, side="right") - 1])
            time, offset, most = (int(reads[str(name)][row]) for name in FIRST)
            seen.first[number] = FirstRead(since, time, offset, most)
    return told > before[numbers]


def moves_of(seen: Observed, reads: Columns, fetch: Ints) -> Moves:
    """The reads that do not repeat what the one before of their partition asked for. fetch: int64[reads]."""
    order = np.argsort(reads[str(READS.partition)], kind="stable")
    number, offset, returned = (
        reads[str(name)][order] for name in (READS.partition, READS.fetch_offset, READS.returned_bytes)
    )
    fetch = fetch[order]
    starts = np.flatnonzero(np.diff(number, prepend=UNSET))
    last = np.append(starts[1:], len(number)) - 1
    before, from_offset, had = (np.concatenate([column[:1], column[:-1]]) for column in (fetch, offset, returned))
    carried = [seen.last.get(n, NOT_READ) for n in number[starts].tolist()]
    before[starts], from_offset[starts], had[starts] = np.array(carried, np.int64).T
    ended = zip(fetch[last].tolist(), offset[last].tolist(), returned[last].tolist(), strict=True)
    seen.last.update(zip(number[last].tolist(), (LastRead(*read) for read in ended), strict=True))
    kept = (before < fetch - 1) | (offset != from_offset) | (had > 0)
    return Moves(*(column[kept] for column in (number, fetch, before, offset, from_offset, had)))


def columns_of(reads: pa.RecordBatch, numbers: Ints) -> Columns:
    """The columns of READS that are kept, the partition being its number."""
    names = {*FETCHED, *SERVED, *TOLD, *FLAGS, *LIMITS, READS.partition_max_bytes}
    found = {str(name): reads[name].cast(pa.int64()).fill_null(UNSET).to_numpy() for name in names}
    return {**found, str(READS.partition): numbers}
