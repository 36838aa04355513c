"""replay: the silver tables under other settings, into the gold tables.

Open loop: each captured request is answered under the settings of each lane. What a client would have asked next, had
it got another answer, is not followed.
"""

from __future__ import annotations

import hashlib
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.fetch_limits import fetch_lanes, replayed
from jobs.ingest import unpacked
from jobs.kernels import ready_session
from jobs.lake import of_capture, read_table, side_by_side, write_table
from jobs.progress import stage
from jobs.run import Run
from jobs.scenario import CAPTURED_LANE, Lane, Scenario
from jobs.version import VERSION
from schemas.tables.gold import FETCH_CONSUMERS, FETCH_FAIRNESS, FIDELITY, RUNS
from schemas.tables.silver import CAPTURES, FETCH_PARTITIONS, RECORD_BATCHES
from schemas.tables.table import Table
from udfs.capture.request_log_index import REQUEST_LOG
from udfs.errors import CaptureError, LakeError
from udfs.facts.arrow_tables import arrow_schema

FETCH_MAX_BYTES = "fetch_max_bytes"


def main(run: Run) -> None:
    """Run the job: replay the lake's newest capture set, write the gold tables."""
    spark = ready_session(run, "refetch replay")
    replay(spark, run, newest_capture(spark, run.lake))


def newest_capture(spark: SparkSession, lake: str) -> str:
    """The id of the capture set that ends last. Raises LakeError where there is none."""
    rows = read_table(spark, lake, CAPTURES).orderBy(F.desc(CAPTURES.last_time), CAPTURES.capture_id)
    newest = rows.select(CAPTURES.capture_id).first()
    if newest is None:
        raise LakeError(f"{lake}: no capture was ingested; run `ingest` with captures and this --lake first")
    return str(newest[0])


def run_id(capture_id: str, scenario: Scenario) -> str:
    """The identity of a run: what was captured, and what is asked of it."""
    return hashlib.sha256(f"{capture_id}:{scenario.scenario_id}".encode()).hexdigest()[:16]


def replay(spark: SparkSession, run: Run, capture_id: str) -> str:
    """Write the gold tables of one capture set; returns the run id. Raises LakeError, and CaptureError where the
    captures do not tell what the replay needs.
    """
    run_name = run_id(capture_id, run.scenario)
    algorithms = run.scenario.algorithms or (FETCH_MAX_BYTES,)
    if FETCH_MAX_BYTES in algorithms:
        check_batch_sizes(spark, run.lake, capture_id)
        with stage("replay fetch_max_bytes", spark):
            replay_fetch_limits(spark, run, capture_id, run_name)
    write_table(run_rows(spark, run, capture_id, run_name), run.lake, RUNS, run_name)
    return run_name


def check_batch_sizes(spark: SparkSession, lake: str, capture_id: str) -> None:
    """Raises CaptureError where the capture set cannot tell the sizes of record batches."""
    captures = of_capture(spark, lake, CAPTURES, capture_id)
    if captures.where(F.col(CAPTURES.format) == REQUEST_LOG).first() is not None:
        raise CaptureError(
            f"{lake}: capture {capture_id} is of request logs, which do not tell the sizes of record batches that the "
            "replay of fetch.max.bytes needs: capture packets with `tcpdump -s 0` for it. The silver tables are whole"
        )


def lanes_of(scenario: Scenario) -> list[Lane]:
    """The lanes of KIP-74's replay: the captured one alone where the scenario asks for no other."""
    return scenario.lanes(FETCH_MAX_BYTES) if FETCH_MAX_BYTES in scenario.replay else [Lane(CAPTURED_LANE, {})]


def replay_fetch_limits(spark: SparkSession, run: Run, capture_id: str, run_name: str) -> None:
    """Replay KIP-74 over every fetch of the capture set."""
    lanes = fetch_lanes(lanes_of(run.scenario), dict(run.scenario.captured))
    fetches = of_capture(spark, run.lake, FETCH_PARTITIONS, capture_id)
    batches = of_capture(spark, run.lake, RECORD_BATCHES, capture_id)
    shards = int(spark.conf.get("spark.sql.shuffle.partitions", "8") or "8")
    packed = replayed(fetches, batches, lanes, run_name, shards).persist()

    def write(table: Table) -> None:
        write_table(unpacked(packed, table), run.lake, table, run_name)

    side_by_side(spark, [partial(write, table) for table in (FIDELITY, FETCH_FAIRNESS, FETCH_CONSUMERS)])
    packed.unpersist()


def run_rows(spark: SparkSession, run: Run, capture_id: str, run_name: str) -> DataFrame:
    """The row of the table `runs`."""
    t = RUNS
    row: dict[str, object] = {
        t.run_id: run_name,
        t.capture_id: capture_id,
        t.scenario_id: run.scenario.scenario_id,
        t.scenario_json: run.scenario.to_json(),
        t.assumed: list(run.scenario.assumed),
        t.algorithm: FETCH_MAX_BYTES,
        t.lanes: [lane.name for lane in lanes_of(run.scenario)],
        t.refetch_version: VERSION,
        t.run_at: run.run_at,
    }
    return spark.createDataFrame(pa.Table.from_pylist([row], schema=arrow_schema(t)))
