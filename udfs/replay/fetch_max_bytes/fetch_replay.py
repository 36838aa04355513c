"""The pass over readers: every fetch of a consumer or follower answered in every lane, judged, and summed up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from schemas.tables.steps import READS
from schemas.tables.table import Table
from udfs.columns.arrays import Bools, Ints, edges
from udfs.columns.arrow_columns import lists
from udfs.columns.time_units import NEVER
from udfs.facts.arrow_tables import packed_together
from udfs.replay.fetch_max_bytes import carried_reads, fairness
from udfs.replay.fetch_max_bytes.client_rules import FIRST_WITH_MAX_BYTES
from udfs.replay.fetch_max_bytes.closed_reader import ClosedReader, closed_totals, ready
from udfs.replay.fetch_max_bytes.closed_report import closed_rows
from udfs.replay.fetch_max_bytes.fetch_lanes import FetchLanes
from udfs.replay.fetch_max_bytes.fetch_read import Lanes, Reads, read_fetches
from udfs.replay.fetch_max_bytes.fetch_report import Reader, reader_rows
from udfs.replay.fetch_max_bytes.fidelity import NO_RECORDS_KNOWN, Known, judge
from udfs.replay.fetch_max_bytes.response_rows import response_events, room_for
from udfs.replay.shared.columns import int_column
from udfs.replay.shared.rows_by_key import FETCH, boundaries, by_key, whole_fetches

READER = (READS.client_id, READS.client_address, READS.reader)


def captured_lane(lanes: Lanes) -> Lanes:
    """Lane 0 alone."""
    return Lanes(*(column[:1] for column in lanes))


def logs_and_reads(part: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """The rows of a reader that have logs, which come first, and those of its reads."""
    logs = int(np.count_nonzero(part[READS.exchange_no].to_numpy() < 0))
    return part.slice(0, logs), part.slice(logs)


def answered_reads(returned: Ints, fetch_from: Ints) -> tuple[Bools, Ints]:
    """bool[reads], those of fetches that were answered, and where each such fetch begins among them. returned:
    int64[reads].
    """
    answered, lengths = returned[fetch_from[:-1]] != NO_RECORDS_KNOWN, np.diff(fetch_from)
    return np.repeat(answered, lengths), edges(lengths[answered])


@dataclass
class Replayed:
    """The reader at hand, with its sums and verdicts."""

    reader: Reader
    sums: fairness.ReaderSums
    verdicts: Counter[tuple[str, bool, int]] = field(default_factory=Counter)
    closed: ClosedReader = field(default_factory=ClosedReader)

    @property
    def index(self) -> Mapping[str, int]:
        """The number of each partition, by its key."""
        return self.closed.index


def replay_fetches(
    batches: Iterable[pa.RecordBatch], lanes: FetchLanes, run_id: str, responses_under: FetchLanes | None = None
) -> Iterator[pa.RecordBatch]:
    """Packed rows of gold tables from rows of READS, sorted by reader, request time, fetch and read position.

    responses_under: limits under which another replay goes on from what consumers receive. For these there are rows of
    MEMORY_EVENTS as well.
    """
    yield from packed_together(rows_of_readers(batches, lanes, run_id, responses_under))


def replay_carried_fetches(
    batches: Iterable[pa.RecordBatch], lanes: FetchLanes, run_id: str, responses_under: FetchLanes | None = None
) -> Iterator[pa.RecordBatch]:
    """The same from rows of CARRIED_READS."""
    yield from replay_fetches(map(carried_reads.reads_of, batches), lanes, run_id, responses_under)


def rows_of_readers(
    batches: Iterable[pa.RecordBatch], lanes: FetchLanes, run_id: str, responses_under: FetchLanes | None
) -> Iterator[tuple[Table, pa.RecordBatch]]:
    """The rows of one reader after the other."""
    for name, parts in by_key(whole_fetches(batches), READER):
        now = Replayed(Reader(*name), fairness.no_sums(len(lanes.names)))
        for logs, reads in map(logs_and_reads, parts):
            now.closed.note_logs(logs)
            if reads.num_rows:
                replay_part(now, reads, lanes.of(now.reader.kind))
        yield from all_rows(now, lanes, run_id, responses_under)


def all_rows(
    done: Replayed, lanes: FetchLanes, run_id: str, responses_under: FetchLanes | None
) -> Iterator[tuple[Table, pa.RecordBatch]]:
    """The rows of a reader all of whose fetches have come, in open loop and in closed loop."""
    yield from reader_rows(done, lanes, run_id)
    of = done.reader
    reader = ready(done.closed, (of.client_id, of.client_address, of.kind), lanes)
    if reader is None:
        return
    room = room_for(reader, responses_under) if responses_under else 0
    if responses_under is None or not room:
        yield from closed_rows(done, closed_totals(reader, lanes), lanes, run_id)
        return
    are_same = lanes.are_as(responses_under, of.kind)
    totals = closed_totals(reader, lanes, room if are_same else 0)
    yield from closed_rows(done, totals, lanes, run_id)
    yield from response_events(reader, totals if are_same else closed_totals(reader, responses_under, room))


def replay_part(now: Replayed, batch: pa.RecordBatch, lanes: Lanes) -> None:
    """Answer, judge and sum up some whole fetches of the reader."""
    fetch_from = boundaries(batch, FETCH)
    reads, known = reads_of(batch), known_of(batch)
    fetch = np.repeat(np.arange(len(fetch_from) - 1), np.diff(fetch_from))
    verdict = judge(reads, known, fetch, fetch_from, captured_lane(lanes), NEVER)
    note_verdicts(now.verdicts, batch, known, fetch, fetch_from, verdict)

    rows, kept = answered_reads(known.returned, fetch_from)
    reads = Reads._make([*(column[rows] for column in reads[:-1]), reads.sizes])
    numbers = now.closed.note_reads(batch.filter(pa.array(rows)), kept)
    answers = read_fetches(reads, kept, lanes)
    now.reader.note(reads, lanes)
    now.sums = fairness.add(
        now.sums, numbers, int_column(batch, READS.request_time, 0)[rows], reads.available, kept, answers
    )  # fmt: skip
    now.reader.requests += len(kept) - 1


def reads_of(batch: pa.RecordBatch) -> Reads:
    """The rows as the replay's reads."""
    offsets, sizes = lists(batch[READS.batch_sizes])
    return Reads(
        int_column(batch, READS.max_bytes, 0),
        int_column(batch, READS.partition_max_bytes, 0),
        int_column(batch, READS.available_high, 0),
        int_column(batch, READS.log_known, 0),
        (int_column(batch, READS.api_version, FIRST_WITH_MAX_BYTES) < FIRST_WITH_MAX_BYTES).astype(np.int64),
        offsets[:-1],
        offsets[1:],
        sizes,
    )


