"""The rows of a planned capture set: of its packets, read in ranges and decoded by connection, and of its files."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from jobs.captures.capture_index import BUCKETS
from jobs.captures.capture_plan import CapturePlan, RangesToRead
from jobs.lake.delta_tables import rows_of_driver
from jobs.session.one_shuffle import PACKED_COLUMNS
from schemas.tables.silver import CAPTURES
from udfs.capture.capture_points import FileOrder
from udfs.capture.frame_dump import MAGICS, read_dump_frames
from udfs.capture.packet_ranges import PacketRange
from udfs.capture.packet_runs import PACKET_RUNS, make_packet_runs, packets_of_runs
from udfs.capture.packets import read_packets
from udfs.capture.request_log_head import REQUEST_LOG
from udfs.facts.arrow_tables import arrow_schema
from udfs.facts.continued_connections import EarlierSet
from udfs.facts.pseudonyms import Pseudonyms
from udfs.facts.record_sampling import RecordSampling
from udfs.facts.rows_from_packets import rows_from_packets

BATCH_BYTES = 8 << 20


def range_tasks(spark: SparkSession, work: RangesToRead) -> DataFrame:
    """Every range of the work, in its task. `ranges_in` reads them there."""
    tasks: dict[str, pa.Array[Any]] = {
        "task": pa.array(work.tasks, pa.int32()),
        "file_no": pa.array((file_no for file_no, _ in work.ranges), pa.int32()),
        "content": pa.array((pickle.dumps(part) for _, part in work.ranges), pa.binary()),
    }
    return rows_of_driver(spark, pa.table(tasks)).repartitionById(1 + max(work.tasks, default=0), "task")


def ranges_in(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[PacketRange, int]]:
    """The ranges in batches of `range_tasks`, with their file's place in the set."""
    for batch in batches:
        tasks: list[dict[str, Any]] = batch.to_pylist()
        for task in tasks:
            yield pickle.loads(task["content"]), task["file_no"]  # noqa: S301  # the plan is this job's own


def packed_rows(
    spark: SparkSession,
    plan: CapturePlan,
    pseudonyms: Pseudonyms | None,
    records: RecordSampling | None,
    earlier: EarlierSet | None = None,
) -> DataFrame:
    """The silver tables' rows of a capture set, packed (`udfs.facts.arrow_tables`). There is one shuffle, by
    connection.

    earlier: what is taken over from the set that this one continues, if any.
    """
    shard_of, capture_id, orders = plan.packets.shard_of_bucket, plan.capture_id, plan.orders
    in_order = plan.in_order

    def read_ranges(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part, file_no in ranges_in(batches):
            for packets in packets_of_range(part, file_no, orders[file_no]):
                yield make_packet_runs(packets, shard_of[packets["bucket"].to_numpy()], in_order=in_order)

    def follow_connections(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        packets = chain.from_iterable(map(packets_of_runs, batches))
        yield from rows_from_packets(packets, capture_id, pseudonyms, records, earlier)

    runs = range_tasks(spark, plan.packets).mapInArrow(read_ranges, from_arrow_schema(PACKET_RUNS))
    return (
        runs.repartitionById(plan.packets.shards, "shard")
        .sortWithinPartitions("connection", "sort_ns", "file_no", "packet_no")
        .mapInArrow(follow_connections, PACKED_COLUMNS)
    )


def packets_of_range(part: PacketRange, file_no: int, order: FileOrder) -> Iterator[pa.RecordBatch]:
    """The packets, or frames, of a range."""
    if part.format in MAGICS.values():
        return read_dump_frames(part, file_no=file_no, buckets=BUCKETS, order=order)
    return read_packets(part, file_no=file_no, buckets=BUCKETS, batch_bytes=BATCH_BYTES, order=order)


def capture_rows(plan: CapturePlan, decoder: str, repeated: Mapping[int, int]) -> pa.Table:
    """Rows of the table `captures`.

    decoder: what decodes the files. repeated: how many lines of each request log an earlier file has, too, by the log's
    place in the set.
    """
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
            t.continues: plan.continues,
        }
        for file_no, index in enumerate(plan.indexes)
    ]
    return pa.Table.from_pylist(rows, schema=arrow_schema(t))
