"""The shared captures, each taken through ingest and replay once for all tests."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

import jobs.pipeline
import jobs.replay
import jobs.report
from jobs.ingest import ingest
from jobs.lake.table_address import table_path
from jobs.replay import ReplayedRun, pass_gold_gate, replay
from jobs.report_page.findings import known_run
from jobs.run import Run
from jobs.scenarios.scenario_file import resolve_scenario
from schemas.tables.gold import GOLD, RUNS
from schemas.tables.silver import CAPTURES, CONNECTIONS, EXCHANGES, SILVER
from schemas.tables.table import Table
from tests.e2e.request_log import Key, LoggedRequest, read_request_logs
from tests.lakes import queried
from udfs.kernels.one_at_a_time import one_at_a_time

RUN_AT = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
SLOTS = "max.incremental.fetch.session.cache.slots"
WHAT_IF = {
    "starve": ["consumer.fetch.max.bytes=32KiB,128KiB,50MiB"],
    "sessions": [f"{SLOTS}=8,16"],
    "split": ["producer.batch.size=2KiB,16384,30000,38000,64KiB"],
    "admin": ["max.partitions=300,500 until 2026-11-21T12:19:44Z then 900", "max.broker.partitions=200,none"],
}
"""Settings that are replayed in addition to the captured ones, by capture."""
IN_FORCE = {
    "sessions": [f"{SLOTS}=8"],
    "split": ["batch.size=38000", "linger.ms=20", "max.message.bytes=40000"],
}
"""Settings that were in force and that the capture does not show, by capture."""

Rows = list[dict[str, Any]]


@dataclass
class CapturedLake:
    """The tables made from one capture, and what its brokers logged about the same traffic."""

    spark: SparkSession
    path: str
    capture: Path
    capture_id: str
    run_id: str
    logged: dict[Key, LoggedRequest]
    _read: dict[str, Rows] = field(default_factory=dict)

    def rows(self, table: Table, *columns: str, where: str | None = None) -> Rows:
        """Rows of a table as dicts, with all columns if none is named. where: a condition in SQL."""
        asked = f"{table.name} {columns} {where}"
        if asked not in self._read:
            of = self.run_id if table.layer == "gold" else self.capture_id
            own = f"{table.replaced_by} = '{of}' AND ({where or 'true'})"
            self._read[asked] = queried(self.path, table, *columns, where=own)
        return self._read[asked]

    @cached_property
    def exchanges(self) -> dict[Key, dict[str, Any]]:
        """The exchange of every request, by server, client and correlation id."""
        c, x = CONNECTIONS, EXCHANGES
        ends = {row[c.connection_id]: (row[c.server], row[c.client]) for row in self.rows(c)}
        asked = self.rows(x, where=f"{x.status} != 'orphan_response'")
        by_key = {(*ends[row[x.connection_id]], row[x.correlation_id]): row for row in asked}
        assert len(by_key) == len(asked), "server, client and correlation id name a request"
        return by_key


@pytest.fixture(scope="session")
def captured(
    spark: SparkSession, shared_captures: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], CapturedLake]:
    """A function from a shared capture's name to its lake, which is made when a test process first asks for it."""
    is_one_of_several = "PYTEST_XDIST_WORKER" in os.environ
    base = tmp_path_factory.getbasetemp().parent if is_one_of_several else tmp_path_factory.getbasetemp()

    @cache
    def lake_of(name: str) -> CapturedLake:
        capture, lake, ids = shared_captures / f"{name}.pcap", base / f"{name}-lake", base / f"{name}-ids.json"
        with one_at_a_time(base / f"{name}.lock"):
            if not ids.exists():
                ids.write_text(json.dumps(made(spark, capture, lake)))
        capture_id, run_id = json.loads(ids.read_text())
        logged = read_request_logs(capture.parent, name)
        return CapturedLake(spark, str(lake), capture, capture_id, run_id, logged)

    return lake_of


def made(spark: SparkSession, capture: Path, lake: Path) -> tuple[str, str]:
    """Make the lake of a shared capture; returns the capture id and the run id."""
    scenario = resolve_scenario(None, WHAT_IF.get(capture.stem, []), IN_FORCE.get(capture.stem, []))
    run = Run(scenario, (capture,), str(lake), RUN_AT)
    capture_id = ingest(spark, run)
    return capture_id, replay(spark, run, capture_id).run_id


@contextmanager
def pages_left_out() -> Iterator[None]:
    """While the block runs, commands write no page. Drawing it takes about a second."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(jobs.report, "write_report", lambda *_: None)
        yield


@pytest.fixture
def no_page() -> Iterator[None]:
    """The commands of the test write no page."""
    with pages_left_out():
        yield


@contextmanager
def only_gates_applied() -> Iterator[None]:
    """While the block runs, commands apply the gate after a replay. They recommend nothing, and print and write no
    results, for which they would query the tables some 50 times.
    """

    def only_pass_gate(spark: SparkSession, run: Run, capture_id: str, done: ReplayedRun) -> None:
        pass_gold_gate(spark, run, capture_id, done, known_run(spark, run.lake, done.run_id))

    with pytest.MonkeyPatch.context() as patched:
        for job in (jobs.pipeline, jobs.replay):
            patched.setattr(job, "conclude_run", only_pass_gate)
        yield


@pytest.fixture
def tables_alone() -> Iterator[None]:
    """The commands of the test only apply the gate after a replay."""
    with only_gates_applied():
        yield


class Nights(NamedTuple):
    """A lake with the runs of two captures, and the two lakes that it was made from."""

    lake: str
    first: CapturedLake
    second: CapturedLake


@pytest.fixture(scope="session")
def nights(captured: Callable[[str], CapturedLake], tmp_path_factory: pytest.TempPathFactory) -> Nights:
    """A lake of two captures, the second one replayed a day after the first. Tests must not change it."""
    first, second = captured("starve"), captured("mixed")
    lake = tmp_path_factory.mktemp("compare") / "lake"
    shutil.copytree(first.path, lake)
    add_night(second.path, str(lake), 1)
    return Nights(str(lake), first, second)


def add_night(of: str, lake: str, days: int, renamed: Mapping[str, str] | None = None) -> None:
    """Add the rows of the lake `of` to another lake, as if they were written this many days later.

    renamed: the new id by the old id, of capture sets and runs.
    """
    for table in (*SILVER, *GOLD):
        if DeltaTable.is_deltatable(table_path(of, table)):
            rows = of_night(table, DeltaTable(table_path(of, table)).to_pyarrow_table(), days, renamed or {})
            path = table_path(lake, table)
            write_deltalake(path, rows, mode="append", partition_by=[str(table.replaced_by)])


def of_night(table: Table, rows: pa.Table, days: int, renamed: Mapping[str, str]) -> pa.Table:
    """A table's rows this many days later. The time of the run moves; those of captures move only with new ids."""
    later = {RUNS: [RUNS.run_at], CAPTURES: [CAPTURES.first_time, CAPTURES.last_time] if renamed else []}
    for column in later.get(table, []):
        place = rows.schema.get_field_index(column)
        rows = rows.set_column(place, column, pc.add(rows[column], pa.scalar(timedelta(days=days))))
    for name in {str(table.replaced_by), "capture_id"} & {*rows.column_names}:
        ids = pa.array([renamed.get(str(of), str(of)) for of in rows[name].to_pylist()], pa.string())
        rows = rows.set_column(rows.schema.get_field_index(name), name, ids)
    return rows
