"""Turns rows of READS into records, and records into rows.

A row goes from the task of a partition to the task of a reader. It has either a read with what the partition's log had
for it, or the log itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from schemas.tables.steps import READS
from schemas.tables.values import CONSUMER
from udfs.columns.arrays import Bools, Bytes, Ints, Records, stretch_edges
from udfs.columns.arrow_columns import arrow_array, binary_column, offsets_and_bytes, repeated_text_column
from udfs.columns.records import join_records, pick_records
from udfs.columns.sentinels import NONE
from udfs.facts.arrow_tables import make_rows
from udfs.replay.fetch_max_bytes.closed_loop.fetchers import follower_and_fetcher
from udfs.replay.fetch_max_bytes.state import CARRIED, READ, READABLE_BATCH
from udfs.replay.shared.key_numbers import key_numbers
from udfs.replay.shared.rows_by_key import FETCH_KEY, key_boundaries

READER = (READS.client_id, READS.client_address, READS.reader)
"""The columns that say to which reader a row belongs."""
KEYS = tuple(column for column in READS.columns if column not in (READS.group, READS.numbers, READS.lists))
"""All columns except the packed records, and the group of readers that are replayed together."""
SIZE_BYTES = 4
"""The column `lists` has the size of a batch as an int32."""


class Reads(NamedTuple):
    """Reads of whole fetches.

    reads: READ[reads]. first_read: int64[fetches + 1], where the reads of each fetch begin. sizes: int64[batches],
    bytes of the batches that the reads could return.
    """

    reads: Records
    first_read: Ints
    sizes: Ints


class ConnectionLogs(NamedTuple):
    """Logs that readers read, one in each row.

    connection_id: int64[rows], the connection that reads the log. number: int64[rows], the number of its partition.
    first: int64[rows + 1] and batches: READABLE_BATCH[n]: those of row i are batches[first[i]:first[i + 1]].
    """

    connection_id: Ints
    number: Ints
    first: Ints
    batches: Records


def joined_logs(parts: Sequence[ConnectionLogs]) -> ConnectionLogs:
    """The logs of all parts, one after the other."""
    none = np.zeros(0, np.int64)
    return ConnectionLogs(
        np.concatenate([none, *(part.connection_id for part in parts)]),
        np.concatenate([none, *(part.number for part in parts)]),
        stretch_edges(np.concatenate([none, *(np.diff(part.first) for part in parts)])),
        join_records(READABLE_BATCH, [part.batches for part in parts]),
    )


def rows_of_reads(keys: pa.RecordBatch, reads: Records, sizes: Ints, counts: Ints) -> pa.RecordBatch:
    """Rows of READS, one for each read.

    keys: the columns KEYS of these rows. reads: CARRIED[n]. sizes: bytes of the batches of all reads, one read after
    the other; read i has counts[i] of them.
    """
    return rows_with(keys, reads, sizes.astype(np.int32).view(np.uint8), stretch_edges(counts) * SIZE_BYTES)


def rows_of_logs(keys: pa.RecordBatch, partition: Ints, batches: Records, counts: Ints) -> pa.RecordBatch:
    """Rows of READS, one for each log.

    keys: the columns KEYS of these rows. partition: int64[n]. batches: READABLE_BATCH of all logs, one log after the
    other; row i has counts[i] of them.
    """
    numbers = np.zeros(len(partition), CARRIED)
    numbers["partition"] = partition
    return rows_with(keys, numbers, batches.view(np.uint8), stretch_edges(counts) * READABLE_BATCH.itemsize)


def rows_with(keys: pa.RecordBatch, numbers: Records, lists: Bytes, ends: Ints) -> pa.RecordBatch:
    """Rows of READS from their columns KEYS, and the numbers and lists of each row.

    numbers: CARRIED[n]. lists: uint8[bytes], those of row i from ends[i] to ends[i + 1]. ends: int64[n + 1].
    """
    columns: dict[str, pa.Array[Any]] = {str(column): keys[column] for column in KEYS}
    columns[READS.group] = repeated_text_column("", len(numbers))
    columns[READS.numbers] = binary_column(numbers.view(np.uint8), np.arange(len(numbers) + 1) * CARRIED.itemsize)
    columns[READS.lists] = binary_column(lists, ends)
    return make_rows(READS, columns)


def with_groups(
    batches: Iterable[pa.RecordBatch], groups: Mapping[tuple[str, str], str], joins_fetchers: bool
) -> Iterator[pa.RecordBatch]:
    """Rows of READS with the groups of readers that are replayed together.

    groups: the groups of consumers that share quotas, by client.id and address. joins_fetchers: the fetchers of a
    follower are one group.
    """
    place = READS.columns.index(READS.group)
    for rows in batches:
        keys = zip(*(rows[column].to_pylist() for column in READER), strict=True)
        names = [
            groups.get((client_id, address), "")
            if kind == CONSUMER
            else group_of_fetcher(client_id, address)
            if joins_fetchers
            else ""
            for client_id, address, kind in keys
        ]
        yield rows.set_column(place, str(READS.group), pa.array(names, pa.string()).dictionary_encode())


@cache
def group_of_fetcher(client_id: str, address: str) -> str:
    """The group of a follower's fetcher: the follower and its address. Empty if the client.id names no fetcher."""
    found = follower_and_fetcher(client_id)
    return f"{found[0]} at {address}" if found else ""


