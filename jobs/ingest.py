"""ingest: decode captures into the silver tables.

Every byte of TCP payload ends in an exchange, in quarantine, or is counted in `connections`. Replays, and not this job,
do what needs a log's content or a broker's state.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial, reduce

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.captures.capture_index import index_captures
from jobs.captures.capture_plan import CapturePlan, plan_capture
from jobs.captures.capture_quality import quality_rows
from jobs.captures.capture_rows import capture_rows, packed_rows
from jobs.captures.earlier_names import earlier_names
from jobs.captures.earlier_sets import Earlier, check_still_there, choose_earlier, continuing, read_earlier
from jobs.captures.inputs import MOST_NAMED
from jobs.captures.log_agreement import (
    RequestsOfSource,
    agreement_rows,
    join_requests,
    quarantine_of_lines,
    with_log_columns,
)
from jobs.captures.names import names_in_packed
from jobs.captures.request_log_plan import logged_rows
from jobs.gates.gate import pass_gate
from jobs.gates.row_rules import Counts, Watch
from jobs.gates.rule_checks import check_rules
from jobs.gates.views import Subject
from jobs.lake.capture_sets import check_names
from jobs.lake.delta_tables import check_tables, has_table, run_side_by_side, stored_rows
from jobs.lake.packed_tables import unpack_table, write_packed
from jobs.lake.target import Target
from jobs.ready_session import ready_session, start_workers
from jobs.report_page.findings import look_up_captured
from jobs.report_page.summary import capture_summary
from jobs.run import Run
from jobs.session.driver import driver_of
from jobs.terminal.progress import stage
from jobs.terminal.screen import printable_text, with_rest_count
from jobs.version import decoder_version
from schemas.tables import algorithms
from schemas.tables.silver import CAPTURES, CONNECTIONS, DECODED, EXCHANGES, QUARANTINE, SILVER
from schemas.tables.silver_quality import CAPTURE_QUALITY, LOG_AGREEMENT
from schemas.tables.steps import EXCHANGE_COUNTS, REPEATED_LINES
from schemas.tables.table import Table
from udfs.facts.arrow_tables import arrow_schema
from udfs.facts.cluster_names import ClusterNames
from udfs.facts.continued_connections import EarlierSet
from udfs.facts.record_sampling import RecordSampling, sufficient

SOURCE = "source"
PACKETS, LOGS = "packets", "logs"
"""The values of the column SOURCE: what a row was decoded from. Frame dumps count as packets."""


def ingest(spark: SparkSession, run: Run, *, keep: bool = False) -> str:
    """Write the silver tables of the run's captures and apply the gate. Returns the capture set's id.

    keep: leave the tables as they are if this decoder has already written them for the same files.

    Raises RuleError if rules are wrong, CaptureError if captures cannot be read, LakeError if tables cannot be written,
    ArgumentError if these captures cannot continue the set that they are to continue, and GateError if the gate
    refuses.
    """
    check_tables(spark, run.lake, SILVER, makes_missing=True)
    check_names(spark, run.lake, run.decoding.pseudonyms)
    run_side_by_side(spark, [partial(check_rules, spark, run.gates.in_pipeline), partial(start_workers, spark)])
    with stage("index", spark):
        indexes = index_captures(spark, run.captures, run.decoding.log_zone)
        plan = plan_capture(indexes, driver_of(spark).cores(), run.decoding.log_zone)
        named = run.decoding.continues
        earlier = None if named is None else choose_earlier(spark, run.lake, named, plan)
        plan = plan if earlier is None else continuing(plan, earlier)
    is_kept = keep and is_ingested(spark, run, plan, earlier)
    written = (lambda: SILVER) if is_kept else decode_to_silver(spark, run, plan, earlier)
    pass_gate(spark, run.lake, run.gates, Subject("silver", plan.capture_id), written)
    return plan.capture_id


def is_ingested(spark: SparkSession, run: Run, plan: CapturePlan, earlier: Earlier | None = None) -> bool:
    """Whether the silver tables exist and hold exactly these files, read by this decoder and continuing the same set.

    The rows of `captures` decide, since they are written last.
    """
    if not all(has_table(spark, run.lake, table) for table in SILVER):
        return False
    t = CAPTURES
    rows = stored_rows(spark, run.lake, t, plan.capture_id).select(t.path, t.decoder).collect()
    enough = {decoder_of(run, records, earlier) for records in sufficient(run.records)}
    if {decoded_by for _, decoded_by in rows} - enough or sorted(path for path, _ in rows) != sorted(
        index.path for index in plan.indexes
    ):
        return False
    sys.stderr.write(f"refetch: capture {plan.capture_id} was ingested before; `ingest` would do it again\n")
    return True


def decoder_of(run: Run, records: RecordSampling | None, earlier: Earlier | None) -> str:
    """What decodes the run's captures: the value of the column `decoder` in `captures`."""
    decoding, gated = run.decoding, run.gates.quarantine_id
    continued = "" if earlier is None else earlier.decoder
    return decoder_version(decoding.pseudonyms, records, decoding.log_zone, gated, decoding.brokers, continued)


def decode_to_silver(
    spark: SparkSession, run: Run, plan: CapturePlan, earlier: Earlier | None = None
) -> Mapping[Table, Counts]:
    """Decode planned captures and write the silver tables. Returns what the gate's rules on rows found meanwhile.

    earlier: the set that they continue, if any.
    """
    known = None if earlier is None else read_earlier(spark, run.lake, earlier)
    shown = None if earlier is None else earlier_names(spark, run.lake, earlier.capture_id)
    if earlier is not None:
        check_still_there(spark, run.lake, earlier)
    # The rows are kept on disk, because there are more of them for larger captures.
    decoded = DecodedSet(packed_tables(spark, run, plan, known).persist(StorageLevel.DISK_ONLY))
    try:
        with stage("decode", spark):
            names = names_in_packed(decoded.packed(), run.decoding.brokers, shown)
        tell_unknown(run.decoding.brokers, names)
        with stage("silver", spark):
            return write_silver(spark, run, plan, decoded, names, decoder_of(run, run.records, earlier))
    finally:
        decoded.packed().unpersist()


