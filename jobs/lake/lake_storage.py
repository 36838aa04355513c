"""The file system of a lake: whether it can be reached, how much is there, and who writes files there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from py4j.java_gateway import JavaObject, JVMView
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from jobs.paths import SHOWN_DOCS
from jobs.places import CATALOG, is_folder, is_in_catalog
from jobs.session.driver import driver_of
from jobs.terminal.failures import root_cause
from udfs.capture.locations import TO_CHECK, is_uri
from udfs.errors import LakeError

_ONE_LOOK: Mapping[str, str] = {
    "fs.s3a.attempts.maximum": "1",
    "fs.s3a.retry.limit": "1",
    "fs.s3a.connection.establish.timeout": "5s",
    "fs.s3a.connection.timeout": "10s",
    "ipc.client.connect.max.retries": "1",
}
"""Properties with which Hadoop gives up soon if nobody answers: otherwise its S3 client tries for minutes, and its HDFS
client for seconds. They apply only to the first look; later work keeps Hadoop's own timeouts.
"""
_NO_SCHEMA = "SCHEMA_NOT_FOUND"
_METASTORE, _IN_MEMORY = "spark.sql.catalogImplementation", "in-memory"
_OWN_CATALOG = "spark_catalog"
"""The catalog that Spark itself keeps in its metastore."""
_KEPT_BY, _KEPT_BY_DELTA = f"spark.sql.catalog.{_OWN_CATALOG}", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
"""The property that names the class of that catalog, and delta-spark's class. Other catalogs, such as Unity's, let
nobody read files by their paths."""
_AS_A_PATTERN = str.maketrans({sign: f"\\{sign}" for sign in "\\[]{}*?"})


def check_reachable(spark: SparkSession, lake: str) -> None:
    """Look once at a lake that is a URI or in a catalog, before any work is done for it. Raises LakeError, which says
    what the obstacle is: jars, bucket, credentials, network, an unknown catalog.
    """
    if is_in_catalog(lake):
        _check_catalog(spark, lake)
        return
    jvm = jvm_of_delta_spark(spark)
    if jvm is None or not is_uri(lake):
        return
    conf = jvm.org.apache.hadoop.conf.Configuration(spark.sparkContext._jsc.hadoopConfiguration())
    for key, value in _ONE_LOOK.items():
        conf.set(key, value)
    try:
        path = jvm.org.apache.hadoop.fs.Path(lake)
        system = jvm.org.apache.hadoop.fs.FileSystem.newInstance(path.toUri(), conf)
        try:
            system.exists(path)
        finally:
            system.close()
    except (Py4JError, PySparkException) as fault:
        cause, version = root_cause(str(fault)), jvm.org.apache.hadoop.util.VersionInfo.getVersion()
        raise LakeError(f"{lake}: {_obstacle_text(lake, cause, version)}") from fault


def _check_catalog(spark: SparkSession, lake: str) -> None:
    """Raises LakeError if Spark does not know the catalog, or may not look into it. A missing schema is no error: it
    is made when the first table is written.
    """
    try:
        spark.sql(f"SHOW TABLES IN {quoted_name(lake.removeprefix(CATALOG))}").take(1)
    except PySparkException as fault:
        if fault.getCondition() == _NO_SCHEMA:
            return
        raise LakeError(
            f"{lake}: Spark cannot look into this schema ({root_cause(str(fault))}). Check the name, CATALOG.SCHEMA, "
            f"and your rights; {SHOWN_DOCS}/lake.md says what Unity and Hive need"
        ) from fault


def check_catalog_lasts(spark: SparkSession, lake: str) -> None:
    """Raises LakeError if tables in a catalog would be lost when this Spark ends, since it keeps the catalog in
    memory.

    spark: a session that was started for one command.
    """
    if not is_in_catalog(lake) or spark.conf.get(_METASTORE, _IN_MEMORY) != _IN_MEMORY:
        return
    if _is_in_own_catalog(spark, lake.removeprefix(CATALOG)):
        raise LakeError(
            f"{lake}: Spark keeps the names of tables in memory, and would forget them when this command ends. Have it "
            f"keep them in a metastore, with --conf={_METASTORE}=hive and where that is ({SHOWN_DOCS}/lake.md)"
        )


def is_of_spark_catalog(spark: SparkSession, table: str) -> bool:
    """Whether a table is in Spark's own catalog, so that Spark can also read its files by their paths.

    table: its name, with its schema and, unless that is the session's current one, its catalog.
    """
    return _is_in_own_catalog(spark, table.rpartition(".")[0]) and spark.conf.get(_KEPT_BY, "") == _KEPT_BY_DELTA


def _is_in_own_catalog(spark: SparkSession, schema: str) -> bool:
    return (schema.rpartition(".")[0] or spark.catalog.currentCatalog()) == _OWN_CATALOG


def quoted_name(name: str) -> str:
    """A name of several parts, quoted for SQL.

    >>> quoted_name("main.refetch")
    '`main`.`refetch`'
    """
    return ".".join(f"`{part}`" for part in name.split("."))


def largest_part(lake: str) -> int:
    """The bytes of the largest capture set or run of a lake, over all tables; 0 for a lake that is not a folder."""
    if not is_folder(lake):
        return 0
    sizes: Counter[str] = Counter()
    for file in Path(lake).glob("*/*/*=*/*.parquet"):
        with suppress(FileNotFoundError):  # another command may remove it
            sizes[file.parent.name] += file.stat().st_size
    return max(sizes.values(), default=0)


def _obstacle_text(lake: str, cause: str, version: str) -> str:
    """The message that says what the obstacle is, and what to do. version: the version of Spark's Hadoop."""
    scheme, _, rest = lake.partition(":")
    if scheme in ("s3", "s3n") and "No FileSystem for scheme" in cause:
        return f"Spark has no file system {scheme}; Hadoop's is called s3a: name the lake s3a:{rest}"
    if scheme == "s3a" and "ClassNotFoundException" in cause:
        package = f"org.apache.hadoop:hadoop-aws:{version}"
        return (
            f"Spark lacks the jars for S3: give it spark.jars.packages={package} with --conf ({SHOWN_DOCS}/cluster.md)"
        )
    return f"cannot be reached ({cause}). {TO_CHECK}. {SHOWN_DOCS}/cluster.md has which jars object stores need"