def known_of(batch: pa.RecordBatch) -> Known:
    """What the rows say the capture tells."""
    flags = (
        READS.refused, READS.throttled, READS.session_known, READS.redirected, READS.bound_known, READS.log_known,
        READS.is_converted, READS.is_compacted, READS.is_truncated, READS.ends_perhaps,
    )  # fmt: skip
    numbers = (
        (READS.available_low, 0), (READS.available_high, 0), (READS.first_append, NEVER), (READS.available_first, 0),
        (READS.returned_bytes, NO_RECORDS_KNOWN),
    )  # fmt: skip
    return Known(
        *(int_column(batch, name, 0) != 0 for name in flags),
        *(int_column(batch, name, missing) for name, missing in numbers),
    )


def note_verdicts(
    verdicts: Counter[tuple[str, bool, int]], batch: pa.RecordBatch, known: Known,
    fetch: Ints, fetch_from: Ints, verdict: Ints,
) -> None:  # fmt: skip
    """Count the verdicts by broker and by whether the response had records."""
    has_records = np.bincount(fetch, np.maximum(known.returned, 0), len(verdict)) > 0
    brokers = batch[READS.broker].take(fetch_from[:-1]).dictionary_encode()
    keys = np.stack([brokers.indices.to_numpy(), has_records, verdict], axis=1)
    distinct, counts = np.unique(keys, axis=0, return_counts=True)
    names = brokers.dictionary.to_pylist()
    for (broker, records, code), count in zip(distinct.tolist(), counts.tolist(), strict=True):
        verdicts[names[broker], bool(records), code] += count
