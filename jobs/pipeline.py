"""pipeline: ingest and replay whatever has not been done yet, then print the results and write the report."""

from __future__ import annotations

from jobs.chosen_scenario import with_chosen_grids
from jobs.ingest import ingest
from jobs.ready_session import ready_session
from jobs.replay import conclude_run, replay
from jobs.run import Run


def main(run: Run) -> None:
    """Run `ingest` and `replay` one after the other, print the run's results and write its page.

    Raises GateError if a gate refuses, and CaptureError if a replay is refused and --strict asks for every replay.
    """
    spark = ready_session(run, run.algorithms)
    capture_id = ingest(spark, run, keep=True)
    run = with_chosen_grids(spark, run, capture_id)
    conclude_run(spark, run, capture_id, replay(spark, run, capture_id, keep=True))
