"""Responses that consumers would get under other fetch limits: the closed loop of KIP-74, as rows of MEMORY_EVENTS."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from schemas.tables.steps import READS
from udfs.replay.fetch_max_bytes.closed_reader import ClosedReader, closed_totals, ready
from udfs.replay.fetch_max_bytes.fetch_lanes import FetchLanes
from udfs.replay.fetch_max_bytes.fetch_replay import READER, answered_reads, logs_and_reads
from udfs.replay.fetch_max_bytes.fidelity import NO_RECORDS_KNOWN
from udfs.replay.fetch_max_bytes.response_rows import room_for, rows_by_lane
from udfs.replay.shared.columns import int_column
from udfs.replay.shared.rows_by_key import FETCH, boundaries, by_key, whole_fetches


def replayed_fetches(batches: Iterable[pa.RecordBatch], limits: FetchLanes) -> Iterator[pa.RecordBatch]:
    """Rows of MEMORY_EVENTS from rows of READS, sorted by reader, request time, fetch and read position."""
    for (client_id, address, kind), parts in by_key(whole_fetches(batches), READER):
        closed = ClosedReader()
        for logs, reads in map(logs_and_reads, parts):
            closed.note_logs(logs)
            if reads.num_rows:
                note_answered(closed, reads)
        reader = ready(closed, (client_id, address, kind), limits)
        if reader is not None and (room := room_for(reader, limits)):
            yield from rows_by_lane(reader, closed_totals(reader, limits, room))


def note_answered(closed: ClosedReader, reads: pa.RecordBatch) -> None:
    """Take whole fetches; those that were answered count."""
    returned = int_column(reads, READS.returned_bytes, NO_RECORDS_KNOWN)
    rows, kept = answered_reads(returned, boundaries(reads, FETCH))
    closed.note_reads(reads.filter(pa.array(rows)), kept)
