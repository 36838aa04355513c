"""report: look up a run in the lake and write its page."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from shutil import copyfile
from typing import NamedTuple

from pyspark.sql import SparkSession

from jobs.comparison.beside_run import other_runs
from jobs.lake.table_address import address_of
from jobs.report_page.advice.recommendations import make_recommendations, read_recommendations
from jobs.report_page.aim_lines import aim_lines
from jobs.report_page.findings import KnownRun, known_run, look_up_run
from jobs.report_page.other_runs import OtherRuns
from jobs.report_page.run_pages import newest_pages, pages_of_run
from jobs.report_page.summary import run_summary
from jobs.report_page.summary_json import write_summary
from jobs.report_page.verdict import SCREEN_LINES, Verdict, first_screen, labelled_lines, short_path
from jobs.run import Run
from jobs.session.spark import spark_session
from schemas.tables.gold import RUNS
from schemas.tables.gold_recommendations import RECOMMENDATIONS
from udfs.errors import LakeError


class PageFiles(NamedTuple):
    """Where a page is written. page: the HTML file. summary: a JSON file with the same content, for programs."""

    page: Path
    summary: Path


def write_pages(spark: SparkSession, run: Run, verdict: Verdict) -> str:
    """Write the pages, if the run has any. Returns what to print: every answer and table if --verbose is given, then
    the verdict, and where pages and tables are.
    """
    written = page_places(run, verdict.run)
    if written:
        named = run.output.compared_with
        beside = OtherRuns() if named is None else other_runs(spark, run.lake, verdict.run, named)
        write_report(written, run.lake, verdict, beside)
    everything = run_summary(run.lake, verdict.run, verdict.findings) if run.output.verbose else ""
    placed = place_lines(run, verdict.run.run_id, written)
    first = first_screen(run.lake, verdict)
    room = None if run.output.verbose else max(SCREEN_LINES - len(first) - len(placed), 0)
    lines = [*first, *aim_lines(verdict.findings, room), *placed]
    return "".join(f"{line}\n" for line in [everything, *lines] if line)


def page_places(run: Run, known: KnownRun) -> list[PageFiles]:
    """The files to which the page is written: the one that --out names. Without --out the run's own file, and also
    `report.html` if no run of the lake is newer.
    """
    if run.output.page is None:
        return []
    newest = PageFiles(*newest_pages(run.output.page))
    if not run.output.keeps_pages:
        return [newest]
    own = PageFiles(*pages_of_run(run.output.page, known.run_id))
    is_newest = known.rows[0][RUNS.run_at] >= known.newest[0][RUNS.run_at] or not run.output.page.exists()
    return [newest, own] if is_newest else [own]


def write_report(to: Sequence[PageFiles], lake: str, verdict: Verdict, beside: OtherRuns) -> None:
    """Write the page, and the JSON file beside it, at the first place, and copy both to the others. Raises LakeError
    where that fails.
    """
    # The module for drawing takes a second to load, and a run without a page does not need it.
    from jobs.report_page.page import write_page

    first, *others = to
    try:
        write_page(first.page, lake, verdict, beside)
        write_summary(first.summary, verdict)
        for other in others:
            copyfile(first.page, other.page)
            copyfile(first.summary, other.summary)
    except OSError as fault:
        message = f"{fault.filename or first.page}: the page could not be written: {fault.strerror or fault}"
        raise LakeError(f"{message}; `report --out=FILE` writes it elsewhere") from fault


def place_lines(run: Run, run_id: str, written: Sequence[PageFiles]) -> list[str]:
    """The lines that say where the page and the tables are. written: the files that were written."""
    pages = "none, because the lake is not a local folder; --out=FILE writes one"
    if written:
        pages = f"{short_path(str(written[0].page))}  JSON {short_path(str(written[0].summary))}"
    return [
        *labelled_lines("Report", pages),
        *labelled_lines("Tables", f"{short_path(str(address_of(run.lake, RECOMMENDATIONS)))}, run {run_id}"),
        *([] if run.output.verbose else labelled_lines("", "--verbose prints every answer and table")),
    ]


def main(run: Run) -> None:
    """Run the job. Raises LakeError if the lake has no run, ArgumentError if it does not have the named one."""
    spark = spark_session(run.session.master, "refetch report", run.session.conf)
    known = known_run(spark, run.lake, run.run_id)
    findings = look_up_run(spark, run.lake, known)
    made = read_recommendations(spark, run.lake, known.run_id) or make_recommendations(findings)
    sys.stdout.write(write_pages(spark, run, Verdict(known, findings, made)))
