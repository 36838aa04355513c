"""What the replay of KIP-126 reads if it measures sizes: the packets of producers' connections, with what they sent.

No table has records. They are read from the captures again, and the worker that replays a producer reassembles its
connections itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from jobs.captures.capture_index import index_captures
from jobs.captures.capture_plan import CapturePlan, plan_capture
from jobs.captures.capture_rows import packets_of_range, range_tasks, ranges_in
from jobs.lake.delta_tables import stored_rows
from jobs.session.driver import driver_of
from schemas.tables.silver import CAPTURES, CONNECTIONS
from schemas.tables.steps import SENT
from udfs.capture.packets import PACKETS
from udfs.capture.request_log_head import REQUEST_LOG, UTC
from udfs.errors import CaptureError
from udfs.facts.exchanges import connection_ids
from udfs.replay.batch_split.replay import IS_SENT
from udfs.replay.shared.dealt_rows import SHARD

FIRST_ID = "first_id"
"""The id of the first connection between two endpoints. The packets of all connections between them have it."""


def with_packets(spark: SparkSession, lake: str, capture_id: str, sent: DataFrame, connections: DataFrame) -> DataFrame:
    """Rows of SENT and the packets of the connections that they were sent on, in the shards of the rows of SENT.

    Raises CaptureError if the captures are not those that were ingested.
    """
    producers = producers_by_id(sent, connections)
    packets = packets_with_id(spark, plan_of_ingested(spark, lake, capture_id)).join(producers, FIRST_ID).drop(FIRST_ID)
    rows = sent.withColumn(IS_SENT, F.lit(True))
    return packets.withColumn(IS_SENT, F.lit(False)).unionByName(rows, allowMissingColumns=True)


def producers_by_id(sent: DataFrame, connections: DataFrame) -> DataFrame:
    """(id, client_id, client_address, shard): the producers of packets, by the id of the first connection between two
    endpoints. Times do not show which one was first, so a producer has the ids of all connections between them.
    """
    c, t = CONNECTIONS, SENT
    ends = connections.select(c.connection_id, c.server, c.client)
    used = sent.select(t.connection_id, t.client_id, t.client_address, SHARD).distinct()
    producers = used.join(ends, str(c.connection_id)).drop(c.connection_id).distinct()
    by_id = producers.join(ends.withColumnRenamed(c.connection_id, FIRST_ID), [str(c.server), str(c.client)])
    return by_id.select(FIRST_ID, t.client_id, t.client_address, SHARD)


def plan_of_ingested(spark: SparkSession, lake: str, capture_id: str) -> CapturePlan:
    """The packets that a capture set was ingested from. Request logs are left out: they have no records, and may be
    gone.

    Raises CaptureError that names every file that is missing or has changed.
    """
    t = CAPTURES
    files = stored_rows(spark, lake, t, capture_id).where(F.col(t.format) != REQUEST_LOG).select(t.path, t.content_hash)
    hashes: dict[str, str] = {row[0]: row[1] for row in files.collect()}
    what_to_do = (
        f"recut.sizes=exact reads the records of capture {capture_id} from its files again. Put them back as they "
        "were, ingest what is there now, or replay with recut.sizes=recompressed, which does without."
    )
    try:
        indexes = index_captures(spark, sorted(hashes), UTC)
    except CaptureError as error:
        raise CaptureError(f"{error}\n  {what_to_do}") from error
    changed = [index for index in indexes if index.sha256 != hashes[index.path]]
    if changed:
        lines = (
            f"{file.path}: not the file that was ingested (SHA-256 {hashes[file.path]}, now {file.sha256})"
            for file in changed
        )
        raise CaptureError("\n  ".join([*lines, what_to_do]))
    return plan_capture(indexes, driver_of(spark).cores())


def packets_with_id(spark: SparkSession, plan: CapturePlan) -> DataFrame:
    """The packets of a capture set, each with the id of the first connection between its endpoints."""
    orders = plan.orders

    def read_ranges(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part, file_no in ranges_in(batches):
            for packets in packets_of_range(part, file_no, orders[file_no]):
                keys: Any = packets["connection"].dictionary_encode()
                ids = pa.array(connection_ids(keys.dictionary.to_pylist()))
                yield packets.drop_columns(["bucket"]).append_column(FIRST_ID, ids.take(keys.indices))

    columns = pa.schema([*(field for field in PACKETS if field.name != "bucket"), pa.field(FIRST_ID, pa.int64())])
    return range_tasks(spark, plan.packets).mapInArrow(read_ranges, from_arrow_schema(columns))
