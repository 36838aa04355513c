"""gate: check the lake's tables by rules, with Great Expectations, and render its Data Docs."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from jobs.gates.gate import apply_gate
from jobs.gates.junit import CheckedSubject, write_junit
from jobs.gates.results import Result, tell_results, write_results
from jobs.gates.row_rules import count_by_scan
from jobs.gates.rule_checks import check_rules
from jobs.gates.rules import CHECKED
from jobs.gates.set_rules import Finding, SetRule
from jobs.gates.views import Subject, rows_to_check
from jobs.lake.capture_sets import choose_capture
from jobs.places import is_folder
from jobs.report_page.findings import known_run
from jobs.run import Run
from jobs.session.spark import spark_session
from jobs.terminal.progress import stage
from schemas.tables.gold import RUNS
from udfs.errors import GateError

DATA_DOCS, CONTEXT = "data_docs", "_expectations"
"""Folders in the lake: one for the pages of Data Docs, and one for what Great Expectations keeps for them."""


def check_subject(spark: SparkSession, run: Run, subject: Subject) -> CheckedSubject:
    """Apply a gate to a subject's tables in the lake and write the results. Returns the subject with its results."""
    with stage(f"gate {subject.gate}", spark):
        evaluate = partial(evaluate_by_expectations, spark, run, subject)
        counts = count_by_scan(spark, run.lake, run.gates, subject, CHECKED.values())
        results = apply_gate(spark, run.lake, run.gates, subject, counts, evaluate)
        write_results(spark, run.lake, run.gates, subject, results)
    return CheckedSubject(subject, results)


def subjects_to_check(spark: SparkSession, run: Run) -> list[Subject]:
    """What to check, in the order of the gates that --on names.

    The silver gate checks the capture set that is named, else the one written last; the gold gate checks the run that
    `run_to_check` returns. Raises LakeError if there is none, ArgumentError if the named one does not exist.
    """
    takes_a_set = run.capture is not None or "silver" in run.gate_job.on
    capture_id = choose_capture(spark, run.lake, run.capture) if takes_a_set else ""
    return [Subject(gate, capture_id) if gate == "silver" else run_to_check(spark, run) for gate in run.gate_job.on]


def run_to_check(spark: SparkSession, run: Run) -> Subject:
    """The run that is named, else the newest one; if a capture set is named, the newest run of that set. Raises
    LakeError if there is none, ArgumentError if the named one does not exist.
    """
    known = known_run(spark, run.lake, run.run_id, run.capture)
    lanes = {lane for row in known.rows for lane in row[RUNS.lanes]}
    return Subject("gold", known.capture_id, known.run_id, tuple(sorted(lanes)))


def data_docs_folder(run: Run) -> str | None:
    """The folder of Data Docs; None if the lake is on a file system to which Great Expectations writes no pages."""
    if run.gate_job.data_docs:
        return run.gate_job.data_docs
    return f"{run.lake}/{DATA_DOCS}" if is_folder(run.lake) else None


def evaluate_by_expectations(
    spark: SparkSession, run: Run, subject: Subject, rules: Sequence[SetRule], row_results: Sequence[Result]
) -> Mapping[tuple[str, str], Finding]:
    """Apply every rule about sets of rows with Great Expectations; write Data Docs of all rules if they have a folder.

    Returns what each rule found, by rule and table. row_results: what rules about single rows found.
    """
    from jobs.gates.expectations import Checking, evaluate_expectations, evaluate_with_data_docs

    rows = partial(rows_to_check, spark, run.lake, subject)
    pages = data_docs_folder(run)
    if pages is None:
        return evaluate_expectations(rules, rows)
    home = f"{Path(pages).parent}/{CONTEXT}" if run.gate_job.data_docs is None else f"{pages}/{CONTEXT}"
    checking = Checking(subject.gate, subject.id, run.run_at)
    return evaluate_with_data_docs(rules, rows, row_results, (home, pages), checking)


def tell_and_gather_refusals(lake: str, checked: Sequence[CheckedSubject]) -> list[str]:
    """Say on stderr what was found. Returns the messages of the gates that refuse."""
    lines = []
    for subject_checked in checked:
        try:
            tell_results(lake, subject_checked.subject, subject_checked.results)
        except GateError as refusal:
            lines.append(str(refusal))
    return lines


def main(run: Run) -> None:
    """Run the job: apply the gates that --on names, and write `gate_results`, Data Docs and JUnit's XML.

    Raises GateError with all refusals if a gate refuses.
    """
    spark = spark_session(run.session.master, "refetch gate", run.session.conf)
    check_rules(spark, run.gates)
    if run.gate_job.junit is not None:
        run.gate_job.junit.unlink(missing_ok=True)  # an earlier check's results are not this one's
    checked = [check_subject(spark, run, subject) for subject in subjects_to_check(spark, run)]
    if run.gate_job.junit is not None:
        write_junit(run.gate_job.junit, run.run_at, run.gates, checked)
    refused = tell_and_gather_refusals(run.lake, checked)
    folder = data_docs_folder(run)
    sys.stdout.write(
        f"{folder}/index.html\n" if folder else f"No Data Docs: {run.lake} is not a local folder; give --data-docs\n"
    )
    if refused:
        raise GateError("\n".join(refused))
