"""A new session is set up for the size of what a job reads."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from jobs import open_lake, ready_session
from jobs.run import Run
from jobs.scenarios.scenario_file import resolve_scenario
from jobs.session.spark_properties import Workload
from udfs.errors import SparkError

STORED = b"four"


@pytest.fixture
def lake(tmp_path: Path) -> str:
    """A lake with a file of a capture set."""
    (tmp_path / "silver" / "exchanges" / "capture_id=1").mkdir(parents=True)
    (tmp_path / "silver" / "exchanges" / "capture_id=1" / "part.parquet").write_bytes(STORED)
    return str(tmp_path)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Workload]:
    """The work for which Spark would be started. It does not start."""
    works: list[Workload] = []

    def start(_master: str | None, _app: str, _conf: Any, work: Workload) -> None:
        works.append(work)
        raise SparkError("not here")

    monkeypatch.setattr(ready_session, "spark_session", start)
    monkeypatch.setattr(open_lake, "spark_session", start)
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)
    return works


@pytest.mark.parametrize(("job", "is_replayed"), [("report", False), ("replay", True)])
def test_a_job_that_reads_a_lake_gets_a_spark_for_the_size_of_the_lake(
    job: str, is_replayed: bool, lake: str, started: list[Workload]
) -> None:
    with pytest.raises(SparkError):
        ready_session.begin_session(Run(resolve_scenario(None), (), lake, datetime.now(UTC), job=job))
    assert started == [Workload(is_replayed=is_replayed, stored_bytes=len(STORED))]


def test_a_notebook_gets_a_spark_for_the_size_of_the_lake(lake: str, started: list[Workload]) -> None:
    with pytest.raises(SparkError):
        open_lake.open_lake(lake)
    assert started == [Workload(stored_bytes=len(STORED))]
