"""The log of a Delta table in a folder that this process sees, by delta-rs.

It reads a log or adds a version in milliseconds; in a Java that has only begun Delta's own classes take a tenth of a
second for each table, and look for its files by a Spark job.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Schema
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction, Transaction, create_table_with_add_actions
from pyspark.sql.types import StructType

from udfs.errors import LakeError

NS_PER_MS = 1_000_000
_PLAIN = 1, 2
"""Reader and writer version of a table that has all rows of its files, by the names that they have there, and asks
nothing of those who write (protocol, "Requirements for Readers", "Requirements for Writers")."""
_TAKEN_FOR_ANOTHER = re.compile(r"\\|%[0-9A-Fa-f]{2}")
FEW_FILES = 32
"""So many are read without statistics to pass over some of them, and Spark lists them without a job."""

Partition = tuple[str, str]
"""A column by which a table is laid out in folders, and one of its values."""


@dataclass(frozen=True)
class DataFile:
    """A Parquet file: its path below the table's folder, its bytes and rows, and its statistics as Delta's log has
    them.
    """

    path: str
    size: int
    rows: int
    stats: str


def is_there(path: str) -> bool:
    """Whether a table is in this folder."""
    return DeltaTable.is_deltatable(path)


def is_for_delta_rs(path: str) -> bool:
    """Whether the table there, or one to be made there, may be read and written here: delta-rs takes an encoded sign or
    a backslash in a path for another one, and it does not know all of Delta's features.
    """
    if _TAKEN_FOR_ANOTHER.search(path):
        return False
    if not is_there(path):
        return True
    protocol = DeltaTable(path).protocol()
    return (protocol.min_reader_version, protocol.min_writer_version) <= _PLAIN


def columns_of(path: str) -> StructType:
    """The columns of the table there."""
    return StructType.fromJson(json.loads(DeltaTable(path).schema().to_json()))


def partition_files(path: str, partition: Partition) -> tuple[str, ...] | None:
    """The files that are the partition's rows in the newest version of the table at `path`; None where they are many,
    so that Delta had better pass over some of them.
    """
    column, value = partition
    files = pa.table(DeltaTable(path).get_add_actions(flatten=True))
    own = files.filter(pc.field(f"partition.{column}") == value) if len(files) else files
    return None if len(own) > FEW_FILES else tuple(f"{path}/{file}" for file in sorted(map(str, own["path"])))


def replace_partition(path: str, schema: StructType, partition: Partition, files: Iterable[DataFile]) -> None:
    """Put the files in the place of those of the table at `path` that have the partition's value in its column.

    As a write with `replaceWhere` does: a table that is not there is made, with this schema. The files' columns have to
    be the table's own, which is not checked here. Raises LakeError where another process has replaced the same
    partition meanwhile.
    """
    actions = [_added(file, partition) for file in files]
    try:
        if is_there(path):
            _replace(DeltaTable(path), schema, partition, actions)
        else:
            create_table_with_add_actions(path, _schema(schema), actions, partition_by=[partition[0]])
    except (CommitFailedError, DeltaError) as fault:
        raise LakeError(
            f"{path}: could not be changed. Where another refetch writes the same rows at the same time, run the "
            f"command again when that has ended. delta-rs says: {fault}"
        ) from fault


def _replace(table: DeltaTable, schema: StructType, partition: Partition, actions: Sequence[AddAction]) -> None:
    column, value = partition
    # Two who write a partition's first rows remove nothing that the other has read. So each tells of a transaction of
    # the same name, of which Delta lets one through.
    own = Transaction(f"{column}={value}", table.version() + 1, time.time_ns() // NS_PER_MS)
    table.create_write_transaction(
        list(actions),
        mode="overwrite",
        schema=_schema(schema),
        partition_by=[column],
        partition_filters=[(column, "=", value)],
        commit_properties=CommitProperties(app_transactions=[own]),
    )


def _schema(schema: StructType) -> Schema:
    return Schema.from_json(schema.json())


def _added(file: DataFile, partition: Partition) -> AddAction:
    column, value = partition
    return AddAction(file.path, file.size, {column: value}, time.time_ns() // NS_PER_MS, True, file.stats)
