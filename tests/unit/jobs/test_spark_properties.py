"""The properties of a Spark that refetch starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.kernels import BRIEF_BYTES, BRIEF_CONF, QUICK_JAVA, QUICK_JAVA_BYTES, suited_conf
from jobs.paths import CONF
from jobs.spark import DELTA_JARS, jar_properties, properties, started_properties
from udfs.errors import SetupError


def test_a_properties_file_is_read_as_spark_reads_it(tmp_path: Path) -> None:
    (tmp_path / "x.conf").write_text("# why\nspark.a  1\n\nspark.b  -Dx=y -Dz=1  \n")
    assert properties(tmp_path / "x.conf") == {"spark.a": "1", "spark.b": "-Dx=y -Dz=1"}


def test_every_property_says_why() -> None:
    for name in ("spark-defaults.conf", "spark-local.conf"):
        blocks = (CONF / name).read_text().split("\n\n")
        assert all(block.lstrip().startswith("# ") for block in blocks), name


def test_arrow_udfs_never_read_a_scans_columns() -> None:
    """SPARK-58241: Spark 4.2.0 crashes or hangs there."""
    found = started_properties("local[2]", {}, None)
    assert found["spark.sql.execution.arrow.pythonUDF.columnarInput.enabled"] == "false"
    assert found["spark.sql.execution.arrow.pyspark.validateSchema.enabled"] == "true"


def test_the_callers_properties_go_before_all_others() -> None:
    found = started_properties("local[2]", {"spark.driver.memory": "9g", "spark.sql.session.timeZone": "CET"}, None)
    assert (found["spark.driver.memory"], found["spark.sql.session.timeZone"]) == ("9g", "CET")


def test_java_options_of_the_caller_come_beside_the_quiet_log() -> None:
    found = started_properties("local[2]", {"spark.driver.extraJavaOptions": "-Xss4m"}, None)
    options = found["spark.driver.extraJavaOptions"].split()
    assert options == [f"-Dlog4j2.configurationFile={(CONF / 'log4j2.properties').as_uri()}", "-Xss4m"]


def test_what_suits_one_machine_is_not_asked_of_a_cluster() -> None:
    assert "spark.driver.host" in started_properties("local[2]", {}, None)
    assert "spark.driver.host" not in started_properties("spark://master:7077", {}, None)


def test_jars_come_from_maven_central_unless_a_folder_is_given(tmp_path: Path) -> None:
    for name in DELTA_JARS:
        (tmp_path / name).touch()
    online, offline = started_properties("local", {}, None), started_properties("local", {}, str(tmp_path))
    assert online["spark.jars.packages"] == "io.delta:delta-spark_4.2_2.13:4.4.0"
    assert "spark.jars" not in online
    assert "spark.jars.packages" not in offline
    assert offline["spark.jars"] == ",".join((tmp_path / name).as_uri() for name in DELTA_JARS)


def test_a_folder_that_lacks_a_jar_is_told(tmp_path: Path) -> None:
    (tmp_path / DELTA_JARS[0]).touch()
    with pytest.raises(SetupError, match=r"there is no delta-storage-4\.4\.0\.jar in it"):
        jar_properties(str(tmp_path))


@pytest.mark.parametrize(
    ("size", "suited"),
    [
        (1, QUICK_JAVA | BRIEF_CONF),
        (BRIEF_BYTES, QUICK_JAVA),
        (QUICK_JAVA_BYTES, {}),
        pytest.param(0, {}, id="no captures, whose lake may be large"),
    ],
)
def test_small_captures_have_a_spark_that_starts_fast(size: int, suited: dict[str, str]) -> None:
    assert suited_conf(size) == suited
