"""gate: check the lake's tables by rules, in Great Expectations, and render its Data Docs."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jobs.gates.gate import applied
from jobs.gates.results import Result, result_rows, tell, write_results
from jobs.gates.rule_checks import check_rules
from jobs.gates.rules import Gate
from jobs.gates.set_rules import Finding, SetRule
from jobs.gates.views import Subject, rows_to_check
from jobs.lake import read_table
from jobs.progress import stage
from jobs.replay import newest_capture
from jobs.run import Run
from jobs.spark import spark_session
from schemas.tables.gold import RUNS
from udfs.capture.locations import is_uri
from udfs.errors import GateError, LakeError

DATA_DOCS, CONTEXT = "data_docs", "_expectations"
"""Folders of the lake: of the pages, and of what Great Expectations keeps for them."""


def check(spark: SparkSession, run: Run, subject: Subject) -> None:
    """Apply a gate to what is in the lake. Raises GateError where it refuses."""
    with stage(f"gate {subject.gate}", spark):
        evaluate = partial(by_expectations, spark, run, subject)
        results = applied(spark, run.lake, run.gates, subject, None, evaluate)
        write_results(spark, run.lake, run.gates, subject, results)
    tell(run.lake, subject, results)


def subject_of(spark: SparkSession, lake: str, gate: Gate) -> Subject:
    """The lake's newest capture set, or its newest run. Raises LakeError where there is none."""
    if gate == "silver":
        return Subject(gate, newest_capture(spark, lake))
    t = RUNS
    last = read_table(spark, lake, t).orderBy(F.desc(t.run_at), t.run_id).select(t.run_id, t.capture_id).first()
    if last is None:
        raise LakeError(f"{lake}: nothing was replayed; run `replay` with this --lake first")
    rows = read_table(spark, lake, t).where(F.col(t.run_id) == last[0]).select(F.explode(t.lanes)).distinct()
    return Subject(gate, last[1], last[0], tuple(sorted(row[0] for row in rows.collect())))


def data_docs(run: Run) -> str | None:
    """The folder of Data Docs; None where the lake is on no file system that Great Expectations writes pages to."""
    if run.data_docs:
        return str(Path(run.data_docs).resolve())
    return None if is_uri(run.lake) else f"{run.lake}/{DATA_DOCS}"


def by_expectations(
    spark: SparkSession, run: Run, subject: Subject, rules: Sequence[SetRule], row_results: Sequence[Result]
) -> Mapping[tuple[str, str], Finding]:
    """Every rule about sets of rows by Great Expectations, and Data Docs of all rules where they have a place."""
    from jobs.gates.expectations import Checking, met, met_with_data_docs

    rows = partial(rows_to_check, spark, run.lake, subject)
    pages = data_docs(run)
    if pages is None:
        return met(rules, rows)
    home = f"{Path(pages).parent}/{CONTEXT}" if run.data_docs is None else f"{pages}/{CONTEXT}"
    about_rows = result_rows(spark, run.gates, subject, row_results)
    return met_with_data_docs(
        rules, rows, about_rows, (home, pages), Checking(subject.gate, subject.id, run.run_at, is_shown=True)
    )


def main(run: Run) -> None:
    """Run the job: check what is asked for, write `gate_results` and Data Docs. Raises GateError with all refusals."""
    spark = spark_session(run.master, "refetch gate", run.spark_conf)
    check_rules(spark, run.gates)
    refusals = []
    for gate in run.on:
        try:
            check(spark, run, subject_of(spark, run.lake, gate))
        except GateError as refusal:
            refusals.append(str(refusal))
    folder = data_docs(run)
    sys.stdout.write(
        f"{folder}/index.html\n" if folder else f"No Data Docs: {run.lake} is no folder; give --data-docs\n"
    )
    if refusals:
        raise GateError("\n".join(refusals))
