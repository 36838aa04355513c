"""The Spark session: what runs in it, and the ways to get one."""

from __future__ import annotations

import gc
import io
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import SparkSession

from jobs.paths import CONF
from jobs.ready_session import begin_session
from jobs.run import Run
from jobs.scenarios.scenario_file import resolve_scenario
from jobs.session.java import java_command
from jobs.session.spark import set_sql_properties, spark_log, spark_session
from jobs.session.spark_properties import (
    EVERYWHERE,
    IN_ANY_SESSION,
    JAVA_OPTIONS,
    QUICK_JAVA,
    SHUFFLE_PARTITIONS,
    SMALL,
    read_properties,
)
from jobs.terminal.failures import ReadableSparkFailures
from jobs.terminal.progress import stage
from tests.class_archive import option_to_read
from udfs.errors import CaptureError, SparkError

SUBMITTED = """\
import sys
sys.path.insert(0, {repository!r})
from jobs.session.spark import spark_session
from jobs.session.spark_properties import Workload

def known(batches):
    import udfs.errors
    yield from batches

spark = spark_session(None, "submitted", {{"spark.sql.ansi.enabled": "false"}}, work=Workload(captured_bytes=1))
numbers = spark.range(7)
numbers.mapInArrow(known, numbers.schema).write.format("delta").save({table!r})
rows = spark.read.format("delta").load({table!r}).count()
print("rows", rows, spark.sparkContext.master, *map(spark.conf.get, {asked!r}))
"""


OTHERWISE = {
    "spark.sql.session.timeZone": "CET",
    "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled": "true",
    "spark.sql.execution.arrow.pyspark.validateSchema.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "7",
    "spark.sql.adaptive.skewJoin.enabled": "true",
    "spark.sql.catalog.spark_catalog": "their.own.Catalog",
}
"""Properties that a session of somebody else may have."""


def test_a_delta_table_is_written_and_read(spark: SparkSession, tmp_path: Path) -> None:
    table = str(tmp_path / "a table")
    spark.range(5).write.format("delta").save(table)
    assert spark.read.format("delta").load(table).count() == 5


def test_a_worker_does_not_look_through_the_kernels_for_garbage(spark: SparkSession) -> None:
    """It collects garbage after each task, which would take a tenth of a second with all that is loaded."""

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.record_batch({"apart": [gc.get_freeze_count()], "looked_through": [len(gc.get_objects())]})

    counted = spark.range(1, numPartitions=1).mapInArrow(count, "apart long, looked_through long").first()
    assert counted is not None
    assert counted.apart > 10 * counted.looked_through


