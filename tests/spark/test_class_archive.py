"""Java writes the classes that a start of Spark loads into an archive, and takes them from it at the next start."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pyspark

SESSION = """
from jobs.session.spark import spark_session
from jobs.session.spark_properties import Workload
print(spark_session("local[1]", "archived", work=Workload(captured_bytes=1)).version)
"""
MOST_SECONDS = 600
"""Java writes the archive with the lowest priority, so other work on the machine may delay it for long."""


def started(repository: Path, cache: Path, log: Path) -> None:
    """Start Spark with this cache. Java's log says where each class came from."""
    environment = os.environ | {
        "PYTHONPATH": str(repository), "XDG_CACHE_HOME": str(cache), "TMPDIR": str(log.parent),
        "JAVA_TOOL_OPTIONS": f"-Xlog:class+load:file={log}",
    }  # fmt: skip
    command = [sys.executable, "-c", SESSION]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert answer.stdout == f"{pyspark.__version__}\n", answer.stderr


def test_the_next_start_takes_classes_from_the_archive(repository: Path, tmp_path: Path) -> None:
    """The folder may have a space in its name."""
    cache = tmp_path / "the cache"
    cache.mkdir()
    started(repository, cache, tmp_path / "first.log")
    until = time.monotonic() + MOST_SECONDS
    while not any(part.read_bytes()[:4].strip(b"\0") for part in cache.glob("refetch/classes-*")):
        assert time.monotonic() < until, "Java wrote no archive"
        time.sleep(0.2)
    started(repository, cache, tmp_path / "second.log")
    assert len(list(cache.glob("refetch/classes-*.jsa"))) == 1
    context = "org.apache.spark.SparkContext source: "
    first, second = (
        line.partition(context)[2]
        for name in ("first.log", "second.log")
        for line in (tmp_path / name).read_text().splitlines()
        if context in line
    )
    assert "spark-core" in first
    assert second == "shared objects file (top)"
