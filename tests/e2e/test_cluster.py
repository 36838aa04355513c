"""A cluster of Spark's standalone master and two workers, to which a plain spark-submit brings refetch."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from jobs.ingest import ingest
from jobs.paths import CONF
from jobs.run import Run
from jobs.scenarios.scenario_file import resolve_scenario
from jobs.session import spark_properties
from jobs.session.spark_properties import read_properties
from schemas.tables.silver import SILVER
from tests.lakes import lake_rows
from tests.release import zipped

HOME = Path(pyspark.__file__).parent
MASTER = r"Starting Spark master at (spark://[\d.:]+)"
NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
QUICK_JAVA = read_properties(CONF / spark_properties.QUICK_JAVA)[spark_properties.JAVA_OPTIONS]
START_SECONDS = 60


@contextmanager
def daemon(log: Path, ready: str, name: str, *arguments: str) -> Iterator[str]:
    """Start a process of the cluster and wait until it logs that it is ready. Gives what it logged, and ends the
    process at the end of the block.
    """
    environment = os.environ | {"SPARK_HOME": str(HOME), "SPARK_DAEMON_JAVA_OPTS": QUICK_JAVA}
    environment |= {"SPARK_DAEMON_MEMORY": "256m", "SPARK_CONF_DIR": str(log.parent)}
    environment |= {"PATH": f"{log.parent / 'bin'}:{os.environ['PATH']}"}
    environment.pop("PYTHONPATH", None)
    with log.open("w") as output:
        command: list[str | Path] = [
            HOME / "bin/spark-class",
            f"org.apache.spark.deploy.{name}",
            "--host",
            "127.0.0.1",
            *arguments,
        ]
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment, cwd=log.parent)
    try:
        yield said(log, ready, process)
    finally:
        process.terminate()
        process.wait(START_SECONDS)


def said(log: Path, ready: str, process: subprocess.Popen[bytes]) -> str:
    """Wait until a line of the log matches `ready`. Returns the match's last group, or else the whole match."""
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        found = re.search(ready, log.read_text(errors="replace"))
        if found:
            return found[found.lastindex or 0]
        time.sleep(0.1)
    raise AssertionError(f"not ready: {log.read_text(errors='replace')}")


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """The URL of a master with two workers of one core each. Their python3 leaves a file whenever it is started."""
    python = tmp_path / "bin" / "python3"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\n: > {tmp_path}/python-of-$PPID\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    with ExitStack() as cluster:
        url = cluster.enter_context(daemon(tmp_path / "master.log", MASTER, "master.Master", "--port", "0"))
        for worker in ("worker-1", "worker-2"):
            shape = ("--cores", "1", "--memory", "1g", "--work-dir", str(tmp_path / worker), url)
            cluster.enter_context(
                daemon(tmp_path / f"{worker}.log", "Successfully registered with master", "worker.Worker", *shape)
            )
        yield url


def submitted(repository: Path, folder: Path, master: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a plain spark-submit that names a Python only for the driver. Executors get refetch from a zip."""
    zipped(folder / "release" / "refetch.zip")
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYSPARK_PYTHON")}
    environment |= {"SPARK_HOME": str(HOME), "PYSPARK_DRIVER_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    command: list[str | Path] = [HOME / "bin/spark-submit", "--master", master, "--executor-memory", "600m"]
    command += ["--driver-java-options", QUICK_JAVA, "--conf", f"spark.executor.extraJavaOptions={QUICK_JAVA}"]
    command += ["--properties-file", repository / "conf/spark-defaults.conf"]
    command += ["--py-files", folder / "release" / "refetch.zip", repository / "jobs/__main__.py"]
    return subprocess.run(
        [*command, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )


def test_executors_of_a_cluster_decode_what_one_machine_does(
    repository: Path, tmp_path: Path, master: str, spark: SparkSession
) -> None:
    capture = repository / "tests/captures/mixed.pcap.zst"
    there, here = str(tmp_path / "there"), str(tmp_path / "here")
    answer = submitted(repository, tmp_path, master, "ingest", f"--captures={capture}", f"--lake={there}")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    ran = {path.parent.parent.parent.name for path in tmp_path.glob("worker-*/app-*/*/refetch.zip")}
    assert ran == {"worker-1", "worker-2"}
    assert len(list(tmp_path.glob("python-of-*"))) == 2, "executors take their own Python, not the driver's"
    ingest(spark, Run(resolve_scenario(None), (capture,), here, NOW))
    assert lake_rows(there, SILVER) == lake_rows(here, SILVER)