def workers_folder(spark: SparkSession, lake: str) -> str | None:
    """The lake's folder if this process and the workers can write there like to any local folder; else None.

    Also None if Delta's classes are not those of delta-spark (Databricks), and if tables have names: Spark has to
    write there.
    """
    jvm = None if is_in_catalog(lake) else jvm_of_delta_spark(spark)
    if jvm is None:
        return None
    path = jvm.org.apache.hadoop.fs.Path(lake)
    return str(path.toUri().getPath()) if _hadoop_file_system(spark, path).getUri().getScheme() == "file" else None


def literal_pattern(path: str) -> str:
    """The pattern that matches only this path. Spark reads paths as patterns.

    >>> literal_pattern("/lake [1]/part.parquet")
    '/lake \\\\[1\\\\]/part.parquet'
    """
    return path.translate(_AS_A_PATTERN)


def _hadoop_file_system(spark: SparkSession, path: JavaObject) -> JavaObject:
    return path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())


def jvm_of_delta_spark(spark: SparkSession) -> JVMView | None:
    """Spark's Java where Delta's classes are those of delta-spark; None on Databricks, through Spark Connect."""
    jvm = driver_of(spark).java
    is_there = jvm is not None and jvm.org.apache.spark.util.Utils.classIsLoadable(
        "org.apache.spark.sql.delta.DeltaLog"
    )
    return jvm if is_there else None