def test_a_worker_imports_the_installed_pyspark(spark: SparkSession) -> None:
    """It does not import the archive, which Spark puts first and Python would compile again in each process."""
    installed = pyspark.__file__

    def told(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.record_batch({"file": [sys.modules["pyspark"].__file__]})

    row = spark.range(1, numPartitions=1).mapInArrow(told, "file string").first()
    assert row is not None
    assert row.file == installed


def test_only_deltas_two_jars_are_added(spark: SparkSession) -> None:
    added = spark.sparkContext._jsc.sc().listJars().mkString("\n").splitlines()
    assert sorted(jar.rpartition("delta-")[2] for jar in added) == ["spark_4.2_2.13-4.4.0.jar", "storage-4.4.0.jar"]


def test_workers_import_the_clones_packages(spark: SparkSession) -> None:
    def known(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import udfs.errors

        assert udfs.errors.__file__
        yield from batches

    assert spark.range(3).mapInArrow(known, "id long").count() == 3


def test_a_session_that_is_there_is_taken(spark: SparkSession) -> None:
    assert spark_session(None, "another") is spark


def test_a_small_capture_changes_nothing_of_a_session_that_is_there(spark: SparkSession, tmp_path: Path) -> None:
    capture = tmp_path / "small.pcap"
    capture.write_bytes(b"a few bytes")
    run = Run(resolve_scenario(None), (capture,), str(tmp_path), datetime(2026, 1, 31, tzinfo=UTC))
    before = spark.conf.get(SHUFFLE_PARTITIONS)
    assert before != read_properties(CONF / SMALL)[SHUFFLE_PARTITIONS]
    assert begin_session(run) is spark
    assert spark.conf.get(SHUFFLE_PARTITIONS) == before


def test_a_session_that_is_there_gets_what_results_rest_on_and_nothing_else(spark: SparkSession) -> None:
    session = spark.newSession()
    for key, value in OTHERWISE.items():
        session.conf.set(key, value)
    set_sql_properties(session)
    told = {key: session.conf.get(key) for key in OTHERWISE}
    everywhere = read_properties(CONF / EVERYWHERE)
    assert told == OTHERWISE | {key: everywhere[key] for key in IN_ANY_SESSION}


def test_a_workers_fault_is_one_line_with_the_log(spark: SparkSession) -> None:
    def refuse(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            raise CaptureError("mixed.pcap: cut at byte 7")
        yield from ()

    told = f"Spark failed: CaptureError: mixed.pcap: cut at byte 7. Spark's log: {spark_log()}"
    with pytest.raises(SparkError) as raised, ReadableSparkFailures():
        spark.range(1).mapInArrow(refuse, "id long").count()
    assert str(raised.value) == told
    assert "cut at byte 7" in spark_log().read_text()


def test_a_column_of_another_type_is_an_error(spark: SparkSession) -> None:
    def narrow(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_arrays([batch.column(0).cast(pa.int32())], ["id"])

    with pytest.raises(SparkError, match="ARROW_TYPE_MISMATCH"), ReadableSparkFailures():
        spark.range(1).mapInArrow(narrow, "id long").count()


def test_a_stage_counts_the_tasks_of_its_own_jobs(spark: SparkSession) -> None:
    spark.range(0, 10, 1, 3).count()
    out = io.StringIO()
    with stage("decode", spark, out):
        spark.range(0, 10, 1, 5).foreach(lambda row: None)
    first, last = out.getvalue().splitlines()
    assert first == "refetch: decode ..."
    assert last.startswith("refetch: decode  5 tasks  ")
    assert spark.sparkContext.getLocalProperty("spark.jobGroup.id") is None


def test_a_stage_that_fails_claims_no_end(spark: SparkSession) -> None:
    out = io.StringIO()
    with pytest.raises(CaptureError), stage("decode", spark, out):
        raise CaptureError("cut")
    assert out.getvalue() == "refetch: decode ...\n"


def spark_submit(repository: Path, cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    home = Path(pyspark.__file__).parent
    command = [str(home / "bin/spark-submit"), "--master", "local[1]"]
    command += ["--properties-file", str(repository / "conf/spark-defaults.conf")]
    command += ["--driver-java-options", f"{option_to_read()} {read_properties(CONF / QUICK_JAVA)[JAVA_OPTIONS]}"]
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "SPARK_HOME")}
    environment |= {"PYSPARK_PYTHON": sys.executable, "SPARK_HOME": str(home)}
    return subprocess.run(
        [*command, *arguments], cwd=cwd, env=environment, capture_output=True, text=True, timeout=300, check=False
    )


def test_a_plain_spark_submit_gives_the_same_session(repository: Path, tmp_path: Path) -> None:
    """Properties given to spark-submit override those of refetch, and refetch's own --conf overrides both."""
    given = ["spark.sql.session.timeZone=CET", "spark.sql.adaptive.enabled=true", "spark.sql.ansi.enabled=true"]
    asked = [pair.partition("=")[0] for pair in given] + ["spark.sql.codegen.wholeStage", "spark.ui.enabled"]
    script = tmp_path / "submitted.py"
    script.write_text(SUBMITTED.format(repository=str(repository), table=str(tmp_path / "table"), asked=asked))
    answer = spark_submit(repository, tmp_path, *(part for pair in given for part in ("--conf", pair)), str(script))
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.splitlines()[-1] == "rows 7 local[1] CET true false false false"
    # With Spark's default there would be some hundred such lines. Two or three come before a session can set the level.
    assert answer.stderr.count(" INFO ") < 10, answer.stderr


def test_a_plain_spark_submit_takes_the_same_arguments_and_gives_the_same_exit_code(
    repository: Path, tmp_path: Path
) -> None:
    answer = spark_submit(
        repository, tmp_path, str(repository / "jobs/__main__.py"), "replay", "--set=fetch.max.byte=1"
    )
    assert answer.returncode == 2, answer.stderr
    # spark-submit writes all output of its Python process to its own stdout.
    assert "refetch: arguments: 1 fault\n  --set: unknown key `fetch.max.byte`" in answer.stdout


def test_a_plain_spark_submit_without_delta_is_told_how_to_bring_it(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "others.conf").write_text("spark.ui.enabled false\n")
    capture = str(repository / "tests/captures/starve.pcap.zst")
    answer = spark_submit(
        repository, tmp_path, "--properties-file", str(tmp_path / "others.conf"),
        str(repository / "jobs/__main__.py"), "ingest", f"--captures={capture}", "--lake=lake",
    )  # fmt: skip
    assert answer.returncode == 1, answer.stderr
    assert "refetch: Delta's jars are not on Spark's class path. Give spark-submit --properties-file" in answer.stdout


def test_jars_that_cannot_be_downloaded_are_told(repository: Path, tmp_path: Path) -> None:
    """No Maven repository answers, and neither Ivy nor Maven has a copy, since their caches are in an empty home."""
    code = "from jobs.session.spark import spark_session; spark_session('local[1]', 'offline')"
    environment = os.environ | {
        "PYTHONPATH": str(repository),
        "DEFAULT_ARTIFACT_REPOSITORY": "http://127.0.0.1:9/",
        "JAVA_TOOL_OPTIONS": f"-Duser.home={tmp_path}",
        "TMPDIR": str(tmp_path),
    }
    environment.pop("REFETCH_JARS", None)
    answer = subprocess.run(
        [sys.executable, "-P", "-c", code], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert "SetupError: Delta's two jars could not be downloaded from Maven Central" in answer.stderr
    assert "set REFETCH_JARS to it. Spark's log: " in answer.stderr


@pytest.mark.skipif("REFETCH_JARS" in os.environ, reason="REFETCH_JARS is for machines that download nothing")
def test_two_commands_that_start_at_once_on_a_new_machine_both_have_their_jars(
    repository: Path, tmp_path: Path
) -> None:
    code = "from jobs.session.spark import spark_session; print(spark_session('local[1]', 'first').version)"
    environment = os.environ | {
        "PYTHONPATH": str(repository),
        "JAVA_TOOL_OPTIONS": f"-Duser.home={tmp_path}",  # Ivy's cache is there
        "TMPDIR": str(tmp_path),
    }
    environment.pop("REFETCH_JARS", None)
    started = [
        subprocess.Popen(
            [sys.executable, "-P", "-c", code],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    assert [of.communicate(timeout=300)[0] for of in started] == ["4.2.0\n"] * 2


def test_a_java_with_one_compiler_has_as_much_room_for_code_as_one_with_two() -> None:
    def room(*options: str) -> int:
        command = [java_command(), *options, "-XX:+PrintFlagsFinal", "-version"]
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        (line,) = [line for line in told.splitlines() if " ReservedCodeCacheSize " in line]
        return int(line.split()[3])

    assert room(*read_properties(CONF / QUICK_JAVA)[JAVA_OPTIONS].split()) >= room("-XX:+UseSerialGC")
