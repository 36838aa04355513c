"""pipeline: ingest what was not ingested before, then replay, then print what was found."""

from __future__ import annotations

import sys

from jobs.ingest import ingest
from jobs.kernels import ready_session
from jobs.replay import pass_gold_gate, replay
from jobs.run import Run
from jobs.summary import summary


def main(run: Run) -> None:
    """Run the jobs one after the other and print the summary to stdout. Raises GateError where a gate refuses."""
    spark = ready_session(run, "refetch pipeline", run.scenario.algorithms)
    capture_id = ingest(spark, run, keep=True)
    done = replay(spark, run, capture_id)
    sys.stdout.write(summary(spark, run, capture_id, done))
    pass_gold_gate(spark, run, capture_id, done)
