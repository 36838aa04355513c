"""runs: list the runs and the capture sets of a lake."""

from __future__ import annotations

import sys

from jobs.comparison.run_list import MOST_LISTED, MOST_SHOWN, list_lines, run_list
from jobs.run import Run
from jobs.session.spark import spark_session


def main(run: Run) -> None:
    """Run the job. Raises LakeError where the lake has neither runs nor captures."""
    spark = spark_session(run.master, "refetch runs", run.spark_conf)
    listed = run_list(spark, run.lake)
    if run.as_json:
        sys.stdout.write(listed.model_dump_json(indent=2) + "\n")
        return
    sys.stdout.writelines(f"{line}\n" for line in list_lines(listed, MOST_LISTED if run.verbose else MOST_SHOWN))
