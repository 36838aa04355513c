"""ingest: captures into the silver tables.

Every byte of TCP payload ends in an exchange, in quarantine, or is counted in `connections`. Not here: what needs a
log's content or a broker's state; that is replay's.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.capture_plan import CapturePlan, capture_rows, index_captures, packed_rows, plan_capture
from jobs.capture_quality import quality_rows
from jobs.kernels import ready_session
from jobs.lake import delete_folder, has_table, rows_of, side_by_side, spark_schema, write_table
from jobs.log_agreement import RequestsSeen, agreement_rows, joined_requests, lines_alone, with_log
from jobs.names import learn_names, with_names
from jobs.progress import stage
from jobs.request_log_plan import logged_rows
from jobs.run import Run
from jobs.version import decoder
from schemas.tables.silver import (
    CAPTURE_QUALITY,
    CAPTURES,
    CLUSTER_METADATA,
    CONNECTIONS,
    DECODED,
    EXCHANGES,
    FETCH_PARTITIONS,
    LOG_AGREEMENT,
    QUARANTINE,
    SILVER,
    TOPIC_CHANGES,
)
from schemas.tables.steps import REPEATED_LINES
from schemas.tables.table import Table
from udfs.errors import LakeError
from udfs.facts.arrow_tables import unpack
from udfs.facts.record_sizes import sufficient
from udfs.replay.splits.split_report import ALGORITHM as BATCH_SPLIT

PACKED_TABLE, PACKED_ROWS, SOURCE = "table", "rows", "source"
PACKETS, LOGS = "packets", "logs"
"""What rows were decoded from; frame dumps go where packets go."""


def main(run: Run) -> None:
    """Run the job: read the captures, write the silver tables."""
    walks_records = [] if run.records is None else [BATCH_SPLIT]
    ingest(ready_session(run, "refetch ingest", walks_records), run)


def ingest(spark: SparkSession, run: Run, *, keep: bool = False) -> str:
    """Write the silver tables of the run's captures; returns the capture id. Raises CaptureError and LakeError.

    keep: leave them as they are where this decoder has written them for the same files before.
    """
    with stage("index", spark):
        indexes = index_captures(spark, run.captures, run.log_zone)
        plan = plan_capture(indexes, spark.sparkContext.defaultParallelism, run.log_zone)
    if not (keep and is_ingested(spark, run, plan)):
        decode(spark, run, plan)
    check_sums(spark, run.lake, plan.capture_id)
    return plan.capture_id


def is_ingested(spark: SparkSession, run: Run, plan: CapturePlan) -> bool:
    """Whether the silver tables are there and hold these very files, read by this decoder: `captures` came last."""
    if not all(has_table(spark, run.lake, table) for table in SILVER):
        return False
    t = CAPTURES
    rows = rows_of(spark, run.lake, t, plan.capture_id).select(t.path, t.decoder).collect()
    enough = {decoder(run.pseudonyms, records, run.log_zone) for records in sufficient(run.records)}
    if {told for _, told in rows} - enough or sorted(path for path, _ in rows) != sorted(i.path for i in plan.indexes):
        return False
    sys.stderr.write(f"refetch: capture {plan.capture_id} was ingested before; `ingest` would do it again\n")
    return True


def decode(spark: SparkSession, run: Run, plan: CapturePlan) -> None:
    """From planned captures to silver tables."""
    staging = f"{run.lake}/_staging/{plan.capture_id}"
    with stage("decode", spark):
        packed = staged_rows(spark, run, plan)
        packed.write.mode("overwrite").partitionBy(SOURCE, PACKED_TABLE).parquet(staging)
    with stage("silver", spark):
        write_silver(spark, run, plan, Staged(spark, staging))
    delete_folder(spark, staging)


def staged_rows(spark: SparkSession, run: Run, plan: CapturePlan) -> DataFrame:
    """Packed rows of all files, with what they were decoded from."""
    rows = []
    if plan.has_packets:
        rows.append(packed_rows(spark, plan, run.pseudonyms, run.records).withColumn(SOURCE, F.lit(PACKETS)))
    if plan.logs.ranges:
        rows.append(logged_rows(spark, plan, run.pseudonyms).withColumn(SOURCE, F.lit(LOGS)))
    return reduce(DataFrame.unionByName, rows)


@dataclass(frozen=True)
class Staged:
    """The packed rows in a folder, by table and what they were decoded from."""

    spark: SparkSession
    folder: str

    def rows(self, table: Table, *sources: str) -> DataFrame:
        """A table's rows from these sources, of all where none is named."""
        schema = f"{PACKED_ROWS} binary, {SOURCE} string, `{PACKED_TABLE}` string"
        packed = self.spark.read.schema(schema).parquet(self.folder)
        return unpacked(packed.where(F.col(SOURCE).isin(*sources)) if sources else packed, table)


