"""Starts a Spark that ends at once and writes the archive of Java's classes, which makes every later start of Java
faster.

    python -m tests.class_archive

The first session on a machine writes the archive when it ends. In a run of all tests that would be the session that all
tests share, so every command would start without an archive until the run's end.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyspark

from jobs.paths import CONF, ROOT
from jobs.session.class_archive import WRITES_AN_ARCHIVE, archive_option
from jobs.session.java import check_java
from jobs.session.spark import spark_session
from jobs.session.spark_properties import JAVA_OPTIONS, QUICK_JAVA, Workload, read_properties
from udfs import cache_dir


def option_to_read() -> str:
    """Java's option to use the archive, for a Spark that a test starts itself. The archive is written first if it is
    missing. Empty if it cannot be written.
    """
    subprocess.run([sys.executable, "-m", "tests.class_archive"], cwd=ROOT, check=True)
    return option()


def option() -> str:
    """Java's option for Spark's own jars."""
    return archive_option(cache_dir(), Path(pyspark.__file__).parent, check_java(), "")


def write_archive() -> None:
    """Write the archive, unless it exists or another process is writing it. Returns when it is complete."""
    writes = option()
    if WRITES_AN_ARCHIVE not in writes:
        return
    options = read_properties(CONF / QUICK_JAVA)[JAVA_OPTIONS]
    spark = spark_session("local[1]", "archive", {JAVA_OPTIONS: f"{writes} {options}"}, Workload(captured_bytes=1))
    with tempfile.TemporaryDirectory() as folder:
        # This loads the classes of queries, workers and Delta, which most commands need.
        rows = spark.range(3).mapInArrow(lambda batches: batches, "id bigint")
        rows.write.format("delta").mode("append").save(folder)
        spark.read.format("delta").load(folder).groupBy("id").count().collect()
    gateway: Any = spark.sparkContext._gateway
    spark.stop()
    gateway.proc.stdin.close()  # Java ends with its input
    gateway.proc.wait()


if __name__ == "__main__":
    write_archive()
