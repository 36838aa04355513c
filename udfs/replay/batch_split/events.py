"""What a producer sent, put together from rows of SENT: its records in order, and the batches in which they went.

A batch that is sent again, whole or as parts after a split, is recognised by the sequence numbers of its records. A
client without idempotence has none; then the times of the records tell (`resent_batches`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from schemas.tables.steps import SENT
from schemas.wire.errors import MESSAGE_TOO_LARGE
from udfs.columns.arrays import Bools, Ints, Records, stretch_edges
from udfs.columns.arrow_columns import offsets_and_values
from udfs.columns.groups import group_numbers
from udfs.columns.records import int_fields, new_records
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import NEVER, US_PER_MS
from udfs.kernels.kernel import kernel
from udfs.replay.batch_split.recompression import size_model
from udfs.replay.batch_split.state import BATCH, PART, RECORD, SENT_PARTITION, Capture
from udfs.replay.shared.columns import int_column
from udfs.replay.shared.key_numbers import key_numbers
from udfs.replay.shared.requests_in_flight import before_requests
from udfs.replay.shared.resent_batches import ProducedBatches, resendings
from udfs.wire.compressed_sizes import CODEC_NUMBERS
from udfs.wire.record_batches import MAX_RECORD_OVERHEAD, RECORD_BATCH_OVERHEAD

SENDING = int_fields(
    "topic",
    "partition",
    "request_time",  # us
    "response_time",  # us, or NEVER
    "not_before",  # us: the last event that came before the request for sure
    "size",  # bytes
    "codec",
    "records",
    "sequence",  # of its first record (base sequence), or NONE
    "error",  # of the response, or NONE
    "uncompressed",  # bytes of the records; 0 if they could not be read
    "began_before",  # 1: its connection was opened before the capture began
    "batch",  # the captured batch that it sends, for the first time or again; NONE if that is not known
    "offset",  # the index in that batch of the first record that it sends
    "is_whole",  # 1: it sends all records of that batch
    "made_by",  # the refused sending whose split made it, or NONE
)
"""A sending: a batch in a produce request."""

Sequences = dict[tuple[int, ...], int]
"""The next sequence number by topic, partition, producer id and epoch."""


LEAST_LEFT = 0.1
"""If this share of the moves to another partition leaves a batch that has room, the application places the records."""


@dataclass(frozen=True)
class Sent:
    """A stretch of what a producer sent.

    topics: names by number. sendings: SENDING[sendings], in the order in which the batches were begun. capture: the
    batches that were sent for the first time, with their records. The times are captured; `timing` makes them
    consistent with an order.
    """

    topics: list[str]
    sendings: Records
    capture: Capture

    @property
    def first_sendings(self) -> Records:
        """The first sending of each batch: SENDING[batches]."""
        return self.sendings[self.capture.batches["sending"]]


class RecordColumns(NamedTuple):
    """The records of all rows of SENT; row i has those from offsets[i] to offsets[i + 1].

    offsets: int64[rows + 1]. content: int64[records], bytes of key, value and headers. timestamp: int64[records], ms.
    """

    offsets: Ints
    content: Ints
    timestamp: Ints


def read_sent(rows: pa.RecordBatch, topics: dict[str, int], sequences: Sequences) -> Sent:
    """Put together what a producer sent from rows of SENT in the order of their first records.

    topics: the number of each topic by name; new topics are added. sequences: updated by what the rows send.
    """
    (offsets, content), (_, timestamp) = (
        offsets_and_values(rows[SENT.record_sizes]),
        offsets_and_values(rows[SENT.create_times]),
    )
    columns = RecordColumns(offsets, content, timestamp)
    sendings = sendings_from_rows(rows, topics, np.diff(offsets))
    first = number_batches(sendings, *resendings_of(rows, sendings, columns, sequences))
    return Sent(list(topics), sendings, captured_batches(rows, sendings, first, columns))


def sendings_from_rows(rows: pa.RecordBatch, topics: dict[str, int], records: Ints) -> Records:
    """The rows as SENDING[sendings]. `number_batches` later fills in the batch that each of them sends.

    topics: as in `read_sent`. records: int64[rows], how many records each row has.
    """
    topic, number = key_numbers(topics, rows[SENT.topic]), int_column(rows, SENT.partition, 0)
    request, response = int_column(rows, SENT.request_time, 0), int_column(rows, SENT.response_time, NEVER)
    return new_records(
        SENDING,
        rows.num_rows,
        topic=topic,
        partition=group_numbers(topic, number)[0],
        request_time=request,
        response_time=response,
        not_before=before_requests(request, response, int_column(rows, SENT.connection_id, 0)),
        size=int_column(rows, SENT.size_bytes, 0),
        codec=key_numbers(CODEC_NUMBERS, rows[SENT.codec]),
        records=records,
        sequence=int_column(rows, SENT.base_sequence, NONE),
        error=int_column(rows, SENT.error_code, NONE),
        uncompressed=int_column(rows, SENT.uncompressed_bytes, 0),
        began_before=int_column(rows, SENT.began_before, 0),
    )


def resendings_of(
    rows: pa.RecordBatch, sendings: Records, columns: RecordColumns, sequences: Sequences
) -> tuple[Ints, Ints, Bools]:
    """(parent, offset, whether each row sends its records for the first time): int64[rows], int64[rows], bool[rows].
    The first two are from `resendings`.

    Updates `sequences`. sendings: SENDING[rows].
    """
    producer = (int_column(rows, name, NONE) for name in (SENT.producer_id, SENT.producer_epoch))
    keys = sendings["topic"], int_column(rows, SENT.partition, 0), *producer
    stream, members = group_numbers(*keys)
    has_records, last = sendings["records"] > 0, max(len(columns.timestamp) - 1, 0)
    timestamp = columns.timestamp if len(columns.timestamp) else np.zeros(1, np.int64)
    begin, end = np.minimum(columns.offsets[:-1], last), np.maximum(columns.offsets[1:] - 1, 0)
    parent, offset = resendings(
        ProducedBatches(
            request_time=sendings["request_time"],
            response_time=sendings["response_time"],
            size=sendings["size"],
            codec=sendings["codec"],
            records=sendings["records"],
            sequence=sendings["sequence"],
            error=sendings["error"],
            uncompressed=sendings["uncompressed"],
            first_timestamp=np.where(has_records, timestamp[begin], 0),
            last_timestamp=np.where(has_records, timestamp[end], 0),
        ),
        stream,
    )
    streams = [tuple(key) for key in np.stack([key[members] for key in keys], axis=1).tolist()]
    return parent, offset, (parent == NONE) & has_records & ~were_sent_before(sendings, stream, streams, sequences)


def were_sent_before(sendings: Records, stream: Ints, streams: list[tuple[int, ...]], sequences: Sequences) -> Bools:
    """Which sendings repeat records of earlier stretches: bool[sendings]. Updates `sequences`.

    stream: int64[sendings], the number of each sending's stream. streams: the keys of `sequences`, by that number.
    """
    known, ends = np.array([sequences.get(key, 0) for key in streams], np.int64), np.zeros(len(streams), np.int64)
    np.maximum.at(ends, stream, sendings["sequence"] + sendings["records"])
    sequences.update(zip(streams, np.maximum(known, ends).tolist(), strict=True))
    return (sendings["sequence"] >= 0) & (sendings["sequence"] < known[stream])


def number_batches(sendings: Records, parent: Ints, offset: Ints, is_first: Bools) -> Ints:
    """Number the batches, and write to each sending the number of its batch.

    Returns the sending that sent each batch first: int64[batches]. The batches of a partition are next to each other,
    in the order in which they were filled. sendings: SENDING[sendings], written in place. parent, offset, is_first:
    int64[sendings], int64[sendings], bool[sendings], from `resendings_of`.
    """
    first = np.flatnonzero(is_first)[np.argsort(sendings["partition"][is_first], kind="stable")]
    batch = np.full(len(sendings), NONE)
    batch[first] = np.arange(len(first))
    batch = np.where(parent == NONE, batch, batch[parent])
    known = np.flatnonzero(batch != NONE)
    sendings["batch"], sendings["offset"] = batch, offset
    sent_first = sendings["records"][first[batch[known]]]
    sendings["is_whole"][known] = (offset[known] == 0) & (sendings["records"][known] == sent_first)
    sendings["made_by"] = splits_that_made(sendings)
    return first


def splits_that_made(sendings: Records) -> Ints:
    """The refused sending whose split made each sending, NONE if no split did: int64[sendings].

    It is the last refused sending before it, if that has all records of the sending. Otherwise it is the last refused
    sending that had all records of the batch.
    """
    refused = (sendings["error"] == MESSAGE_TOO_LARGE) & (sendings["records"] > 1)
    last, whole = (
        last_sending_before(sendings, refused),
        last_sending_before(sendings, refused & (sendings["is_whole"] == 1)),
    )
    begin, end = sendings["offset"], sendings["offset"] + sendings["records"]
    has_records = (last != NONE) & (begin[last] <= begin) & (end <= end[last])
    return np.where(has_records, last, whole)


def last_sending_before(sendings: Records, among: Bools) -> Ints:
    """For each sending, the last earlier sending of records of the same batch, NONE if there is none: int64[sendings].

    among: bool[sendings], the sendings that are looked at.
    """
    n, batch = len(sendings), sendings["batch"]
    in_turn = np.lexsort((sendings["request_time"], batch))
    last = np.maximum.accumulate(np.where(among[in_turn], np.arange(n), NONE))
    place = np.concatenate([np.full(min(n, 1), NONE), last[:-1]])
    row = in_turn[place]
    is_same = (place != NONE) & (batch[row] == batch[in_turn]) & (batch[in_turn] != NONE)
    before = np.full(n, NONE)
    before[in_turn] = np.where(is_same, row, NONE)
    return before


def captured_batches(rows: pa.RecordBatch, sendings: Records, first: Ints, columns: RecordColumns) -> Capture:
    """The batches, as they were sent for the first time, and their records. first: int64[batches], these sendings."""
    first_sendings, topics = sendings[first], int(sendings["topic"].max(initial=-1)) + 1
    begin = stretch_edges(first_sendings["records"])
    taken = np.repeat(columns.offsets[first] - begin[:-1], first_sendings["records"]) + np.arange(begin[-1])
    batches = new_records(
        BATCH,
        len(first),
        sending=first,
        first=begin[:-1],
        end=begin[1:],
        codec=first_sendings["codec"],
        has_sequence=first_sendings["sequence"] >= 0,
    )
    keyed = first_sendings["records"] - int_column(rows, SENT.keyless_records, 0)[first]
    members = np.unique(sendings["partition"], return_index=True)[1]
    topic = sendings["topic"][members]
    partitions = new_records(SENT_PARTITION, len(members), topic=topic)
    append_from = int_column(rows, SENT.append_from, 0)[first]
    records = records_in(first_sendings, append_from, columns.content[taken], columns.timestamp[taken])
    order = append_order(records, partitions, topics)
    is_keyed = np.bincount(first_sendings["topic"], keyed, topics) > 0
    partitions["is_sticky"] = ~(is_keyed | leave_room(first_sendings, records, order, topics))[topic]
    note_next_records(records, partitions, batches, order, np.full(len(partitions) + topics, NONE))
    sizes = size_model(rows, batches, first_sendings, records)
    return Capture(records, order, batches, np.zeros(0, PART), partitions, sizes)


def records_in(first_sendings: Records, append_from: Ints, content: Ints, timestamp: Ints) -> Records:
    """The records of batches that were sent for the first time: RECORD[records].

    A record is appended at its timestamp, if that can be the client's clock: an append is not later than the request,
    and not earlier than the append before it. If SENT.append_from shows that the timestamp of a batch's first record
    cannot be the client's clock, all records of the batch are appended when it is sent.

    first_sendings: SENDING[batches]. append_from: int64[batches], us. content, timestamp: int64[records], bytes and ms.
    """
    batch = np.repeat(np.arange(len(first_sendings)), first_sendings["records"])
    request, partition = first_sendings["request_time"], first_sendings["partition"][batch]
    is_clock = append_from < request
    time = np.where(is_clock[batch], timestamp * US_PER_MS, request[batch])
    time = np.clip(time, append_from[batch], request[batch])
    # The times rise within a partition: partitions are put far apart, so that one running maximum does it.
    earliest = int(time.min(initial=NEVER))
    apart = partition * (int(time.max(initial=0)) - earliest + 1)
    time = np.maximum.accumulate(time - earliest + apart) - apart + earliest
    return new_records(
        RECORD,
        len(batch),
        time=time,
        timestamp=timestamp,
        content=content,
        partition=partition,
        batch=batch,
        part=NONE,
    )


def append_order(records: Records, partitions: Records, topics: int) -> Ints:
    """The records in the order in which they were appended: int64[records].

    records: RECORD[records]. partitions: SENT_PARTITION[partitions].
    """
    order = np.argsort(records["time"], kind="stable")
    stay_with_partitions(records, partitions, order, np.full(topics, NONE), np.zeros(len(order), np.int64))
    return order


def leave_room(first_sendings: Records, records: Records, order: Ints, topics: int) -> Bools:
    """The topics whose records, even without keys, are not placed by the built-in partitioner: bool[topics].

    That partitioner stays with a partition until a batch is closed (KIP-480) or `batch.size` bytes went there
    (KIP-794). An application that names partitions, or has a partitioner such as RoundRobinPartitioner, leaves a batch
    that is not closed yet, and before so much went to its partition: with the next record, what went there would be no
    larger than another batch of several records, even if it is not compressed.

    first_sendings: SENDING[batches]. records: RECORD[records]. order: int64[records], in which they were appended.
    """
    topic, largest = first_sendings["topic"], np.zeros(topics, np.int64)
    several = first_sendings["records"] > 1
    np.maximum.at(largest, topic[several], first_sendings["size"][several])
    in_turn = order[np.argsort(topic[records["batch"][order]], kind="stable")]
    here, there = records[in_turn[:-1]], records[in_turn[1:]]
    left, entered = first_sendings[here["batch"]], first_sendings[there["batch"]]
    moves = (left["topic"] == entered["topic"]) & (left["partition"] != entered["partition"])
    stayed = bytes_in_stretches(
        records["content"][in_turn] + MAX_RECORD_OVERHEAD, here["partition"] != there["partition"]
    )
    size = RECORD_BATCH_OVERHEAD + np.maximum(left["uncompressed"], stayed[:-1])
    has_room = (left["uncompressed"] > 0) & (size + there["content"] + MAX_RECORD_OVERHEAD <= largest[left["topic"]])
    is_early = moves & has_room & (there["time"] < left["not_before"])
    of_topic = np.bincount(left["topic"], moves, topics)
    return (of_topic > 0) & (np.bincount(left["topic"], is_early, topics) >= LEAST_LEFT * of_topic)


def bytes_in_stretches(sizes: Ints, ends: Bools) -> Ints:
    """The sum of the sizes from the begin of each one's stretch up to it: int64[n].

    sizes: int64[n]. ends: bool[n - 1], whether a stretch ends there.
    """
    total = np.cumsum(sizes)
    begins = np.append(True, ends)[: len(sizes)]
    before = np.maximum.accumulate(np.where(begins, total - sizes, 0))
    return total - before


@kernel
def stay_with_partitions(records: Records, partitions: Records, order: Ints, current: Ints, moved: Ints) -> None:
    """Put records of the same time into the order in which a client sends records without keys: it stays with a
    partition.

    records: RECORD[records]. partitions: SENT_PARTITION[partitions]. order: int64[records], by time and partition,
    written in place. current, moved: working memory, int64[topics] with NONE everywhere, and int64[records].
    """
    first = 0
    while first < len(order):
        end, row = first, records[order[first]]
        topic = partitions[row.partition].topic
        while end < len(order):
            other = records[order[end]]
            if other.time != row.time or partitions[other.partition].topic != topic:
                break
            end += 1
        free = first
        for is_current in (True, False):
            for place in range(first, end):
                if (records[order[place]].partition == current[topic]) == is_current:
                    moved[free] = order[place]
                    free += 1
        for place in range(first, end):
            order[place] = moved[place]
        current[topic] = records[order[end - 1]].partition
        first = end


@kernel
def note_next_records(records: Records, partitions: Records, batches: Records, order: Ints, later: Ints) -> None:
    """Write to each batch the next record that could have gone into it: a record of its topic, if no record of the
    topic has a key; otherwise a record of its partition.

    records: RECORD[records]. partitions: SENT_PARTITION[partitions]. batches: BATCH[batches], written in place. order:
    int64[records], in which they were appended. later: int64[partitions + topics], NONE everywhere, working memory.
    """
    for place in range(len(order) - 1, -1, -1):
        number = order[place]
        record = records[number]
        partition = partitions[record.partition]
        stream = len(partitions) + partition.topic if partition.is_sticky else record.partition
        batch = batches[record.batch]
        if batch.end == number + 1:
            batch.next_record = later[stream]
        later[stream] = number