def tell_unknown(stated: Mapping[str, str], names: ClusterNames) -> None:
    """Name on stderr the stated servers that the captures do not have, so that typing errors are noticed."""
    unknown = sorted(stated.keys() - names.broker_of.keys())
    if unknown:
        listed = ", ".join(with_rest_count(map(printable_text, unknown[:MOST_NAMED]), len(unknown)))
        sys.stderr.write(f"refetch: --brokers: no connection of the captures is to {listed}\n")


def packed_tables(spark: SparkSession, run: Run, plan: CapturePlan, earlier: EarlierSet | None = None) -> DataFrame:
    """The packed rows of all files, with the column SOURCE, which says what they were decoded from."""
    rows = []
    if plan.has_packets:
        rows.append(
            packed_rows(spark, plan, run.decoding.pseudonyms, run.records, earlier).withColumn(SOURCE, F.lit(PACKETS))
        )
    if plan.logs.ranges:
        rows.append(logged_rows(spark, plan, run.decoding.pseudonyms).withColumn(SOURCE, F.lit(LOGS)))
    return reduce(DataFrame.unionByName, rows)


@dataclass(frozen=True)
class DecodedSet:
    """All packed rows of a capture set. It returns rows by table and by what they were decoded from."""

    all: DataFrame

    def packed(self, *sources: str) -> DataFrame:
        """The packed rows from these sources; from all sources if none is named."""
        return self.all.where(F.col(SOURCE).isin(*sources)) if sources else self.all

    def rows(self, table: Table, *sources: str, names: ClusterNames | None = None) -> DataFrame:
        """A table's rows from these sources; from all if none is named. names: names that are put into the rows."""
        return unpack_table(self.packed(*sources), table, names)


def write_silver(
    spark: SparkSession, run: Run, plan: CapturePlan, decoded: DecodedSet, names: ClusterNames, written_by: str
) -> Mapping[Table, Counts]:
    """Write every silver table from the decoded rows; `captures` last, because it marks the capture set as complete.

    written_by: the value of the column `decoder` in `captures`.
    Returns, by table, how many rows were checked and how many each rule refused.
    """
    watch = Watch(run.gates)
    to = Target(run.lake, plan.capture_id, watch, names)
    if has_table(spark, run.lake, CAPTURES):  # nothing can be replayed until all tables are written
        to.clear(spark, CAPTURES)
    with_logs = joined_tables(plan, decoded, names) if plan.has_packets and plan.logs.ranges else {}
    as_decoded = [table for table in DECODED if table not in with_logs]
    source = PACKETS if plan.has_packets else LOGS
    connections, counts = (decoded.rows(table, source, names=names) for table in (CONNECTIONS, EXCHANGE_COUNTS))
    quality = quality_rows(connections, counts, plan.capture_id, names)
    others = {CAPTURE_QUALITY: quality, **with_logs}
    as_packed = partial(write_packed, spark, decoded.packed(source), as_decoded, to)
    run_side_by_side(spark, [as_packed, *(partial(to.write, rows, table) for table, rows in others.items())])
    if LOG_AGREEMENT not in others:
        to.write_here(spark, arrow_schema(LOG_AGREEMENT).empty_table(), LOG_AGREEMENT)
    refused = watch.refused_rows()
    if refused is not None:
        quarantined = with_logs.get(QUARANTINE, decoded.rows(QUARANTINE, names=names))
        to.write(quarantined.unionByName(refused), QUARANTINE)
    repeated = repeated_by_file(decoded.rows(REPEATED_LINES)) if plan.logs.ranges else {}
    to.check_there()
    to.write_here(spark, capture_rows(plan, written_by, repeated), CAPTURES)
    return watch.counts()


def joined_tables(plan: CapturePlan, decoded: DecodedSet, names: ClusterNames) -> dict[Table, DataFrame]:
    """The rows of the tables to which request logs add something if there are packets too, by table."""
    packets, logs = (
        RequestsOfSource(decoded.rows(EXCHANGES, source, names=names), decoded.rows(CONNECTIONS, source))
        for source in (PACKETS, LOGS)
    )
    joined = join_requests(packets, logs)
    alone = quarantine_of_lines(decoded.rows(QUARANTINE, LOGS))
    return {
        EXCHANGES: with_log_columns(joined),
        LOG_AGREEMENT: agreement_rows(joined, plan.capture_id),
        QUARANTINE: decoded.rows(QUARANTINE, PACKETS, names=names).union(alone),
    }


def repeated_by_file(rows: DataFrame) -> dict[int, int]:
    """How many lines of each file an earlier file has, too; by the file's place in the set."""
    t = REPEATED_LINES
    return {row[0]: row[1] for row in rows.groupBy(t.file_no).agg(F.sum(t.lines)).collect()}


def main(run: Run) -> None:
    """Run the job: read the captures, write the silver tables, print what was read and lost."""
    walks_records = [] if run.records is None else [algorithms.BATCH_SPLIT]
    spark = ready_session(run, walks_records)
    capture_id = ingest(spark, run)
    sys.stdout.write(capture_summary(run.lake, capture_id, look_up_captured(spark, run.lake, capture_id)))
