"""runs: list the runs and the capture sets of a lake, or the results of its runs, night by night."""

from __future__ import annotations

import sys
from dataclasses import replace

from pyspark.sql import SparkSession

from jobs.comparison.run_list import MOST_LISTED, MOST_SHOWN, list_lines, run_list
from jobs.comparison.trend_screen import all_figure_lines, trend_lines, trends_json
from jobs.comparison.trends import Trend, find_trend, newest_night
from jobs.run import Run
from jobs.session.spark import spark_session
from udfs.errors import LakeError


def newest_trend(spark: SparkSession, run: Run) -> Trend:
    """The trend of the nights that can be compared with that of the newest complete run. Raises LakeError if the
    lake has no run, or no complete one.
    """
    most = MOST_LISTED if run.output.verbose else MOST_SHOWN
    newest, left_out = newest_night(spark, run.lake, most)
    nights = find_trend(spark, run.lake, newest, most)
    if nights is None:
        raise LakeError(
            f"{run.lake}: the newest run, {newest.run_id}, is of a part of its captures (--from, --to), which is no "
            "night; `runs` lists all"
        )
    return replace(nights, incomplete=sorted({*left_out, *nights.incomplete}))


def main(run: Run) -> None:
    """Run the job. Raises LakeError if the lake has neither runs nor captures, and what `newest_trend` raises."""
    spark = spark_session(run.session.master, "refetch runs", run.session.conf)
    if run.output.trend:
        nights = newest_trend(spark, run)
        as_json = trends_json(run.lake, nights).model_dump_json(indent=2)
        lines = [*trend_lines(run.lake, nights), *(all_figure_lines(nights) if run.output.verbose else [])]
    else:
        most = MOST_LISTED if run.output.verbose or run.output.as_json else MOST_SHOWN
        listed = run_list(spark, run.lake, most)
        as_json, lines = listed.model_dump_json(indent=2), [*list_lines(listed, most)]
    sys.stdout.writelines([f"{as_json}\n"] if run.output.as_json else [f"{line}\n" for line in lines])
