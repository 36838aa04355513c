"""Has a Spark that ends at once write the archive of Java's classes, with which every later start of Java is shorter.

    python -m tests.class_archive

The first session that starts on a machine is to write the archive, and it does when it ends. Of a run of all tests that
would be the session that all tests share: until the run's end, every command would start without an archive.
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
    """Java's option for a Spark that a test starts by itself: it takes classes from the archive, which is written first
    if it is not there. Empty where that cannot be.
    """
    subprocess.run([sys.executable, "-m", "tests.class_archive"], cwd=ROOT, check=True)
    return option()


def option() -> str:
    """Java's option for Spark's own jars."""
    return archive_option(cache_dir(), Path(pyspark.__file__).parent, check_java(), "")


def write_archive() -> None:
    """Write the archive, unless it is there or another process is writing it; returns when it is whole."""
    writes = option()
    if WRITES_AN_ARCHIVE not in writes:
        return
    options = read_properties(CONF / QUICK_JAVA)[JAVA_OPTIONS]
    spark = spark_session("local[1]", "archive", {JAVA_OPTIONS: f"{writes} {options}"}, Workload(captured_bytes=1))
    with tempfile.TemporaryDirectory() as folder:
        # Classes of queries, of workers and of Delta, which most commands load.
        rows = spark.range(3).mapInArrow(lambda batches: batches, "id bigint")
        rows.write.format("delta").mode("append").save(folder)
        spark.read.format("delta").load(folder).groupBy("id").count().collect()
    gateway: Any = spark.sparkContext._gateway
    spark.stop()
    gateway.proc.stdin.close()  # Java ends with its input
    gateway.proc.wait()


if __name__ == "__main__":
    write_archive()
