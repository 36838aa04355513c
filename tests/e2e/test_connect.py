"""Jobs and notebooks through Spark Connect give the same tables and answers as when a job starts Spark itself."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlparse

import pyspark
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from jobs.ingest import ingest
from jobs.lake.table_address import table_path
from jobs.run import Run
from jobs.scenarios.scenario_file import resolve_scenario
from schemas.tables.gold import FIDELITY, GOLD, RUNS
from schemas.tables.gold_gates import GATE_RESULTS
from schemas.tables.silver import CAPTURES, CONNECTIONS, EXCHANGES, SILVER
from schemas.tables.silver_quality import CAPTURE_QUALITY
from schemas.tables.table import Table
from tests.e2e.conftest import RUN_AT, WHAT_IF, CapturedLake
from tests.lakes import queried, table_rows
from tests.unit.capture.capture_files import sample_capture, store

ENDS_WITHIN_S = 900
SCHEMA = "spark_catalog.connected"
CODE = """
import json, sys
import jobs.ingest
from jobs.cli import run_command
from jobs.open_lake import open_lake
from schemas.tables.silver import EXCHANGES
for command in json.loads(sys.argv[1]):
    print(f"\\0{command[0]}", flush=True)
    if command[0] == "open_lake":
        lake = open_lake(command[1])
        print("connect" in type(lake.spark).__module__, lake.rows(EXCHANGES).count())
        print(lake.sql("SELECT count(*) FROM fidelity").collect()[0][0])
        continue
    if command[0] == "ingest":
        jobs.ingest.pass_gate = lambda *_: None  # the pipeline has passed the same gate before
    if code := run_command(command):
        sys.exit(code)
"""
"""Runs commands one after the other in one session. A Python process for each would take twice as long."""


class Connected:
    """A Spark Connect server on this machine."""

    def __init__(self, port: int) -> None:
        self.environment = os.environ | {"SPARK_REMOTE": f"sc://127.0.0.1:{port}"}

    def run(self, *commands: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
        """Run commands with the server named in their environment, until one fails."""
        return subprocess.run(
            [sys.executable, "-c", CODE, json.dumps(commands)], env=self.environment, capture_output=True, text=True,
            timeout=ENDS_WITHIN_S, check=False,
        )  # fmt: skip

    def printed(self, *commands: tuple[str, ...]) -> dict[str, str]:
        """What each command prints, by its first word. All have to exit with 0."""
        done = self.run(*commands)
        assert done.returncode == 0, done.stderr
        parts = (part.partition("\n") for part in done.stdout.split("\0")[1:])
        return {name: told for name, _, told in parts}


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.fixture(scope="module")
def server(spark: SparkSession) -> Iterator[Connected]:
    """A server in the Java process of the tests' session, which has loaded and compiled what it needs. Commands come
    from other processes, and get sessions of their own.
    """
    lacking = [name for name in ("grpc", "grpc_status", "google.rpc") if not is_there(name)]
    if lacking:
        pytest.skip(f"no client of Spark Connect: {', '.join(lacking)} cannot be imported (extra `connect`)")
    if not list(Path(pyspark.__file__).parent.glob("jars/spark-connect_*.jar")):
        pytest.skip("pyspark has no jar of Spark Connect's server")
    port, jvm = free_port(), spark.sparkContext._jvm
    assert jvm is not None
    for key, value in (("address", "127.0.0.1"), ("port", str(port))):
        jvm.org.apache.spark.SparkEnv.get().conf().set(f"spark.connect.grpc.binding.{key}", value)
    service, unset = jvm.org.apache.spark.sql.connect.service.SparkConnectService, jvm.scala.Option.empty()
    service.start(spark.sparkContext._jsc.sc())
    yield Connected(port)
    service.stop(unset, unset)


def is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


class Nights(NamedTuple):
    """A lake with the first night's capture set, its id, and the captures of the second night."""

    lake: str
    first: str
    second: Path