def logs_and_reads(rows: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """(The rows of a reader that have logs, which come first; the rows that have reads). rows: of READS."""
    logs = int(np.count_nonzero(rows[READS.exchange_no].to_numpy() < 0))
    return rows.slice(0, logs), rows.slice(logs)


def reads_of(rows: pa.RecordBatch) -> Reads:
    """The reads of whole fetches. `number` is 0 in all of them until `partition_numbers` gives it."""
    carried, reads = carried_of(rows), np.zeros(rows.num_rows, READ)
    for name in CARRIED.names or ():
        reads[name] = carried[name]
    for column in (READS.connection_id, READS.exchange_no, READS.request_time):
        reads[str(column)] = rows[column].to_numpy()
    ends, raw = offsets_and_bytes(rows[READS.lists])
    size_ends = (ends - ends[0]) // SIZE_BYTES
    reads["first_size"], reads["end_size"] = size_ends[:-1], size_ends[1:]
    return Reads(reads, key_boundaries(rows, FETCH_KEY), raw[ends[0] : ends[-1]].view(np.int32).astype(np.int64))


def carried_of(rows: pa.RecordBatch) -> Records:
    """The column `numbers`: CARRIED[rows]."""
    starts, raw = offsets_and_bytes(rows[READS.numbers])
    return raw[starts[0] : starts[-1]].view(CARRIED)


def answered_fetches(fetches: Reads, rows: pa.RecordBatch) -> tuple[Reads, pa.RecordBatch]:
    """The fetches that were answered, with their rows."""
    reads, first_read, sizes = fetches
    is_answered, lengths = reads["returned_bytes"][first_read[:-1]] != NONE, np.diff(first_read)
    if is_answered.all():
        return fetches, rows
    kept: Bools = np.repeat(is_answered, lengths)
    return Reads(pick_records(reads, kept), stretch_edges(lengths[is_answered]), sizes), rows.filter(pa.array(kept))


def partition_numbers(known: dict[str, int], rows: pa.RecordBatch, partition: Ints) -> Ints:
    """The number of each row's partition at its broker: int64[rows]. New partitions are added to `known`.

    known: numbers by key; `partition_of` splits a key into broker, topic and partition.
    """
    partitions: pa.Array[Any] = arrow_array(partition).cast(pa.string())
    return key_numbers(known, rows[READS.broker], rows[READS.topic], partitions)


def logs_from_rows(rows: pa.RecordBatch, known: dict[str, int]) -> ConnectionLogs:
    """The logs of rows that have them. known: numbers of partitions by their keys; new partitions are added to it."""
    ends, raw = offsets_and_bytes(rows[READS.lists])
    return ConnectionLogs(
        rows[READS.connection_id].to_numpy(),
        partition_numbers(known, rows, carried_of(rows)["partition"].astype(np.int64)),
        (ends - ends[0]) // READABLE_BATCH.itemsize,
        raw[ends[0] : ends[-1]].view(READABLE_BATCH),
    )
