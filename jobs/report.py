"""report: look a run up in the lake and write its page."""

from __future__ import annotations

import sys

from jobs.report_page.findings import KnownRun, known_run, look_up
from jobs.report_page.question import Findings
from jobs.run import Run
from jobs.session.spark import spark_session
from udfs.errors import LakeError


def reported(run: Run, known: KnownRun, found: Findings) -> str:
    """Write the page, if there is to be one. Returns what to print about it."""
    if run.page is None:
        return "\nReport: none, because the lake is not a local folder; --out=FILE writes one\n"
    # Drawing takes a second to load, which a run without a page does not need.
    from jobs.report_page.page import write_page

    try:
        write_page(run.page, run.lake, known, found)
    except OSError as fault:
        told = f"{run.page}: the page could not be written: {fault.strerror or fault}"
        raise LakeError(f"{told}; `report --out=FILE` writes it elsewhere") from fault
    return f"\nReport\n  {run.page}\n"


def main(run: Run) -> None:
    """Run the job. Raises LakeError if the lake has no run, ArgumentError if it does not have the named one."""
    spark = spark_session(run.master, "refetch report", run.spark_conf)
    known = known_run(spark, run.lake, run.run_id)
    sys.stdout.write(reported(run, known, look_up(spark, run.lake, known)))
