"""The properties of a Spark that refetch starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.lake.lake_storage import largest_part
from jobs.paths import CONF
from jobs.session.spark_properties import (
    DELTA_JARS,
    EVERYWHERE,
    IN_ANY_SESSION,
    JAVA_OPTIONS,
    ONE_MACHINE,
    QUICK_JAVA,
    QUICK_JAVA_BYTES,
    QUICK_JAVA_TABLES,
    QUICK_REPLAY_BYTES,
    QUICK_REPLAY_TABLES,
    SHUFFLE_PARTITIONS,
    SMALL,
    SMALL_BYTES,
    SMALL_TABLES,
    UNKNOWN_WORKLOAD,
    Workload,
    is_one_machine,
    jar_properties,
    own_properties,
    properties_to_start,
    read_properties,
)
from udfs.capture.compression import estimated_unpacked_bytes
from udfs.errors import SetupError

DELTA = "io.delta:delta-spark_4.2_2.13:4.4.0"


def test_a_properties_file_is_read_as_spark_reads_it(tmp_path: Path) -> None:
    (tmp_path / "x.conf").write_text("# why\nspark.a  1\n\nspark.b  -Dx=y -Dz=1  \n")
    assert read_properties(tmp_path / "x.conf") == {"spark.a": "1", "spark.b": "-Dx=y -Dz=1"}


def test_every_property_has_a_comment_that_says_why() -> None:
    for name in (EVERYWHERE, ONE_MACHINE, SMALL, QUICK_JAVA):
        blocks = (CONF / name).read_text().split("\n\n")
        assert all(block.lstrip().startswith("# ") for block in blocks), name


def test_arrow_udfs_never_read_columns_of_a_scan_directly() -> None:
    """If they do, Spark 4.2.0 crashes or hangs (SPARK-58241)."""
    found = properties_to_start("local[2]", {}, None)
    assert found["spark.sql.execution.arrow.pythonUDF.columnarInput.enabled"] == "false"
    assert found["spark.sql.execution.arrow.pyspark.validateSchema.enabled"] == "true"


def test_the_callers_properties_override_all_others() -> None:
    found = properties_to_start("local[2]", {"spark.driver.memory": "9g", "spark.sql.session.timeZone": "CET"}, None)
    assert (found["spark.driver.memory"], found["spark.sql.session.timeZone"]) == ("9g", "CET")


def test_java_options_of_the_caller_are_added_to_those_for_a_quiet_log() -> None:
    found = properties_to_start("local[2]", {"spark.driver.extraJavaOptions": "-Xss4m"}, None)
    options = found["spark.driver.extraJavaOptions"].split()
    assert options == [f"-Dlog4j2.configurationFile={(CONF / 'log4j2.properties').as_uri()}", "-Xss4m"]


def test_properties_for_one_machine_are_not_set_on_a_cluster() -> None:
    assert "spark.driver.host" in properties_to_start("local[2]", {}, None)
    assert "spark.driver.host" not in properties_to_start("spark://master:7077", {}, None)


def test_jars_come_from_maven_central_unless_a_folder_is_given(tmp_path: Path) -> None:
    for name in DELTA_JARS:
        (tmp_path / name).touch()
    online, offline = properties_to_start("local", {}, None), properties_to_start("local", {}, str(tmp_path))
    assert online["spark.jars.packages"] == DELTA
    assert "spark.jars" not in online
    assert "spark.jars.packages" not in offline
    assert offline["spark.jars"] == ",".join((tmp_path / name).as_uri() for name in DELTA_JARS)


def test_a_folder_that_lacks_a_jar_is_refused(tmp_path: Path) -> None:
    (tmp_path / DELTA_JARS[0]).touch()
    with pytest.raises(SetupError, match=r"there is no delta-storage-4\.4\.0\.jar in it"):
        jar_properties(str(tmp_path))


def test_the_callers_packages_are_added_to_deltas() -> None:
    found = properties_to_start("local", {"spark.jars.packages": f"org.apache.hadoop:hadoop-aws:3.5.0,{DELTA}"}, None)
    assert found["spark.jars.packages"] == f"{DELTA},org.apache.hadoop:hadoop-aws:3.5.0"
    assert found["spark.jars.excludes"] == read_properties(CONF / EVERYWHERE)["spark.jars.excludes"]


def test_the_callers_jars_and_packages_are_added_to_a_folders_jars(tmp_path: Path) -> None:
    for name in DELTA_JARS:
        (tmp_path / name).touch()
    given = {"spark.jars": "mine.jar", "spark.jars.packages": "org.apache.hadoop:hadoop-aws:3.5.0"}
    found = properties_to_start("local", given, str(tmp_path))
    assert [jar.rpartition("/")[2] for jar in found["spark.jars"].split(",")] == [*DELTA_JARS, "mine.jar"]
    assert found["spark.jars.packages"] == "org.apache.hadoop:hadoop-aws:3.5.0"


@pytest.mark.parametrize(
    ("work", "files"),
    [
        (Workload(1), [QUICK_JAVA, SMALL]),
        (Workload(SMALL_BYTES), [QUICK_JAVA]),
        (Workload(QUICK_JAVA_BYTES), []),
        pytest.param(UNKNOWN_WORKLOAD, [], id="a lake that may be large"),
        (Workload(1, is_replayed=True), [QUICK_JAVA, SMALL]),
        (Workload(QUICK_REPLAY_BYTES - 1, is_replayed=True), [QUICK_JAVA]),
        (Workload(QUICK_REPLAY_BYTES, is_replayed=True), []),
        (Workload(stored_bytes=1), [QUICK_JAVA, SMALL]),
        (Workload(stored_bytes=SMALL_TABLES), [QUICK_JAVA]),
        (Workload(stored_bytes=QUICK_JAVA_TABLES), []),
        (Workload(is_replayed=True, stored_bytes=QUICK_REPLAY_TABLES), []),
        pytest.param(Workload(QUICK_JAVA_BYTES, stored_bytes=1), [], id="what is read is larger than what is there"),
    ],
)
@pytest.mark.parametrize("master", ["local[2]", "yarn"])
def test_for_small_captures_and_lakes_spark_starts_fast(work: Workload, files: list[str], master: str) -> None:
    suited = {key: value for name in files for key, value in read_properties(CONF / name).items()}
    assert own_properties(master, work) == own_properties(master) | suited


def test_the_caller_can_change_the_properties_for_small_captures() -> None:
    given = {"spark.sql.adaptive.enabled": "true", JAVA_OPTIONS: "-Xss4m"}
    found = properties_to_start("local[2]", given, None, Workload(captured_bytes=1))
    assert found["spark.sql.adaptive.enabled"] == "true"
    assert found[JAVA_OPTIONS].endswith(" -Xss4m")
    assert found["spark.sql.codegen.wholeStage"] == "false"


@pytest.mark.parametrize(
    ("content", "counted"),
    [
        pytest.param(b"\xd4\xc3\xb2\xa1" + bytes(96), 100, id="pcap"),
        pytest.param(b"\x1f\x8b" + bytes(98), 1000, id="gzip"),
        pytest.param(b"\x28\xb5\x2f\xfd" + bytes(96), 1000, id="zstd"),
    ],
)
def test_a_compressed_capture_counts_as_ten_times_as_large(content: bytes, counted: int, tmp_path: Path) -> None:
    (tmp_path / "any.name").write_bytes(content)
    assert estimated_unpacked_bytes(str(tmp_path / "any.name")) == counted


@pytest.mark.parametrize(
    ("master", "tasks"), [("local", "2"), ("local[2]", "4"), ("local[16]", "32"), ("local[3,2]", "6")]
)
def test_shuffles_have_two_tasks_for_each_core_of_a_machine(master: str, tasks: str) -> None:
    assert own_properties(master)[SHUFFLE_PARTITIONS] == tasks


@pytest.mark.parametrize("master", ["yarn", "spark://master:7077", "local-cluster[2,1,1024]"])
def test_a_cluster_decides_itself_how_many_tasks_shuffles_have(master: str) -> None:
    assert not is_one_machine(master)
    assert SHUFFLE_PARTITIONS not in own_properties(master)


def test_the_defaults_include_all_that_every_session_needs() -> None:
    assert set(IN_ANY_SESSION) <= read_properties(CONF / EVERYWHERE).keys()


def test_a_lake_is_as_large_as_its_largest_capture_set_or_run(tmp_path: Path) -> None:
    for folder, size in (("silver/a/capture_id=1", 5), ("silver/b/capture_id=1", 6), ("gold/c/run_id=2", 10)):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "part.parquet").write_bytes(bytes(size))
    assert largest_part(str(tmp_path)) == 11
    assert largest_part(str(tmp_path / "not there")) == largest_part("s3://bucket/lake") == 0


def test_the_message_names_a_file_of_refetch_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=rf"^{tmp_path}: cannot be read: .+; it belongs to refetch"):
        read_properties(tmp_path)
