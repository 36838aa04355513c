"""Lakes are read through Spark Connect, and what cannot work there says so."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from jobs.ingest import ingest
from jobs.replay import replay
from jobs.run import Run
from jobs.scenarios.scenario_file import resolve_scenario
from jobs.session.spark_properties import Work, started_properties
from schemas.tables.algorithms import PARTITION_LIMITS
from schemas.tables.gold import FIDELITY
from schemas.tables.silver import EXCHANGES
from tests.e2e.conftest import RUN_AT
from tests.lakes import queried

STARTS_WITHIN_S, ENDS_WITHIN_S = 120, 600
HOME = Path(pyspark.__file__).parent
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
OPENED = """
import sys
from jobs.open_lake import open_lake
from schemas.tables.silver import EXCHANGES
lake = open_lake(sys.argv[1])
print("connect" in type(lake.spark).__module__, lake.rows(EXCHANGES).count())
print(lake.sql("SELECT count(*) FROM fidelity").collect()[0][0])
"""


class Connected:
    """A Spark Connect server on this machine."""

    def __init__(self, port: int) -> None:
        self.environment = os.environ | {"SPARK_REMOTE": f"sc://127.0.0.1:{port}"}

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run Python with the server named in its environment."""
        return subprocess.run(
            [sys.executable, *arguments], env=self.environment, capture_output=True, text=True, timeout=ENDS_WITHIN_S,
            check=False,
        )  # fmt: skip

    def job(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a job, which has to end well."""
        done = self.run("-m", "jobs", *arguments)
        assert done.returncode == 0, done.stderr
        return done


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.fixture(scope="module")
def server(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connected]:
    """A server of the pinned jars, whose workers have the packages of the clone."""
    lacking = [name for name in ("grpc", "grpc_status", "google.rpc") if not is_there(name)]
    if lacking:
        pytest.skip(f"no client of Spark Connect: {', '.join(lacking)} cannot be imported (extra `connect`)")
    if not list(HOME.glob("jars/spark-connect_*.jar")):
        pytest.skip("pyspark has no jar of Spark Connect's server")
    port, folder = free_port(), tmp_path_factory.mktemp("connect")
    given = started_properties("local[2]", {"spark.sql.warehouse.dir": str(folder)}, None, Work(1)) | {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
    }
    properties = [part for key, value in given.items() for part in ("--conf", f"{key}={value}")]
    command = [str(HOME / "bin/spark-submit"), "--master", "local[2]", *properties, "--class", SERVER, "spark-internal"]
    environment = os.environ | {
        "SPARK_HOME": str(HOME), "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(repository)
    }  # fmt: skip
    with (folder / "log").open("wb") as log:
        java = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
    try:
        wait_until_it_answers(java, port, folder / "log")
        yield Connected(port)
    finally:
        java.terminate()
        java.wait(60)


def is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def wait_until_it_answers(java: subprocess.Popen[bytes], port: int, log: Path) -> None:
    until = time.monotonic() + STARTS_WITHIN_S
    while java.poll() is None and time.monotonic() < until:
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    pytest.fail(f"the server did not start: {log.read_text(errors='replace')[-2000:]}")


def test_a_lake_is_read_through_a_server(
    spark: SparkSession, server: Connected, repository: Path, tmp_path: Path
) -> None:
    lake, run_id = made_with_one_replay(spark, repository / "tests/captures/mixed.pcap.zst", tmp_path / "lake")
    opened = server.run("-c", OPENED, lake)
    assert opened.returncode == 0, opened.stderr
    assert opened.stdout.split() == ["True", str(len(queried(lake, EXCHANGES))), str(len(queried(lake, FIDELITY)))]
    page = tmp_path / "report.html"
    server.job("report", f"--lake={lake}", f"--out={page}")
    assert run_id in page.read_text()


def made_with_one_replay(spark: SparkSession, capture: Path, lake: Path) -> tuple[str, str]:
    """(a lake whose report asks few queries, each of which takes a server longer; its run)."""
    run = Run(replace(resolve_scenario(None, (), ()), replay={PARTITION_LIMITS: {}}), (capture,), str(lake), RUN_AT)
    return str(lake), replay(spark, run, ingest(spark, run)).run_id


@pytest.mark.parametrize(
    "job",
    [("ingest", "--captures=tests/captures/mixed.pcap.zst"), ("compact",)],
)
def test_what_cannot_work_through_a_server_says_so(server: Connected, job: Sequence[str], tmp_path: Path) -> None:
    done = server.run("-m", "jobs", *job, f"--lake={tmp_path}")
    assert (done.returncode, list(tmp_path.iterdir())) == (1, [])
    assert "Through Spark Connect refetch only reads lakes: open_lake, report and gate." in done.stderr


def test_a_server_that_is_not_there_is_told_at_once(tmp_path: Path) -> None:
    nobody = Connected(free_port()).run("-m", "jobs", "report", f"--lake={tmp_path}")
    assert nobody.returncode == 1
    assert "No Spark Connect server answers at SPARK_REMOTE=sc://127.0.0.1:" in nobody.stderr
