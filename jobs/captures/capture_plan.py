"""How the work on a set of captures is cut: ranges of packets to read, and shards of connections to follow."""

from __future__ import annotations

import hashlib
import heapq
import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from jobs.lake import rows_here
from jobs.replays.one_shuffle import PACKED_COLUMNS
from schemas.tables.silver import CAPTURES
from udfs.capture.frame_dump import MAGICS, index_frames, read_frames, stored_dump_format
from udfs.capture.index import CaptureIndex, index_stored_capture
from udfs.capture.packet_runs import PACKET_RUNS, packets_in, runs_of
from udfs.capture.packets import read_packets
from udfs.capture.points import FileOrder, file_orders, in_time_order
from udfs.capture.ranges import PacketRange
from udfs.capture.request_log_head import REQUEST_LOG, UTC
from udfs.capture.request_log_index import index_stored_log
from udfs.capture.storage import open_stored
from udfs.errors import CaptureError
from udfs.facts.arrow_tables import arrow_schema
from udfs.facts.asked_records import Asked
from udfs.facts.build import facts
from udfs.facts.pseudonyms import Pseudonyms

RANGE_BYTES = 32 << 20
# Connections are spread over shards by this many buckets: enough to even out, few enough to count in every file.
BUCKETS = 4096
SHARD_BYTES = 64 << 20
BATCH_BYTES = 8 << 20
ENVELOPE = "file_no int, content binary, fault string"


@dataclass(frozen=True)
class Work:
    """What is to be read of one kind of file: ranges, with their file's place in the set; the shard of each bucket."""

    ranges: tuple[tuple[int, PacketRange], ...]
    shard_of_bucket: npt.NDArray[np.int32]
    shards: int


@dataclass(frozen=True)
class CapturePlan:
    """A capture set, ready to be read: its files' indexes and orders by place in it, and the work on each kind.

    packets: captures and frame dumps; logs: request logs. copies: places of request logs that the set has before.
    log_zone: the zone of times in request logs that name none.
    """

    capture_id: str
    indexes: tuple[CaptureIndex, ...]
    orders: tuple[FileOrder, ...]
    packets: Work
    logs: Work
    copies: frozenset[int]
    log_zone: str

    @property
    def has_packets(self) -> bool:
        """Whether the facts come from packets, which request logs only add to."""
        return not self.logs.ranges or any(index.counts.packets for index in self.indexes)


