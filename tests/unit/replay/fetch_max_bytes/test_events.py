"""Reads and logs are the same after their way through Spark."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from schemas.tables.event_kinds import LogEvent
from schemas.tables.steps import LOG_EVENTS, READS
from tests.unit.replay.fetch_max_bytes.captured_reader import batch_rows, catch_up, read_batch
from tests.unit.replay.fetch_max_bytes.captured_reader import reads_of as read_table
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import NEVER
from udfs.replay.fetch_max_bytes.events import KEYS, logs_and_reads, logs_from_rows, reads_of
from udfs.replay.fetch_max_bytes.partition_log.events import stretches_of_events
from udfs.replay.fetch_max_bytes.state import READ


def came(rows: pa.RecordBatch) -> dict[str, list[Any]]:
    """The reads and the logs in rows of READS, as lists, so that those of several batches can be joined."""
    logs, reads = logs_and_reads(rows)
    fetches, known = reads_of(reads), dict[str, int]()
    of_logs = logs_from_rows(logs, known)
    places = ("first_size", "end_size")
    names = [name for name in READ.names or () if name not in places]
    sizes = (fetches.sizes[first:end].tolist() for first, end in fetches.reads[list(places)].tolist())
    batches = (
        of_logs.batches[first:end].tolist() for first, end in zip(of_logs.first, of_logs.first[1:], strict=False)
    )
    return {
        "reads": list(zip(fetches.reads[names].tolist(), sizes, strict=True)),
        "logs": list(zip([list(known)[number] for number in of_logs.number], batches, strict=True)),
    }


@pytest.mark.parametrize("most", [1, 7])
def test_reads_and_logs_are_the_same_however_rows_are_split_into_batches(most: int) -> None:
    whole = read_table(batch_rows() + catch_up(reconnects=3)).combine_chunks()
    parts = [came(batch) for batch in whole.to_batches(max_chunksize=most)]
    (together,) = (came(batch) for batch in whole.to_batches())
    assert together["reads"]
    assert together["logs"]
    for name, entries in together.items():
        assert [entry for part in parts for entry in part[name]] == entries


def test_the_numbers_and_sizes_of_reads_are_the_same_after_the_way_through_rows() -> None:
    keys: dict[str, Any] = {str(name): "x" for name in KEYS if name.type == "string"}
    numbers = {"connection_id": -(2**62), "exchange_no": 7, "request_time": 123, "read_position": 0}
    shown = {"returned_bytes": 2**40, "partition": 2**31 - 1, "api_version": -(2**15), "log_known": True}
    rows = read_batch([keys | numbers | shown | {"batch_sizes": [5, 6]}, keys | numbers | {"batch_sizes": []}])
    reads, first_read, sizes = reads_of(rows)
    assert (first_read.tolist(), sizes.tolist()) == ([0, 2], [5, 6])
    assert [reads[name][0] for name in (*shown, "connection_id", "request_time")] == [*shown.values(), -(2**62), 123]
    assert [reads[name][1] for name in ("returned_bytes", "response_time", "log_known")] == [NONE, NEVER, False]
    assert (reads["first_size"].tolist(), reads["end_size"].tolist()) == ([0, 2], [2, 2])
    assert rows.schema.names == [str(column) for column in READS.columns]


def test_a_stretch_has_the_rows_of_one_kind_of_one_partition() -> None:
    rows = [
        (1, 0, LogEvent.BATCH),
        (1, 0, LogEvent.BATCH),
        (1, 1, LogEvent.BATCH),
        (1, 1, LogEvent.READ),
        (2, 1, LogEvent.READ),
    ]
    columns = dict(
        zip((LOG_EVENTS.topic_key, LOG_EVENTS.partition, LOG_EVENTS.kind), zip(*rows, strict=True), strict=True)
    )
    batch = pa.RecordBatch.from_pydict({name: [int(value) for value in values] for name, values in columns.items()})
    edges = [tuple(stretch)[-2:] for stretch in stretches_of_events(batch)]
    assert edges == [(0, 2), (2, 3), (3, 4), (4, 5)]
    assert list(stretches_of_events(batch.slice(0, 0))) == []
