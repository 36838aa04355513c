"""Ingests and replays captures of the lab, in one Spark session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from jobs.ingest import ingest
from jobs.ready_session import ready_session
from jobs.replay import replay
from jobs.run import Run, SessionWishes
from jobs.scenarios.scenario_file import resolve_scenario
from schemas.tables.table import Table
from tests.lakes import queried

RUN_AT = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
Rows = list[dict[str, Any]]


@dataclass(frozen=True, eq=False)
class Replayed:
    """A capture replayed by one algorithm. lanes: the captured lane, and the requested ones."""

    spark: SparkSession
    run: Run
    algorithm: str

    @cached_property
    def capture_id(self) -> str:
        """The id of the silver rows. Existing rows are kept."""
        return ingest(self.spark, self.run, keep=True)

    @cached_property
    def run_id(self) -> str:
        """The id of the gold rows. Existing rows are kept."""
        return replay(self.spark, self.run, self.capture_id, keep=True).run_id

    @cached_property
    def lanes(self) -> list[str]:
        """The names of the lanes."""
        return [lane.name for lane in self.run.scenario.lanes(self.algorithm)]

    def rows(self, table: Table, where: str = "true") -> Rows:
        """Rows of a table of this capture or run."""
        of = self.capture_id if table.layer == "silver" else self.run_id
        return queried(self.run.lake, table, where=f"{table.replaced_by} = '{of}' AND ({where})")


def replayed(
    algorithm: str, capture: Path, settings: Sequence[str] = (), captured: Sequence[str] = (), logs: Sequence[Path] = ()
) -> Replayed:
    """A capture that is replayed with these values in addition to the captured ones. Its lake is in the same folder."""
    scenario = resolve_scenario(None, settings, captured)
    scenario = replace(scenario, replay={algorithm: scenario.replay.get(algorithm, {})})
    run = Run(scenario, (capture, *logs), str(capture.with_suffix(".lake")), RUN_AT, session=SessionWishes("local[2]"))
    return Replayed(ready_session(run, scenario.algorithms), run, algorithm)
