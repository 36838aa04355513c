"""If a lake cannot be reached, the job says so, and what to do, before it does any work."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.lake.lake_storage import check_catalog_lasts, check_reachable
from udfs.errors import LakeError


def told_of(spark: SparkSession, lake: str) -> str:
    with pytest.raises(LakeError) as told:
        check_reachable(spark, lake)
    return str(told.value)


def test_hadoops_name_of_s3_is_told(spark: SparkSession) -> None:
    told = told_of(spark, "s3://bucket/lake")
    assert (
        told == "s3://bucket/lake: Spark has no file system s3; Hadoop's is called s3a: name the lake s3a://bucket/lake"
    )


def test_the_jars_for_s3_are_named_in_the_version_of_sparks_hadoop(spark: SparkSession) -> None:
    jars = [Path(jar).name for jar in spark.sparkContext._jvm.System.getProperty("java.class.path").split(":")]  # type: ignore[union-attr]
    (hadoop,) = filter(None, (re.fullmatch(r"hadoop-client-api-(.*)\.jar", jar) for jar in jars))
    assert f"spark.jars.packages=org.apache.hadoop:hadoop-aws:{hadoop[1]} " in told_of(spark, "s3a://b/lake")


def test_a_store_that_does_not_answer_is_told_with_what_to_check(spark: SparkSession) -> None:
    told = told_of(spark, "hdfs://127.0.0.1:1/lake")
    assert told.startswith("hdfs://127.0.0.1:1/lake: cannot be reached (ConnectException: Connection refused")
    assert "Check the name, the credentials" in told


def test_a_lake_on_this_machine_need_not_be_there_yet(spark: SparkSession, tmp_path: Path) -> None:
    check_reachable(spark, str(tmp_path / "lake"))
    check_reachable(spark, f"file://{tmp_path}/lake")


def test_a_schema_need_not_be_there_yet_but_its_catalog_has_to_be(spark: SparkSession) -> None:
    check_reachable(spark, "catalog:spark_catalog.not_there_yet")
    check_reachable(spark, "catalog:default")
    told = told_of(spark, "catalog:main.refetch")
    assert told.startswith("catalog:main.refetch: Spark cannot look into this schema (")
    assert "lake.md says what Unity and Hive need" in told


def test_a_catalog_in_the_memory_of_a_spark_that_ends_is_refused(spark: SparkSession) -> None:
    for lake in ("catalog:spark_catalog.refetch", "catalog:refetch"):
        with pytest.raises(LakeError, match=r"would forget them .*--conf=spark\.sql\.catalogImplementation=hive"):
            check_catalog_lasts(spark, lake)
    for lake in ("catalog:main.refetch", "/lake"):
        check_catalog_lasts(spark, lake)