def index_captures(spark: SparkSession, captures: Sequence[Path | str], log_zone: str) -> tuple[CaptureIndex, ...]:
    """Index every file, one task a file. Raises CaptureError that names every file that cannot be read."""

    def index_files(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from indexed(batches, log_zone)

    named: dict[str, pa.Array[Any]] = {
        "file_no": pa.array(range(len(captures)), pa.int32()),
        "path": pa.array(map(str, captures), pa.string()),
    }
    files = rows_here(spark, pa.table(named))
    rows = files.repartitionById(len(captures), "file_no").mapInArrow(index_files, ENVELOPE).collect()
    faults = sorted(row.fault for row in rows if row.fault is not None)
    if faults:
        raise CaptureError("\n  ".join(faults) if len(faults) > 1 else faults[0])
    # The indexes come from this job's own workers.
    return tuple(pickle.loads(row.content) for row in sorted(rows, key=lambda row: row.file_no))  # noqa: S301


def indexed(batches: Iterable[pa.RecordBatch], log_zone: str) -> Iterator[pa.RecordBatch]:
    """Index the files of the batches; a file that is no capture is a row with a fault."""
    for batch in batches:
        files: list[dict[str, Any]] = batch.to_pylist()
        for file in files:
            content, fault = None, None
            try:
                content = pickle.dumps(index_file(file["path"], log_zone))
            except CaptureError as error:
                fault = str(error)
            columns: list[pa.Array[Any]] = [
                pa.array([file["file_no"]], pa.int32()),
                pa.array([content], pa.binary()),
                pa.array([fault], pa.string()),
            ]
            yield pa.RecordBatch.from_arrays(columns, ["file_no", "content", "fault"])


def index_file(path: str, log_zone: str = UTC) -> CaptureIndex:
    """Index a frame dump, request log or capture, opened once; only a dump is opened again, by Arrow, which reads it by
    places of its own. Raises CaptureError where the file is none of them.
    """
    with open_stored(path) as stored:
        is_dump = stored_dump_format(stored) is not None
        if not is_dump:
            stored.seek(0)
            log = index_stored_log(stored, path, range_bytes=RANGE_BYTES, buckets=BUCKETS, zone=log_zone)
            if log is not None:
                return log
            stored.seek(0)
            return index_stored_capture(stored, path, range_bytes=RANGE_BYTES, buckets=BUCKETS)
    return index_frames(path, range_bytes=RANGE_BYTES, buckets=BUCKETS)


def plan_capture(indexes: tuple[CaptureIndex, ...], cores: int, log_zone: str = UTC) -> CapturePlan:
    """Put indexed files in order and cut the work on them for so many cores.

    Raises CaptureError for frame dumps beside captured packets: what is in both would count twice.
    """
    indexes = in_time_order(indexes)
    logs = [file_no for file_no, index in enumerate(indexes) if index.format == REQUEST_LOG]
    packets = [file_no for file_no, index in enumerate(indexes) if index.format != REQUEST_LOG]
    dumps = [indexes[file_no].path for file_no in packets if indexes[file_no].format in MAGICS.values()]
    if 0 < len(dumps) < len(packets):
        raise CaptureError(
            f"{', '.join(dumps)}: frame dumps cannot be read together with captured packets, for what both have would "
            "count twice. Read them in runs of their own."
        )
    digest = hashlib.sha256("".join(index.sha256 for index in indexes).encode())
    copies = copies_among(indexes, logs)
    return CapturePlan(
        capture_id=digest.hexdigest()[:16],
        indexes=indexes,
        orders=orders_of(indexes, packets, logs),
        packets=work_on(indexes, packets, cores),
        logs=work_on(indexes, [file_no for file_no in logs if file_no not in copies], cores),
        copies=copies,
        log_zone=log_zone,
    )


def copies_among(indexes: Sequence[CaptureIndex], files: Sequence[int]) -> frozenset[int]:
    """Those of the files whose content another one before them has."""
    first: dict[str, int] = {}
    return frozenset(n for n in files if first.setdefault(indexes[n].sha256, n) != n)


def orders_of(indexes: Sequence[CaptureIndex], packets: list[int], logs: list[int]) -> tuple[FileOrder, ...]:
    """The order of every file: packets are put in order among packets, logs among logs, as points of their own."""
    of_packets, of_logs = (
        file_orders([indexes[file_no] for file_no in files]) if files else () for files in (packets, logs)
    )
    points = 1 + max((order.point for order in of_packets), default=-1)
    found = dict(zip(packets, of_packets, strict=True))
    found |= {file_no: replace(order, point=order.point + points) for file_no, order in zip(logs, of_logs, strict=True)}
    return tuple(found[file_no] for file_no in range(len(indexes)))


def work_on(indexes: Sequence[CaptureIndex], files: Sequence[int], cores: int) -> Work:
    """The work on some of the files, cut for so many cores."""
    weights = sum((indexes[file_no].bucket_payload_bytes for file_no in files), np.zeros(BUCKETS, np.int64))
    shards = max(cores, min(int(weights.sum()) // SHARD_BYTES, BUCKETS))
    ranges = tuple((file_no, part) for file_no in files for part in indexes[file_no].ranges)
    return Work(ranges, pack_shards(weights, shards), shards)


def pack_shards(weights: npt.NDArray[np.int64], shards: int) -> npt.NDArray[np.int32]:
    """The shard of each bucket: heaviest bucket first, each to the shard that is lightest so far (LPT)."""
    shard_of = np.zeros(len(weights), np.int32)
    lightest = [(0, shard) for shard in range(shards)]
    for bucket in np.argsort(-weights, kind="stable").tolist():
        load, shard = heapq.heappop(lightest)
        shard_of[bucket] = shard
        heapq.heappush(lightest, (load + int(weights[bucket]), shard))
    return shard_of


def range_tasks(spark: SparkSession, work: Work) -> DataFrame:
    """Every range of the work, one a task; `ranges_in` reads them there."""
    tasks: dict[str, pa.Array[Any]] = {
        "task": pa.array(range(len(work.ranges)), pa.int32()),
        "file_no": pa.array((file_no for file_no, _ in work.ranges), pa.int32()),
        "content": pa.array((pickle.dumps(part) for _, part in work.ranges), pa.binary()),
    }
    return rows_here(spark, pa.table(tasks)).repartitionById(max(len(work.ranges), 1), "task")


def ranges_in(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[PacketRange, int]]:
    """The ranges in batches of `range_tasks`, with their file's place in the set."""
    for batch in batches:
        tasks: list[dict[str, Any]] = batch.to_pylist()
        for task in tasks:
            yield pickle.loads(task["content"]), task["file_no"]  # noqa: S301  # the plan is this job's own


def packed_rows(
    spark: SparkSession, plan: CapturePlan, pseudonyms: Pseudonyms | None, records: Asked | None
) -> DataFrame:
    """The silver tables' rows of a capture set, packed (`udfs.facts.arrow_tables`): one shuffle, by connection."""
    shard_of, capture_id, orders = plan.packets.shard_of_bucket, plan.capture_id, plan.orders
    one_point = len({orders[file_no].point for file_no, _ in plan.packets.ranges}) == 1

    def read_ranges(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part, file_no in ranges_in(batches):
            for packets in packets_of(part, file_no, orders[file_no]):
                yield runs_of(packets, shard_of[packets["bucket"].to_numpy()], one_point=one_point)

    def follow_connections(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        packets = chain.from_iterable(map(packets_in, batches))
        yield from facts(packets, capture_id, pseudonyms, records)

    runs = range_tasks(spark, plan.packets).mapInArrow(read_ranges, from_arrow_schema(PACKET_RUNS))
    return (
        runs.repartitionById(plan.packets.shards, "shard")
        .sortWithinPartitions("connection", "sort_ns", "file_no", "packet_no")
        .mapInArrow(follow_connections, PACKED_COLUMNS)
    )


def packets_of(part: PacketRange, file_no: int, order: FileOrder) -> Iterator[pa.RecordBatch]:
    """The packets, or frames, of a range."""
    if part.format in MAGICS.values():
        return read_frames(part, file_no=file_no, buckets=BUCKETS, order=order)
    return read_packets(part, file_no=file_no, buckets=BUCKETS, batch_bytes=BATCH_BYTES, order=order)


def capture_rows(spark: SparkSession, plan: CapturePlan, decoder: str, repeated: Mapping[int, int]) -> DataFrame:
    """Rows of the table `captures`; repeated: lines of a request log that an earlier file has too, by its place."""
    t = CAPTURES
    rows: list[dict[str, object]] = [
        {
            t.capture_id: plan.capture_id,
            t.file_no: file_no,
            t.path: index.path,
            t.content_hash: index.sha256,
            t.format: index.format,
            t.compression: index.compression,
            t.size_bytes: index.size_bytes,
            t.log_lines: index.log_lines,
            t.forwarded_lines: index.forwarded_lines,
            t.repeated_lines: index.log_lines - index.forwarded_lines
            if file_no in plan.copies
            else repeated.get(file_no, 0),
            t.log_zone: plan.log_zone if index.format == REQUEST_LOG else None,
            t.packets: index.counts.packets,
            t.tcp_packets: index.counts.tcp,
            t.other_packets: index.counts.packets
            - index.counts.tcp
            - index.counts.malformed
            - index.counts.headers_cut,
            t.malformed_packets: index.counts.malformed + index.counts.headers_cut,
            t.tcp_payload_bytes: index.tcp_payload_on_wire,
            t.tcp_captured_bytes: index.tcp_payload_captured,
            t.first_time: None if index.first_ts_ns is None else index.first_ts_ns // 1000,
            t.last_time: None if index.last_ts_ns is None else index.last_ts_ns // 1000,
            t.doubled_packets: index.doubled_packets,
            t.point: plan.orders[file_no].point,
            t.clock_offset_us: plan.orders[file_no].offset_ns // 1000,
            t.faults: [f"{fault.reason} at {fault.unit} {fault.offset}" for fault in index.faults],
            t.unread_bytes: sum(fault.bytes_not_read for fault in index.faults),
            t.decoder: decoder,
        }
        for file_no, index in enumerate(plan.indexes)
    ]
    return rows_here(spark, pa.Table.from_pylist(rows, schema=arrow_schema(t)))
