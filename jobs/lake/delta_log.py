"""Which files hold a partition's rows, by Delta's own classes: of lakes on file systems that Spark alone reaches."""

from __future__ import annotations

from py4j.java_gateway import JavaObject, JVMView
from pyspark.sql import SparkSession

from jobs.lake.lake_storage import jvm_of_delta_spark
from jobs.lake.local_log import FEW_FILES, Partition
from jobs.lake.table_address import TableAddress

_PLAIN_READER = 1
"""Reader version of a table that has all rows of its files, and by the names that they have there (protocol)."""
_MOST_KNOWN = 1000

_Version = tuple[str, str, int, Partition]
"""(path, id, version, partition) of a table. A copy has the same id at another path, and a table that is made in the
place of another one has another id at the same path.
"""
_known: dict[_Version, tuple[str, ...] | None] = {}
"""The files of partitions that were looked up; None where Delta has to read them. A version's files never change."""


def partition_files(spark: SparkSession, address: TableAddress, partition: Partition) -> tuple[str, ...] | None:
    """The files that are the partition's rows in the newest version of the table; None where Delta has to read them,
    since they are many, do not alone decide which rows the table has, or are a catalog's own business.

    Delta looks for files by a Spark job in every query; here it does once a version.
    """
    jvm, path = jvm_of_delta_spark(spark), address.path
    if jvm is None or path is None:
        return None
    snapshot = jvm.org.apache.spark.sql.delta.DeltaLog.forTableWithSnapshot(spark._jsparkSession, path)._2()
    if snapshot.protocol().minReaderVersion() > _PLAIN_READER:
        return None
    version = (path, snapshot.metadata().id(), snapshot.version(), partition)
    if version not in _known:
        files = snapshot.filesForScan(_partition_filter(spark, jvm, partition), False).files()
        absolute = jvm.org.apache.spark.sql.delta.util.DeltaFileOperations.absolutePath
        paths = [absolute(path, files.apply(place).path()) for place in range(min(files.size(), FEW_FILES + 1))]
        _known[version] = tuple(file.toString() for file in paths) if len(paths) <= FEW_FILES else None
        while len(_known) > _MOST_KNOWN:
            _known.pop(next(iter(_known)), None)
    return _known.get(version)


def _partition_filter(spark: SparkSession, jvm: JVMView, partition: Partition) -> JavaObject:
    """A filter, in Spark's Java, that lets through the partition's rows alone."""
    column, value = partition
    condition = spark._jsparkSession.sessionState().sqlParser().parseExpression(f"{column} = '{value}'")
    return jvm.org.apache.spark.api.python.PythonUtils.toSeq([condition])