def unpacked(staged: DataFrame, table: Table) -> DataFrame:
    """One table's rows out of the packed ones."""
    own = staged.where(F.col(PACKED_TABLE) == table.name).select(PACKED_ROWS)
    return own.mapInArrow(unpack, spark_schema(table))


def write_silver(spark: SparkSession, run: Run, plan: CapturePlan, staged: Staged) -> None:
    """Write every silver table from the staged rows; `captures` last, for with it the capture set is complete."""
    tables = decoded_tables(spark, plan, staged)
    side_by_side(spark, [partial(write_table, rows, run.lake, of, plan.capture_id) for of, rows in tables.items()])
    told_by = (CONNECTIONS, EXCHANGES, FETCH_PARTITIONS)
    connections, exchanges, fetches = (rows_of(spark, run.lake, table, plan.capture_id) for table in told_by)
    quality = quality_rows(connections, exchanges, fetches, plan.capture_id)
    write_table(quality, run.lake, CAPTURE_QUALITY, plan.capture_id)
    repeated = repeated_by_file(staged.rows(REPEATED_LINES)) if plan.logs.ranges else {}
    captures = capture_rows(spark, plan, decoder(run.pseudonyms, run.records, run.log_zone), repeated)
    write_table(captures, run.lake, CAPTURES, plan.capture_id)


def decoded_tables(spark: SparkSession, plan: CapturePlan, staged: Staged) -> dict[Table, DataFrame]:
    """The tables that come of messages, under the names that all files tell; logs beside packets only add to them."""
    names = learn_names(*(staged.rows(table) for table in (CLUSTER_METADATA, TOPIC_CHANGES, CONNECTIONS)))

    def named(table: Table, source: str) -> DataFrame:
        return with_names(spark, staged.rows(table, source), table, names)

    tables = {table: named(table, PACKETS if plan.has_packets else LOGS) for table in DECODED}
    tables[LOG_AGREEMENT] = spark.createDataFrame([], spark_schema(LOG_AGREEMENT))
    if plan.has_packets and plan.logs.ranges:
        packets, logs = (
            RequestsSeen(named(EXCHANGES, source), staged.rows(CONNECTIONS, source)) for source in (PACKETS, LOGS)
        )
        joined = joined_requests(packets, logs)
        tables[EXCHANGES] = with_log(joined)
        tables[LOG_AGREEMENT] = agreement_rows(joined, plan.capture_id)
        tables[QUARANTINE] = tables[QUARANTINE].union(lines_alone(staged.rows(QUARANTINE, LOGS)))
    return tables


def repeated_by_file(rows: DataFrame) -> dict[int, int]:
    """Lines that an earlier file of the set has too, by the file's place in it."""
    t = REPEATED_LINES
    return {row[0]: row[1] for row in rows.groupBy(t.file_no).agg(F.sum(t.lines)).collect()}


def check_sums(spark: SparkSession, lake: str, capture_id: str) -> None:
    """Compare the bytes of captures, connections and exchanges. Raises LakeError where a byte is unaccounted for."""

    def sums(table: Table, **columns: Sequence[str]) -> DataFrame:
        rows = rows_of(spark, lake, table, capture_id)
        totals = {name: F.sum(sum((F.col(c) for c in added), F.lit(0))) for name, added in columns.items()}
        return rows.agg(*(F.coalesce(total, F.lit(0)).alias(name) for name, total in totals.items()))

    c, x = CONNECTIONS, EXCHANGES
    parts = (c.framed_bytes, c.unframed_bytes, c.repeated_bytes, c.late_bytes)
    of_connections = sums(c, followed=[c.payload_bytes], parts=parts, framed=[c.framed_bytes])
    of_exchanges = sums(x, exchanged=[x.request_bytes, x.response_bytes])
    one_row = sums(CAPTURES, captured=[CAPTURES.tcp_captured_bytes]).crossJoin(of_connections).crossJoin(of_exchanges)
    captured, followed, in_parts, framed, exchanged = one_row.collect()[0]
    if not captured == followed == in_parts or framed != exchanged:
        raise LakeError(
            f"{lake}: bytes are unaccounted for in capture {capture_id}: {captured} captured, {followed} followed, "
            f"{in_parts} in parts; {framed} framed, {exchanged} in exchanges. "
            "This is a fault of refetch: please report it"
        )