@pytest.fixture
def in_catalog(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """A folder that shows the tables of SCHEMA as those of a lake."""
    warehouse = Path(urlparse(str(spark.conf.get("spark.sql.warehouse.dir"))).path, "connected.db")
    for table in (*SILVER, *GOLD):
        shown = Path(table_path(str(tmp_path / "in-catalog"), table))
        shown.parent.mkdir(parents=True, exist_ok=True)
        shown.symlink_to(warehouse / table.name)
    yield str(tmp_path / "in-catalog")
    spark.sql(f"DROP SCHEMA {SCHEMA} CASCADE")


@pytest.fixture
def nights(spark: SparkSession, repository: Path, tmp_path: Path) -> Nights:
    link_type, packets = sample_capture(repository, "starve")
    cut = len(packets) // 2
    halves = (("first", packets[:cut]), ("second", packets[cut:]))
    first, second = (store(tmp_path / f"{name}.pcap", link_type, part) for name, part in halves)
    lake = str(tmp_path / "nights")
    return Nights(lake, ingest(spark, Run(resolve_scenario(None), (first,), lake, RUN_AT)), second)


def test_jobs_write_the_same_tables_with_and_without_a_server(
    server: Connected, captured: Callable[[str], CapturedLake], in_catalog: str, nights: Nights, tmp_path: Path
) -> None:
    by_spark, lake, page = captured("admin"), in_catalog, tmp_path / "report.html"
    asked = [f"--set={setting}" for setting in WHAT_IF["admin"]]
    old = str(tmp_path / "old")
    for table in (CAPTURES, RUNS):  # only these, since a server takes seconds to prune each table of a lake
        shutil.copytree(table_path(by_spark.path, table), table_path(old, table))
    printed = server.printed(
        ("pipeline", f"--captures={by_spark.capture}", f"--catalog={SCHEMA}", *asked, f"--run-at={RUN_AT.isoformat()}",
         f"--out={page}"),
        ("runs", f"--catalog={SCHEMA}"),
        ("open_lake", f"catalog:{SCHEMA}"),
        ("ingest", f"--captures={nights.second}", f"--lake={nights.lake}", "--continue"),
        ("prune", f"--run={by_spark.run_id}", f"--lake={old}"),
    )  # fmt: skip
    assert by_spark.run_id in page.read_text()
    # Only the gate of silver has run on the lake of `captured`, so its gate results are others.
    written = [table for table in (*SILVER, *GOLD) if DeltaTable.is_deltatable(table_path(by_spark.path, table))]
    written.remove(GATE_RESULTS)
    assert {*SILVER, FIDELITY, RUNS} <= {*written}
    for table in written:
        assert table_rows(lake, table) == table_rows(by_spark.path, table), table.name
        assert columns_of(lake, table) == columns_of(by_spark.path, table), table.name
    assert by_spark.run_id in printed["runs"]
    counts = [str(len(queried(lake, table))) for table in (EXCHANGES, FIDELITY)]
    assert printed["open_lake"].split() == ["True", *counts]
    assert (len(queried(old, RUNS)), len(queried(old, CAPTURES))) == (0, 1)
    of_second = f"{CAPTURE_QUALITY.capture_id} != '{nights.first}'"
    assert [row[CAPTURES.continues] for row in queried(nights.lake, CAPTURES, where=of_second)] == [nights.first]
    whole = queried(nights.lake, CAPTURE_QUALITY, where=f"{of_second} AND scope = 'capture set'")
    assert [row[CAPTURE_QUALITY.fetches_of_unknown_sessions] for row in whole] == [0]
    assert any(row[CONNECTIONS.continuation] == "continued" for row in queried(nights.lake, CONNECTIONS))


def columns_of(lake: str, table: Table) -> tuple[str, list[str]]:
    """A table's columns with their comments, and those by which it is partitioned."""
    stored = DeltaTable(table_path(lake, table))
    return stored.schema().to_json(), stored.metadata().partition_columns


def test_a_server_that_does_not_answer_is_reported_at_once(tmp_path: Path) -> None:
    nobody = Connected(free_port()).run(("report", f"--lake={tmp_path}"))
    assert nobody.returncode == 1
    assert "No Spark Connect server answers at SPARK_REMOTE=sc://127.0.0.1:" in nobody.stderr
