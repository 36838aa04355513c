"""Makes files that are written already a Delta table's rows, by a transaction of Delta's own, without Spark's pass."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from py4j.java_gateway import JavaObject, JVMView
from pyspark.sql import SparkSession

from udfs.errors import LakeError

NS_PER_MS = 1_000_000
_NO_VERSION = -1
"""What Delta calls the version of a table that is not there."""


@dataclass(frozen=True)
class DataFile:
    """A Parquet file: its path below the table's folder, its bytes, and its statistics as Delta's log has them."""

    path: str
    size: int
    stats: str


def replace_partition(
    spark: SparkSession, path: str, schema: str, partition: tuple[str, str], files: Sequence[DataFile]
) -> None:
    """Put the files in the place of those of the table at `path` that have the partition's value in its column.

    As a write with `replaceWhere` does: a table that is not there is made, with this schema (Spark's JSON); of two who
    replace the same partition at the same time the second fails. The files' columns have to be the table's own, which
    Delta does not check here.
    """
    jvm, session, (column, value) = spark.sparkContext._jvm, spark._jsparkSession, partition
    if jvm is None:
        raise LakeError(f"{path} cannot be changed through Spark Connect; use a classic Spark session")
    # The companion object of a Scala trait.
    parse = getattr(getattr(jvm, "org.apache.spark.sql.delta.actions.Action$"), "MODULE$").fromJson
    transaction = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(session, path).startTransaction()
    condition = f"{column} = '{value}'"
    actions = [parse(_added(file, column, value)) for file in files]
    if transaction.readVersion() == _NO_VERSION:
        transaction.updateMetadata(parse(_new_table(schema, column)), False)
    else:
        parsed = session.sessionState().sqlParser().parseExpression(condition)
        before = transaction.filterFiles(_seq(jvm, [parsed]), False)
        actions += [before.apply(place).remove() for place in range(before.size())]
        if not actions:
            return
    transaction.commit(_seq(jvm, actions), _overwrite(jvm, column, condition))


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


def _overwrite(jvm: JVMView, column: str, condition: str) -> JavaObject:
    """What the table's history says was done: the same as of a write by Spark."""
    some, none = jvm.scala.Option.apply, jvm.scala.Option.empty()
    write = getattr(jvm, "org.apache.spark.sql.delta.DeltaOperations$Write")
    mode = jvm.org.apache.spark.sql.SaveMode.Overwrite
    return write(mode, some(_seq(jvm, [column])), some(condition), none, none, none, none, none, none)


def _seq(jvm: JVMView, values: Sequence[object]) -> JavaObject:
    return jvm.org.apache.spark.api.python.PythonUtils.toSeq(values)
