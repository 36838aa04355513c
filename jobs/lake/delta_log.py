"""Which files hold a partition's rows, found with Delta's own classes: for lakes that only Spark reaches, by paths or
by names of its own catalog.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

from py4j.java_gateway import JavaObject, JVMView
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.classic.dataframe import DataFrame

from jobs.lake.lake_storage import is_of_spark_catalog, jvm_of_delta_spark, quoted_name
from jobs.lake.local_log import FEW_FILES, Partition
from jobs.lake.table_address import TableAddress

K = TypeVar("K")
V = TypeVar("V")
_PLAIN_READER = 1
"""Reader version of a table whose rows are all rows of its files, with the column names of the files (Delta's
protocol)."""
_MOST_KNOWN = 1000


class PartitionFiles(NamedTuple):
    """The files with a partition's rows.

    folder: the table's folder, or its URI. first: the files; only the first ones if there are more than FEW_FILES.
    """

    folder: str
    first: tuple[str, ...]

    @property
    def few(self) -> tuple[str, ...] | None:
        """The files; None if they are so many that Delta reads them faster."""
        return self.first if len(self.first) <= FEW_FILES else None


_Version = tuple[str, str, int]
"""(folder, id, version) of a table. A copy of a table has the same id in another folder. A table that replaces another
one has another id in the same folder.
"""
_known: dict[tuple[_Version, Partition], PartitionFiles] = {}
"""The files of partitions that were looked up. A version's files never change."""
_of_each: dict[_Version, dict[str, str]] = {}
"""A file of each partition, of versions that were looked up."""
_columns: dict[str, tuple[str, ...]] = {}
"""The columns of files that were looked up. A file never changes."""


def partition_files(spark: SparkSession, address: TableAddress, partition: Partition) -> PartitionFiles | None:
    """The files with the partition's rows in the newest version of the table. None if these files alone do not decide
    which rows the table has, or if a catalog that is not Spark's keeps the table.

    In a query, Delta looks for files with a Spark job each time. This function does so once for each version.
    """
    jvm, snapshot = jvm_of_delta_spark(spark), _plain_snapshot(spark, address)
    if jvm is None or snapshot is None:
        return None
    folder = _folder_of(snapshot)
    version = (_version_of(snapshot), partition)
    known = _known.get(version)
    if known is None:
        files = snapshot.filesForScan(_partition_filter(spark, jvm, partition), False).files()
        paths = [files.apply(place).path() for place in range(min(files.size(), FEW_FILES + 1))]
        known = _known[version] = PartitionFiles(folder, tuple(_absolute(jvm, folder, path) for path in paths))
        _keep_few(_known)
    return known


def a_file_of_each(spark: SparkSession, address: TableAddress, column: str) -> dict[str, str] | None:
    """One of the files with the rows of each value of the column by which the table is partitioned, by value; None as
    for `partition_files`. One Spark job looks for all of them, once for each version.
    """
    jvm, snapshot = jvm_of_delta_spark(spark), _plain_snapshot(spark, address)
    if jvm is None or snapshot is None:
        return None
    version, folder = _version_of(snapshot), _folder_of(snapshot)
    known = _of_each.get(version)
    if known is None:
        files = DataFrame(snapshot.allFiles().toDF(), spark)
        by_value = files.groupBy(F.col("partitionValues")[column]).agg(F.min("path")).collect()
        known = _of_each[version] = {value: _absolute(jvm, folder, path) for value, path in by_value}
        _keep_few(_of_each)
    return known


def columns_in_footer(spark: SparkSession, file: str) -> tuple[str, ...]:
    """The columns of a Parquet file, by its footer. file: as the functions above name it."""
    jvm, known = jvm_of_delta_spark(spark), _columns.get(file)
    if known is not None or jvm is None:
        return known or ()
    conf = spark._jsparkSession.sessionState().newHadoopConf()
    parquet = jvm.org.apache.parquet.hadoop
    reader = parquet.ParquetFileReader.open(
        parquet.util.HadoopInputFile.fromPath(jvm.org.apache.hadoop.fs.Path(file), conf)
    )
    try:
        fields = reader.getFileMetaData().getSchema().getFields()
        known = _columns[file] = tuple(str(field.getName()) for field in fields)
    finally:
        reader.close()
    _keep_few(_columns)
    return known


def _plain_snapshot(spark: SparkSession, address: TableAddress) -> JavaObject | None:
    """The newest version of a table, an object of Delta's Java. None if the files alone do not decide which rows the
    table has, or if Delta's classes or the table's files cannot be reached.
    """
    jvm = jvm_of_delta_spark(spark)
    if jvm is None or (address.path is None and not is_of_spark_catalog(spark, address.text)):
        return None
    session = spark._jsparkSession
    snapshot = jvm.org.apache.spark.sql.delta.DeltaLog.forTableWithSnapshot(session, _place_of(spark, address))._2()
    return None if snapshot.protocol().minReaderVersion() > _PLAIN_READER else snapshot


def _place_of(spark: SparkSession, address: TableAddress) -> str | JavaObject:
    """What names a table to Delta's classes: its path, or Spark's identifier for its schema and name."""
    if address.path is not None:
        return address.path
    schema_and_table = quoted_name(".".join(address.text.split(".")[-2:]))
    return spark._jsparkSession.sessionState().sqlParser().parseTableIdentifier(schema_and_table)


def _version_of(snapshot: JavaObject) -> _Version:
    return _folder_of(snapshot), snapshot.metadata().id(), snapshot.version()


def _folder_of(snapshot: JavaObject) -> str:
    """The folder of a table, or its URI."""
    return str(snapshot.deltaLog().dataPath().toString())


def _absolute(jvm: JVMView, folder: str, path: str) -> str:
    """The absolute path of a file, or its URI. path: as in the table's log."""
    return str(jvm.org.apache.spark.sql.delta.util.DeltaFileOperations.absolutePath(folder, path).toString())


def _keep_few(known: dict[K, V]) -> None:
    """Forget what was looked up first, if there is more than _MOST_KNOWN."""
    while len(known) > _MOST_KNOWN:
        known.pop(next(iter(known)), None)


def _partition_filter(spark: SparkSession, jvm: JVMView, partition: Partition) -> JavaObject:
    """A filter, an object of Spark's Java, that only the partition's rows pass."""
    column, value = partition
    condition = spark._jsparkSession.sessionState().sqlParser().parseExpression(f"{column} = '{value}'")
    return jvm.org.apache.spark.api.python.PythonUtils.toSeq([condition])
