"""compare: two runs side by side, and whether what the first one predicted came true."""

from __future__ import annotations

import sys

from jobs.comparison.comparison import compare_runs
from jobs.comparison.comparison_json import comparison_json
from jobs.comparison.named_runs import resolve_run_names
from jobs.comparison.screen import screen_lines, verbose_lines
from jobs.run import Run
from jobs.session.spark import spark_session
from jobs.terminal.progress import stage


def main(run: Run) -> None:
    """Run the job: print what changed, and write `predictions_checked`. Raises LakeError if a lake has no run, and
    ArgumentError if it does not have the named ones.
    """
    spark = spark_session(run.session.master, "refetch compare", run.session.conf)
    before, after = resolve_run_names(spark, run.lake, run.compared)
    with stage("compare", spark):
        compared = compare_runs(spark, before, after)
    if run.output.as_json:
        sys.stdout.write(comparison_json(compared).model_dump_json(indent=2) + "\n")
        return
    lines = [*verbose_lines(compared), ""] if run.output.verbose else []
    sys.stdout.writelines(f"{line}\n" for line in [*lines, *screen_lines(compared)])
