"""Delta's log, by Delta's own classes: which files hold a partition's rows, and files written elsewhere made its rows.

Neither takes a pass of Spark's, which for small tables takes longer than the rows do.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from py4j.java_gateway import JavaObject, JVMView
from pyspark.sql import SparkSession

from jobs.lake_storage import jvm_of_delta_spark
from udfs.errors import LakeError

NS_PER_MS = 1_000_000
_NO_VERSION = -1
"""What Delta calls the version of a table that is not there."""
_PLAIN_READER = 1
"""Reader version of a table that has all rows of its files, and by the names that they have there (protocol)."""
_FEW_FILES = 32
"""So many are read without statistics to pass over some of them, and Spark lists them without a job."""
_MOST_KNOWN = 1000

Partition = tuple[str, str]
"""A column by which a table is laid out in folders, and one of its values."""
_Version = tuple[str, str, int, Partition]
"""Where a table is, for a copy has the same id; its id, for another may be made in its place; its version."""
_known: dict[_Version, tuple[str, ...] | None] = {}
"""The files of partitions, None for more than few. What a version has does not change."""


@dataclass(frozen=True)
class DataFile:
    """A Parquet file: its path below the table's folder, its bytes, and its statistics as Delta's log has them."""

    path: str
    size: int
    stats: str


def replace_partition(
    spark: SparkSession, path: str, schema: str, partition: Partition, files: Sequence[DataFile]
) -> None:
    """Put the files in the place of those of the table at `path` that have the partition's value in its column.

    As a write with `replaceWhere` does: a table that is not there is made, with this schema (Spark's JSON); of two who
    replace the same partition at the same time the second fails. The files' columns have to be the table's own, which
    Delta does not check here.
    """
    jvm, (column, value) = spark.sparkContext._jvm, partition
    if jvm is None:
        raise LakeError(f"{path} cannot be changed through Spark Connect; use a classic Spark session")
    # The companion object of a Scala trait.
    parse = getattr(getattr(jvm, "org.apache.spark.sql.delta.actions.Action$"), "MODULE$").fromJson
    transaction = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, path).startTransaction()
    actions = [parse(_added(file, column, value)) for file in files]
    if transaction.readVersion() == _NO_VERSION:
        transaction.updateMetadata(parse(_new_table(schema, column)), False)
    else:
        before = transaction.filterFiles(_of_partition(spark, jvm, partition), False)
        actions += [before.apply(place).remove() for place in range(before.size())]
        if not actions:
            return
    version = transaction.commit(_seq(jvm, actions), _overwrite(jvm, partition))
    _remember((path, transaction.metadata().id(), version, partition), [f"{path}/{file.path}" for file in files])


def partition_files(spark: SparkSession, path: str, partition: Partition) -> tuple[str, ...] | None:
    """The files that are the partition's rows in the newest version of the table at `path`; None where Delta has to
    read them, since they are many or do not tell all.

    Delta looks for files by a Spark job in every query; here it does once in a version that was not written here.
    """
    jvm = jvm_of_delta_spark(spark)
    if jvm is None:
        return None
    snapshot = jvm.org.apache.spark.sql.delta.DeltaLog.forTableWithSnapshot(spark._jsparkSession, path)._2()
    if snapshot.protocol().minReaderVersion() > _PLAIN_READER:
        return None
    version = (path, snapshot.metadata().id(), snapshot.version(), partition)
    if version not in _known:
        found = snapshot.filesForScan(_of_partition(spark, jvm, partition), False).files()
        absolute = jvm.org.apache.spark.sql.delta.util.DeltaFileOperations.absolutePath
        paths = [absolute(path, found.apply(place).path()) for place in range(min(found.size(), _FEW_FILES + 1))]
        _remember(version, [file.toString() for file in paths])
    return _known.get(version)


def _remember(version: _Version, files: Sequence[str]) -> None:
    _known[version] = tuple(files) if len(files) <= _FEW_FILES else None
    while len(_known) > _MOST_KNOWN:
        _known.pop(next(iter(_known)), None)


def _new_table(schema: str, column: str) -> str:
    """A table as an action of Delta's log (protocol, "Change Metadata")."""
    action = {
        "id": str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema,
        "partitionColumns": [column],
        "configuration": {},
        "createdTime": time.time_ns() // NS_PER_MS,
    }
    return json.dumps({"metaData": action})


def _added(file: DataFile, column: str, value: str) -> str:
    """The file as an action of Delta's log (protocol, "Add File and Remove File")."""
    action = {
        "path": quote(file.path),
        "partitionValues": {column: value},
        "size": file.size,
        "modificationTime": time.time_ns() // NS_PER_MS,
        "dataChange": True,
        "stats": file.stats,
    }
    return json.dumps({"add": action})


def _of_partition(spark: SparkSession, jvm: JVMView, partition: Partition) -> JavaObject:
    """The partition's rows, as a filter."""
    return _seq(jvm, [spark._jsparkSession.sessionState().sqlParser().parseExpression(_condition(partition))])


def _condition(partition: Partition) -> str:
    column, value = partition
    return f"{column} = '{value}'"


def _overwrite(jvm: JVMView, partition: Partition) -> JavaObject:
    """What the table's history says was done: the same as of a write by Spark."""
    some, none = jvm.scala.Option.apply, jvm.scala.Option.empty()
    write = getattr(jvm, "org.apache.spark.sql.delta.DeltaOperations$Write")
    mode = jvm.org.apache.spark.sql.SaveMode.Overwrite
    return write(mode, some(_seq(jvm, [partition[0]])), some(_condition(partition)), none, none, none, none, none, none)


def _seq(jvm: JVMView, values: Sequence[object]) -> JavaObject:
    return jvm.org.apache.spark.api.python.PythonUtils.toSeq(values)
