"""The finished runs of a lake, as the table `runs` lists them, the newest first."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

from pyspark.sql import SparkSession

from jobs.lake.delta_tables import different_values, has_table
from schemas.tables.gold import RUNS

_T = RUNS


class FinishedRun(NamedTuple):
    """A run in the table `runs`: its id, its capture set, and its clock, which is when it was last asked for.

    run_at: UTC. It may be cut to milliseconds, since Delta's log has it so.
    """

    run_id: str
    capture_id: str
    run_at: datetime


def finished_runs(spark: SparkSession, lake: str) -> list[FinishedRun]:
    """The finished runs of a lake, the newest first. Runs with the same clock are in the order of their ids.

    In a lake that this process sees, they come from the log of `runs`, which takes milliseconds for hundreds of nights.
    Raises LakeError if `runs` has other columns than declared.
    """
    if not has_table(spark, lake, _T):
        return []
    values = different_values(spark, lake, _T, (_T.run_id, _T.capture_id, _T.run_at))
    newest = values.group_by([str(_T.run_id), str(_T.capture_id)]).aggregate([(str(_T.run_at), "max")])
    runs = [
        FinishedRun(row[_T.run_id], row[_T.capture_id], row[f"{_T.run_at}_max"].astimezone(UTC))
        for row in newest.to_pylist()
    ]
    return sorted(sorted(runs), key=lambda run: run.run_at, reverse=True)
