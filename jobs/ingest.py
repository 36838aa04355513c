"""ingest: captures into the silver tables.

Every byte of TCP payload ends in an exchange, in quarantine, or is counted in `connections`. Not here: what needs a
log's content or a broker's state; that is replay's.
"""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.capture_plan import CapturePlan, capture_rows, index_captures, packed_rows, plan_capture
from jobs.kernels import ready_session
from jobs.lake import delete_folder, read_table, spark_schema, write_table, write_tables
from jobs.names import learn_names, with_names
from jobs.progress import stage
from jobs.run import Run
from schemas.tables.silver import CAPTURES, CLUSTER_METADATA, CONNECTIONS, EXCHANGES, SILVER
from schemas.tables.table import Table
from udfs.errors import LakeError
from udfs.facts.arrow_tables import unpack

PACKED_TABLE, PACKED_ROWS = "table", "rows"


def main(run: Run) -> None:
    """Run the job: read the captures, write the silver tables."""
    ingest(ready_session(run, "refetch ingest"), run)


def ingest(spark: SparkSession, run: Run) -> str:
    """Write the silver tables of the run's captures; returns the capture id. Raises CaptureError and LakeError."""
    with stage("index", spark):
        plan = plan_capture(index_captures(spark, run.captures), spark.sparkContext.defaultParallelism)
    staging = f"{run.lake}/_staging/{plan.capture_id}"
    with stage("decode", spark):
        packed_rows(spark, plan).write.mode("overwrite").partitionBy(PACKED_TABLE).parquet(staging)
    with stage("silver", spark):
        write_silver(spark, run.lake, plan, staging)
    delete_folder(spark, staging)
    check_sums(spark, run.lake, plan.capture_id)
    return plan.capture_id


def write_silver(spark: SparkSession, lake: str, plan: CapturePlan, staging: str) -> None:
    """Write every silver table from the staged rows; `captures` last, for with it the capture set is complete."""
    staged = spark.read.schema(f"{PACKED_ROWS} binary, `{PACKED_TABLE}` string").parquet(staging)
    names = learn_names(unpacked(staged, CLUSTER_METADATA), unpacked(staged, CONNECTIONS))

    def write(table: Table) -> None:
        write_table(with_names(spark, unpacked(staged, table), table, names), lake, table, plan.capture_id)

    write_tables(spark, [partial(write, table) for table in SILVER if table is not CAPTURES])
    write_table(capture_rows(spark, plan), lake, CAPTURES, plan.capture_id)


def unpacked(staged: DataFrame, table: Table) -> DataFrame:
    """One table's rows out of the packed ones."""
    own = staged.where(F.col(PACKED_TABLE) == table.name).select(PACKED_ROWS)
    return own.mapInArrow(unpack, spark_schema(table))


def check_sums(spark: SparkSession, lake: str, capture_id: str) -> None:
    """Compare the bytes of captures, connections and exchanges. Raises LakeError where a byte is unaccounted for."""

    def total(table: Table, *columns: str) -> int:
        rows = read_table(spark, lake, table).where(F.col(table.replaced_by) == capture_id)
        return int(rows.agg(F.coalesce(F.sum(sum(F.col(c) for c in columns)), F.lit(0))).first()[0])  # type: ignore[index,arg-type]

    captured = total(CAPTURES, CAPTURES.tcp_captured_bytes)
    t = CONNECTIONS
    followed = total(t, t.payload_bytes)
    parts = total(t, t.framed_bytes, t.unframed_bytes, t.repeated_bytes, t.late_bytes)
    framed, exchanged = total(t, t.framed_bytes), total(EXCHANGES, EXCHANGES.request_bytes, EXCHANGES.response_bytes)
    if not captured == followed == parts or framed != exchanged:
        raise LakeError(
            f"{lake}: bytes are unaccounted for in capture {capture_id}: {captured} captured, {followed} followed, "
            f"{parts} in parts; {framed} framed, {exchanged} in exchanges. This is a fault of refetch: please report it"
        )
