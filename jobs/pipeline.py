"""pipeline: ingest and replay whatever has not been done yet, then print the results and write the report."""

from __future__ import annotations

import sys

from jobs.ingest import ingest
from jobs.ready_session import ready_session
from jobs.replay import check_refused, pass_gold_gate, replay
from jobs.report import reported
from jobs.report_page.findings import known_run, look_up
from jobs.report_page.summary import summary
from jobs.run import Run
from udfs.errors import GateError


def main(run: Run) -> None:
    """Run the jobs one after the other, print the summary to stdout and write the page. Raises GateError where a gate
    refuses, and CaptureError if a replay is refused and --strict asks for all."""
    spark = ready_session(run, run.scenario.algorithms)
    capture_id = ingest(spark, run, keep=True)
    done = replay(spark, run, capture_id, keep=True)
    known = known_run(spark, run.lake, done.run_id)
    found = look_up(spark, run.lake, known)
    sys.stdout.write(summary(run.lake, known, found))
    sys.stdout.write(reported(run, known, found))
    try:
        pass_gold_gate(spark, run, capture_id, done)
    except GateError:
        reported(run, known, look_up(spark, run.lake, known))  # so that the page says so, wherever it is read
        raise
    check_refused(run, done)
