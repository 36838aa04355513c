"""The index pass over the files of a capture set: what each holds, and where tasks can begin to read it."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import Row, SparkSession

from jobs.lake.delta_tables import rows_of_driver
from jobs.session.driver import driver_of
from jobs.terminal.screen import printable_text, with_rest_count
from udfs.capture.file_index import CaptureIndex, OnPackets, index_stored_capture, unread_index
from udfs.capture.frame_dump import index_frames, stored_dump_format
from udfs.capture.packet_walk import CaptureFormat
from udfs.capture.request_log_head import UTC
from udfs.capture.request_log_index import index_stored_log
from udfs.capture.storage import open_stored
from udfs.errors import AlienError, CaptureError

RANGE_BYTES = 32 << 20
# Connections go to shards by this many buckets: enough to make shards even, few enough to count them in every file.
BUCKETS = 4096
MOST_TOLD = 20
ENVELOPE = "file_no int, content binary, fault string"
TASKS_OF_A_CORE = 16
"""The most tasks for each core: enough to spread the work evenly, few enough that starting them takes little time."""


def index_captures(spark: SparkSession, captures: Sequence[Path | str], log_zone: str) -> tuple[CaptureIndex, ...]:
    """The index of every file. stderr names the files that are no captures; nothing of them is read.

    Raises CaptureError, which names every file that cannot be read, also if no file is a capture.
    """

    def index_files(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from index_batches(batches, log_zone)

    tasks = min(len(captures), TASKS_OF_A_CORE * driver_of(spark).cores())
    named: dict[str, pa.Array[Any]] = {
        "task": pa.array((file_no % tasks for file_no in range(len(captures))), pa.int32()),
        "file_no": pa.array(range(len(captures)), pa.int32()),
        "path": pa.array(map(str, captures), pa.string()),
    }
    files = rows_of_driver(spark, pa.table(named))
    rows = files.repartitionById(tasks, "task").mapInArrow(index_files, ENVELOPE).collect()
    faults = sorted(row.fault for row in rows if row.fault is not None)
    # The indexes come from this job's own workers.
    indexes = tuple(pickle.loads(row.content) for row in sorted(rows, key=_place_of_row) if row.content)  # noqa: S301
    check_faults(faults, [index.format for index in indexes], len(captures))
    return indexes


def _place_of_row(row: Row) -> int:
    return int(row.file_no)


def check_faults(faults: Sequence[str], formats: Sequence[str], files: int) -> None:
    """Say on stderr what is left out. Raises CaptureError if files cannot be read, or none is a capture.

    faults: one line for each. formats: those of the files that have an index.
    """
    if not faults:
        return
    if len(formats) < files or not any(format_ != CaptureFormat.NONE for format_ in formats):
        raise CaptureError("\n  ".join(faults))
    listed = with_rest_count(faults[:MOST_TOLD], len(faults))
    sys.stderr.writelines(f"refetch: left out: {printable_text(fault)}\n" for fault in listed)


def index_batches(batches: Iterable[pa.RecordBatch], log_zone: str) -> Iterator[pa.RecordBatch]:
    """A row for each file of the batches: its index, or the fault if it cannot be read; both if it is no capture."""
    for batch in batches:
        files: list[dict[str, Any]] = batch.to_pylist()
        for file in files:
            index, fault = index_or_fault(file["path"], log_zone)
            content = None if index is None else pickle.dumps(index)
            columns: list[pa.Array[Any]] = [
                pa.array([file["file_no"]], pa.int32()),
                pa.array([content], pa.binary()),
                pa.array([fault], pa.string()),
            ]
            yield pa.RecordBatch.from_arrays(columns, ["file_no", "content", "fault"])


def index_or_fault(
    path: str, log_zone: str = UTC, on_packets: OnPackets | None = None
) -> tuple[CaptureIndex | None, str | None]:
    """The index of a file, and what is wrong with it. A file that cannot be read has no index. A file that is no
    capture has both.

    on_packets: as for `index_capture`, if the file is a capture.
    """
    try:
        return index_file(path, log_zone, on_packets), None
    except AlienError as error:
        return unread_index(path, buckets=BUCKETS), str(error)
    except CaptureError as error:
        return None, str(error)


def index_file(path: str, log_zone: str = UTC, on_packets: OnPackets | None = None) -> CaptureIndex:
    """Index a frame dump, request log or capture. The file is opened once; Arrow opens a frame dump again, since it
    does not read from start to end. on_packets: as for `index_capture`. Raises CaptureError if the file is none of
    them.
    """
    with open_stored(path) as stored:
        is_dump = stored_dump_format(stored) is not None
        if not is_dump:
            stored.seek(0)
            log = index_stored_log(stored, path, range_bytes=RANGE_BYTES, buckets=BUCKETS, zone=log_zone)
            if log is not None:
                return log
            stored.seek(0)
            return index_stored_capture(stored, path, range_bytes=RANGE_BYTES, buckets=BUCKETS, on_packets=on_packets)
    return index_frames(path, range_bytes=RANGE_BYTES, buckets=BUCKETS)
