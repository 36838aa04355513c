"""From offsets and sizes to batches: which batches of the partitions' logs each captured read took."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints, Records, numbers_in_stretches, read_only, stretch_edges
from udfs.columns.records import int_fields, new_records, pick_records
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import ALWAYS, NEVER
from udfs.kernels.kernel import kernel
from udfs.replay.fetch_max_bytes.closed_loop.by_node import Handovers, NodeReads
from udfs.replay.fetch_max_bytes.closed_loop.changes import BATCH_UNKNOWN, Destinations
from udfs.replay.fetch_max_bytes.closed_loop.logs import Log
from udfs.replay.fetch_max_bytes.closed_loop.state import LOG_BATCH, READ_PARTITION, first_above
from udfs.replay.shared.key_numbers import partition_of

READ_BATCHES = int_fields(
    "partition",
    "offset",  # where it begins
    "size",  # bytes, counted from the begin of the batch at that offset
    "begin",  # the batch at the offset
    "end",  # behind the last batch that is whole within `size`
)
"""A read, and the batches that it took."""


class ReaderLogs(NamedTuple):
    """The batches of a reader's partitions: READ_PARTITION[n], LOG_BATCH[batches + 1], and the same batches as
    captured, READABLE_BATCH[batches].
    """

    partitions: Records
    batches: Records
    captured: Records


def build_logs(reads: NodeReads, log: Log, handovers: Handovers) -> ReaderLogs:
    """The partitions with their batches, one partition after the other. At first, each log is a single segment."""
    lowest, counts = log.reach["lowest"], log.reach["end"] - log.reach["lowest"]
    first, rows = stretch_edges(counts), numbers_in_stretches(lowest, counts)
    captured = pick_records(log.batches, rows)
    partitions = new_records(
        READ_PARTITION,
        len(lowest),
        number=reads.partitions["number"],
        partition_max_bytes=reads.partitions["partition_max_bytes"],
        first_batch=first[:-1],
        start_batch=first[:-1] + np.minimum(log.reach["start"], log.reach["end"]) - lowest,
        end_batch=first[1:],
        backlog_end=first[:-1] + log.reach["backlog_end"] - lowest,
        is_known=log.reach["is_known"],
        previous=NONE,
    )
    batches = new_records(
        LOG_BATCH,
        len(captured) + 1,
        bytes_before=stretch_edges(np.maximum(captured["size"], 1)),
        records_before=stretch_edges(captured["records"]),
    )
    batches["visible_at"][:-1], batches["segment_end"][:-1] = log.visible_at[rows], np.repeat(first[1:], counts)
    logs = ReaderLogs(partitions, batches, captured)
    hand_over(logs, handovers)
    return logs


def places_in_deal(keys: Sequence[str]) -> Ints:
    """The rank of each partition among those of its reader, by topic and partition: int64[numbers].

    A partition has the same rank at all brokers. keys: broker, topic and partition of each, by its number.
    """
    partitions = [(topic, int(partition)) for _, topic, partition in map(partition_of, keys)]
    place = {partition: i for i, partition in enumerate(sorted(set(partitions)))}
    return np.array([place[partition] for partition in partitions], np.int64)


def hand_over(logs: ReaderLogs, handovers: Handovers) -> None:
    """Link each partition that comes from another broker to the same partition there."""
    base, partitions = logs.captured["base_offset"], logs.partitions
    first, end = partitions["first_batch"], partitions["end_batch"]
    for before, after in zip(handovers.before.tolist(), handovers.after.tolist(), strict=True):
        if first[before] < end[before]:
            here = first[after] + np.searchsorted(base[first[after] : end[after]], base[first[before]])
            if here < end[after] and base[here] == base[first[before]]:
                partitions["previous"][after], partitions["batch_shift"][after] = before, here - first[before]


def reads_of_batches(logs: ReaderLogs, partition: Ints, offset: Ints, size: Ints) -> Records:
    """The batches that reads take: READ_BATCHES[n].

    partition, offset, size: int64[n] each: where each read begins, and how many bytes it takes.
    """
    batches = new_records(READ_BATCHES, len(partition), partition=partition, offset=offset, size=size)
    place_reads(ReaderLogs(*map(read_only, logs)), batches)
    return batches


@kernel
def place_reads(logs: ReaderLogs, reads: Records) -> None:
    """Fill `begin` and `end` of reads. reads: READ_BATCHES[n]."""
    for i in range(len(reads)):
        read, batches = reads[i], logs.batches
        first, end = logs.partitions[read.partition].first_batch, logs.partitions[read.partition].end_batch
        begin = first_above(logs.captured["last_offset"], first, end, read.offset - 1)
        read.begin = begin
        read.end = first_above(batches["bytes_before"], first, end + 1, batches[begin].bytes_before + read.size) - 1


class Servings(NamedTuple):
    """The captured servings, int64[n] each: partitions of a response that have records. Those of a node are in time
    order.

    partition: its index. node, fetch: of the response, which came at `response` (us). size: bytes. begin, end: the
    batches [begin, end) that it brought whole.
    """

    partition: Ints
    node: Ints
    fetch: Ints
    response: Ints
    size: Ints
    begin: Ints
    end: Ints


def servings_of(reads: NodeReads, logs: ReaderLogs) -> Servings:
    """The captured servings, placed in the logs."""
    served = reads.servings
    placed = reads_of_batches(logs, served["partition"], served["fetch_offset"], served["returned"])
    return Servings(
        partition=served["partition"],
        node=reads.node[served["partition"]],
        fetch=served["fetch"],
        response=served["response"],
        size=served["returned"],
        begin=placed["begin"],
        end=placed["end"],
    )


def times_of_enough(logs: ReaderLogs, servings: Servings, needed: Ints) -> Ints:
    """When enough bytes of each response could be read for the broker to answer the fetch: int64[fetches], us.

    ALWAYS where nothing is known of the batches; NEVER where the whole response has fewer bytes than `needed`, for then
    the broker answered for another reason. needed: int64[fetches], the record bytes for which each fetch waits.
    """
    known = np.maximum(servings.end, np.minimum(servings.begin + 1, logs.partitions["end_batch"][servings.partition]))
    pieces = np.maximum(known - servings.begin, 1)
    is_known, fetch = np.repeat(known > servings.begin, pieces), np.repeat(servings.fetch, pieces)
    batch, before = numbers_in_stretches(servings.begin, pieces), logs.batches["bytes_before"]
    size = np.append(np.diff(before), 0)[batch]
    first = stretch_edges(pieces)
    # The bytes of a batch that was cut off count as part of the last whole batch.
    size[first[1:] - 1] += servings.size - np.add.reduceat(size, first[:-1])
    visible_at = np.where(is_known, logs.batches["visible_at"][batch], ALWAYS)
    order = np.lexsort((visible_at, fetch))
    fetch, size, visible_at = fetch[order], size[order], visible_at[order]
    came = np.cumsum(size)
    is_enough = came - (came - size)[np.searchsorted(fetch, fetch)] >= needed[fetch]
    times = np.full(len(needed), NEVER)
    np.minimum.at(times, fetch[is_enough], visible_at[is_enough])
    return times


def segment_ends_of_batches(reads: NodeReads, logs: ReaderLogs, servings: Servings, max_bytes: Ints) -> Ints:
    """The index behind the last batch of each batch's segment, as far as the capture shows it: int64[batches].

    If a read ended with a whole batch, below its limits and below the bound in the response, its segment ended there
    (LogSegment.read of kafka-storage 4.3). max_bytes: int64[nodes], the limit of each node's responses.
    """
    count, starts, size, end = len(logs.captured), logs.batches["bytes_before"], servings.size, servings.end
    before = np.cumsum(size) - size
    first_of_fetch = np.searchsorted(servings.fetch, servings.fetch)
    left = max_bytes[servings.node] - (before - before[first_of_fetch])
    within = size < np.minimum(reads.servings["partition_max_bytes"], left)
    inside = end < logs.partitions["end_batch"][servings.partition]
    base = np.append(logs.captured["base_offset"], 0)[np.minimum(end, max(count - 1, 0))]
    is_whole = starts[end] == starts[servings.begin] + size
    shown = end[within & inside & is_whole & (base < reads.servings["bound"])]
    cuts = np.unique(np.concatenate([shown, logs.partitions["end_batch"]]))
    return cuts[np.searchsorted(cuts, np.arange(count), side="right")]


def destinations_of(reads: NodeReads, logs: ReaderLogs) -> Destinations:
    """Where moves lead to. If the log breaks off, a move that leads out of it counts as going on as expected."""
    moves, partitions = reads.moves, logs.partitions
    p, offset = moves["partition"], moves["fetch_offset"]
    begin = reads_of_batches(logs, p, offset, np.zeros_like(offset))["begin"]
    expected = reads_of_batches(logs, p, moves["from_offset"], np.maximum(moves["returned"], 0))["end"]
    has_batches = (partitions["first_batch"] < partitions["end_batch"])[p]
    lowest = np.append(logs.captured["base_offset"], 0)[partitions["first_batch"][p]]
    behind = np.append(logs.captured["last_offset"], 0)[partitions["end_batch"][p] - 1] + 1
    is_in_log = ~has_batches | ((offset >= lowest) & (offset <= behind))
    elsewhere = np.where(is_in_log, begin, np.where(partitions["is_known"][p] == 1, BATCH_UNKNOWN, expected))
    return Destinations(np.where(moves["before"] < 0, partitions["start_batch"][p], elsewhere), expected)
