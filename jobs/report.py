"""report: look a run up in the lake and write its page."""

from __future__ import annotations

import sys
from pathlib import Path

from jobs.lake.delta_tables import table_path
from jobs.report_page.advice.recommendations import read_recommendations, recommended
from jobs.report_page.findings import known_run, look_up
from jobs.report_page.summary import summary
from jobs.report_page.summary_json import NAME, write_summary
from jobs.report_page.verdict import Verdict, first_screen, labelled, shown_path
from jobs.run import Run
from jobs.session.spark import spark_session
from schemas.tables.gold_recommendations import RECOMMENDATIONS
from udfs.errors import LakeError


def reported(run: Run, verdict: Verdict) -> str:
    """Write the page, if there is to be one. Returns what to print: the verdict, and where everything is; before them
    every answer and table, where the run is to print them.
    """
    if run.page is not None:
        write_report(run.page, run.lake, verdict)
    everything = summary(run.lake, verdict.run, verdict.found) if run.verbose else ""
    lines = [*first_screen(run.lake, verdict), *place_lines(run, verdict.run.run_id)]
    return "".join(f"{line}\n" for line in [everything, *lines] if line)


def write_report(page: Path, lake: str, verdict: Verdict) -> None:
    """Write the page, and the same for programs beside it. Raises LakeError where they cannot be."""
    # Drawing takes a second to load, which a run without a page does not need.
    from jobs.report_page.page import write_page

    try:
        write_page(page, lake, verdict)
        write_summary(page.parent, verdict)
    except OSError as fault:
        told = f"{page}: the page could not be written: {fault.strerror or fault}"
        raise LakeError(f"{told}; `report --out=FILE` writes it elsewhere") from fault


def place_lines(run: Run, run_id: str) -> list[str]:
    """Where the page and the tables are."""
    pages = "none, because the lake is not a local folder; --out=FILE writes one"
    if run.page is not None:
        pages = f"{shown_path(str(run.page))}  JSON {shown_path(str(run.page.with_name(NAME)))}"
    return [
        *labelled("Report", pages),
        *labelled("Tables", f"{shown_path(table_path(run.lake, RECOMMENDATIONS))}, run {run_id}"),
        *([] if run.verbose else labelled("", "--verbose prints every answer and table")),
    ]


def main(run: Run) -> None:
    """Run the job. Raises LakeError if the lake has no run, ArgumentError if it does not have the named one."""
    spark = spark_session(run.master, "refetch report", run.spark_conf)
    known = known_run(spark, run.lake, run.run_id)
    found = look_up(spark, run.lake, known)
    made = read_recommendations(spark, run.lake, known.run_id) or recommended(found)
    sys.stdout.write(reported(run, Verdict(known, found, made)))
