"""What a client sent, put together again: its records as they were appended, and the batches they went in.

A batch that is sent again, whole or in the parts that a split made of it, has the sequence numbers of its records; that
of a client without idempotence is told by the times of its records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.tables.steps import SENT
from udfs.columns.arrays import Bools, Ints, edges, read_only
from udfs.columns.arrow_columns import lists
from udfs.columns.time_units import NEVER
from udfs.replay.batch_split.recompression import costs
from udfs.replay.batch_split.state import Log, Sizes, Topics
from udfs.replay.shared.columns import int_column
from udfs.replay.shared.requests_in_flight import before_requests
from udfs.replay.shared.resent_batches import NONE, Rows, append_order, mark_resent
from udfs.wire.compressed_sizes import CODEC_NAMES
from udfs.wire.record_batches import RECORD_BATCH_OVERHEAD


@dataclass(frozen=True)
class Sent:
    """A stretch of what one client sent.

    topics: names by number. rows: all sendings; `first` those that sent records first, a batch each. batch_of, offset:
    int64[rows], the batch that a sending sends first or again, NONE where not known, and from which of its records on;
    is_whole: all of it. begin: int64[batches + 1], their records in the log. next_record: the one that was appended
    next of those that may go into the same batch: to the topic where they have no key, else to the partition. log,
    places, sizes: what the replay takes, of the records of first sendings alone; fitted: as sizes, by the fit alone.
    """

    topics: list[str]
    rows: Rows
    topic: Ints
    partition: Ints
    before: Ints
    first: Ints
    batch_of: Ints
    offset: Ints
    is_whole: Bools
    begin: Ints
    log: Log
    places: Topics
    sizes: Sizes
    fitted: Sizes
    next_record: Ints


def numbered(texts: pa.Array[Any], index: dict[str, int]) -> Ints:
    """A number for each text; new ones are added to `index`."""
    keys: Any = texts.dictionary_encode()
    numbers = np.array([index.setdefault(key, len(index)) for key in keys.dictionary.to_pylist()], np.int64)
    return numbers[keys.indices.to_numpy()] if len(numbers) else np.zeros(0, np.int64)


def unique_numbers(*columns: Ints) -> tuple[Ints, Ints]:
    """(int64[rows], a number for each distinct row of the columns; int64[columns, numbers], what they stand for)."""
    distinct, found = np.unique(np.stack(columns), axis=1, return_inverse=True)
    return found.reshape(-1), distinct


def rows_of_sent(batch: pa.RecordBatch, codec: Ints, offsets: Ints, times: Ints) -> Rows:
    """The numbers of SENT."""
    has = np.diff(offsets) > 0
    begin, end = np.minimum(offsets[:-1], max(len(times) - 1, 0)), np.maximum(offsets[1:] - 1, 0)
    padded = times if len(times) else np.zeros(1, np.int64)
    return Rows(
        int_column(batch, SENT.request_time, 0), int_column(batch, SENT.response_time, NEVER),
        int_column(batch, SENT.size_bytes, 0), codec, np.diff(offsets),
        int_column(batch, SENT.base_sequence, NONE), int_column(batch, SENT.error_code, NONE),
        int_column(batch, SENT.uncompressed_bytes, 0),
        np.where(has, padded[begin], 0), np.where(has, padded[end], 0),
    )  # fmt: skip


Sequences = dict[tuple[int, ...], int]
"""The sequence number that comes next, by topic, partition, producer id and epoch."""


def were_sent(streams: Ints, stream: Ints, rows: Rows, expected: Sequences) -> Bools:
    """Which rows send records that were sent before the first row; `expected` is brought forward.

    streams: int64[4, streams], what each stands for. stream: int64[rows], that of each row.
    """
    keys = [tuple(key) for key in streams.T.tolist()]
    known = np.array([expected.get(key, 0) for key in keys], np.int64)
    ends = np.zeros(len(keys), np.int64)
    np.maximum.at(ends, stream, rows.sequence + rows.records)
    expected.update(zip(keys, np.maximum(known, ends).tolist(), strict=True))
    return (rows.sequence >= 0) & (rows.sequence < known[stream])


def read_sent(batch: pa.RecordBatch, index: dict[str, int], expected: Sequences) -> Sent:
    """Put together what a client sent from rows of SENT in the order of their first records.

    index: numbers of its topics, expected: sequence numbers that come next; both are brought forward.
    """
    topic, codec = numbered(batch[SENT.topic], index), numbered(batch[SENT.codec], codec_index())
    number = int_column(batch, SENT.partition, 0)
    partition, places = unique_numbers(topic, number)
    offsets, content = lists(batch[SENT.record_sizes])
    _, times = lists(batch[SENT.create_times])
    rows = rows_of_sent(batch, codec, offsets, times)
    producer = int_column(batch, SENT.producer_id, NONE), int_column(batch, SENT.producer_epoch, NONE)
    stream, streams = unique_numbers(topic, number, *producer)
    parent, offset = resendings(rows, stream)
    is_first = (parent == NONE) & (rows.records > 0) & ~were_sent(streams, stream, rows, expected)
    # In the log, a partition's batches stand together, in the order in which they were filled.
    first = np.flatnonzero(is_first)[np.argsort(partition[is_first], kind="stable")]
    batch_of = numbers_of_batches(first, parent)
    begin = edges(rows.records[first])
    taken = np.repeat(offsets[first] - begin[:-1], rows.records[first]) + np.arange(begin[-1])
    sent_first = rows.records[first[np.maximum(batch_of, 0)]] if len(first) else 0
    is_whole = (offset == 0) & (rows.records == sent_first) & (len(first) > 0)
    log = log_of(batch, rows, first, begin, content[taken], times[taken], partition[first], len(index), topic)
    connection = int_column(batch, SENT.connection_id, 0)
    before = before_requests(rows.request_time, rows.response_time, connection)
    keyed = rows.records[first] - int_column(batch, SENT.keyless_records, 0)[first]
    is_sticky = (np.bincount(topic[first], keyed, len(index)) == 0).astype(np.int64)
    return Sent(
        list(index), rows, topic, partition, before, first, batch_of, offset, is_whole, begin, log,
        Topics(places[0], is_sticky),
        *costs(
            batch, rows.size[first] - RECORD_BATCH_OVERHEAD, codec[first], topic[first], first, begin, content[taken]
        ),
        following(log, topic[first][log.batch], is_sticky),
    )  # fmt: skip


def resendings(rows: Rows, stream: Ints) -> tuple[Ints, Ints]:
    """(the row whose records each row sends again, NONE for none; from which of its records on): int64[rows] each.

    stream: int64[rows], rows of the same topic, partition, producer id and epoch have the same number, from 0 on.
    """
    n = len(stream)
    parent, offset = np.zeros(n, np.int64), np.zeros(n, np.int64)
    memory = np.zeros(n, np.int64), np.full(int(stream.max(initial=-1)) + 1, NONE)
    mark_resent(read_only(stream), Rows(*map(read_only, rows)), *memory, parent, offset)
    return parent, offset


def numbers_of_batches(first: Ints, parent: Ints) -> Ints:
    """int64[rows], the batch that each row sends first or again, NONE where not known. first: int64[batches], rows."""
    batch = np.full(len(parent), NONE)
    batch[first] = np.arange(len(first))
    return np.where(parent == NONE, batch, batch[np.maximum(parent, 0)])


def codec_index() -> dict[str, int]:
    """Numbers of the codecs by name."""
    return {name: number for number, name in enumerate(CODEC_NAMES)}


def log_of(
    batch: pa.RecordBatch, rows: Rows, first: Ints, begin: Ints, content: Ints, timestamp: Ints, partition: Ints,
    topics: int, topic: Ints,
) -> Log:  # fmt: skip
    """The records of first sendings, with the order in which they were appended.

    A record is appended when it is made, as long as its time can be the client's clock: it is not after the request,
    and not before what stands before it. Where a batch's first time cannot (SENT.append_from), its request's time is.
    """
    of = np.repeat(np.arange(len(first)), np.diff(begin))
    append_from = int_column(batch, SENT.append_from, 0)[first]
    is_clock = append_from < rows.request_time[first]
    time = np.where(is_clock[of], timestamp * 1000, rows.request_time[first][of])
    time = np.clip(time, append_from[of], rows.request_time[first][of])
    # Rising within a partition: partitions are put far apart for one running maximum.
    earliest = int(time.min(initial=NEVER))
    apart = partition[of] * (int(time.max(initial=0)) - earliest + 1)
    time = np.maximum.accumulate(time - earliest + apart) - apart + earliest
    order = np.lexsort((np.arange(len(of)), partition[of], topic[first][of], time))
    append_order(
        time, topic[first][of], partition[of], order, np.full(topics, NONE), np.zeros(len(of), np.int64)
    )  # fmt: skip
    never, none = np.full(len(of), NEVER), np.full(len(of), NONE)
    return Log(time, timestamp, content, partition[of], of, never, none, none, never, order)


def following(log: Log, topic: Ints, is_sticky: Ints) -> Ints:
    """Of each record the next that was appended to its topic, or partition where the topic is not sticky; NONE for the
    last."""
    stream = np.where(is_sticky[topic] == 1, -1 - topic, log.partition)
    by_stream = log.order[np.argsort(stream[log.order], kind="stable")]
    found = np.full(len(topic), NONE)
    same = stream[by_stream[1:]] == stream[by_stream[:-1]]
    found[by_stream[:-1][same]] = by_stream[1:][same]
    return found
