"""How request logs are read: ranges of lines as tasks, then one shuffle by connection."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from jobs.captures.capture_plan import CapturePlan
from jobs.captures.capture_rows import BATCH_BYTES, range_tasks, ranges_in
from jobs.session.one_shuffle import replay_in_order, shard_column
from udfs.capture.request_log import LOGGED_REQUESTS, read_requests
from udfs.facts.pseudonyms import Pseudonyms
from udfs.facts.rows_from_log import LINE_ORDER, READ_KEYS, rows_from_log
from udfs.replay.shared.dealt_rows import SHARD


def logged_rows(spark: SparkSession, plan: CapturePlan, pseudonyms: Pseudonyms | None) -> DataFrame:
    """The silver tables' rows of the request logs of a set, packed as in `packed_rows`."""
    capture_id, shards, zone = plan.capture_id, plan.logs.shards, plan.log_zone

    def read_ranges(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part, file_no in ranges_in(batches):
            yield from read_requests(part, file_no=file_no, bodies_of=READ_KEYS, block_bytes=BATCH_BYTES, zone=zone)

    def follow_connections(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from rows_from_log(batches, capture_id, pseudonyms)

    lines = range_tasks(spark, plan.logs).mapInArrow(read_ranges, from_arrow_schema(LOGGED_REQUESTS))
    # Lines that are about no request have no connection. They go to shards by their number.
    sharded = lines.withColumn(
        SHARD, shard_column(shards, "connection", F.when(F.col("connection") == "", F.col("line_no")))
    )
    return replay_in_order(sharded, shards, LINE_ORDER, follow_connections)
