"""The log of a Delta table in a folder that this process sees, read and written by delta-rs.

delta-rs reads a log or adds a version in milliseconds. Delta's own classes, in a Java that has just started, need a
tenth of a second for each table, and a Spark job to look for its files.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Schema
from deltalake.exceptions import DeltaError
from deltalake.transaction import AddAction, Transaction, create_table_with_add_actions
from pyarrow.dataset import ParquetFileFormat, ParquetReadOptions, dataset, partitioning
from pyarrow.fs import LocalFileSystem
from pyspark.sql.types import StructType

from jobs.lake.table_address import NEW_TABLE
from udfs.columns.time_units import NS_PER_MS
from udfs.errors import LakeError

_PLAIN = 1, 2
"""The highest reader and writer version of tables whose files have exactly the table's rows and column names, and that
ask nothing else of a writer (Delta's protocol, "Requirements for Readers", "Requirements for Writers")."""
_NOT_TAKEN_AS_IT_IS = re.compile(r"[\x00-\x1f\x7f\\]|%[0-9A-Fa-f]{2}")
"""What a path must not contain: delta-rs takes such a path for another one, or rejects it."""
_NOT_OURS = re.compile(r"/|.*[%:]")
"""Matches a path in the log that leads to another folder, as in a clone of a table, or that is encoded: delta-rs 1.6.6
ignores the encoding when it removes the file."""
FEW_FILES = 32
"""Up to this many files are read without using statistics to leave some out, and Spark lists them without a job.
"""
_COLOURS = re.compile(r"\x1b\[\d*m|↳")
_OWN_CALLS = re.compile(r"\n\s*0: .*", re.DOTALL)
"""The stack trace that delta-rs appends to some of its messages."""
NOT_READ = "its log could not be read"
_PARQUET = ParquetFileFormat(ParquetReadOptions(dictionary_columns=None, coerce_int96_timestamp_unit="us"))
"""With the unit for times that Spark may have written as INT96."""
_COMMIT = re.compile(r"\d{20}\.json")
_OF_ONE_VALUE = "min", "max", "null_count"
"""The statistics of a column that show whether all rows of a file have the same value; delta-rs has a column of each.
"""
_TABLES_KEPT = 128
"""How many logs stay in memory after they were read: enough for all tables of two lakes, which `compare` may read."""
_TRIES = 20
"""How many times we try to add a version while others write other rows of the table."""

Partition = tuple[str, str]
"""The column by which a table is partitioned into folders, and one of its values."""


@dataclass(frozen=True)
class DataFile:
    """A Parquet file: its path below the table's folder, its bytes and rows, and its statistics as in Delta's log."""

    path: str
    size: int
    rows: int
    stats: str


class Commit(NamedTuple):
    """The log file of a table's newest version. The last two fields distinguish it from a file with the same name of a
    table that was made anew.
    """

    name: str
    inode: int
    modified_ns: int


@dataclass(frozen=True)
class LocalTable:
    """A table in a folder, whether it exists yet or not, and its log when the table was opened.

    log: shared by all who open the table at this version, so it has to stay at this version. A transaction that writes
    the next one (`create_write_transaction`) leaves it there; whatever moves it needs `own_log`.
    """

    path: str
    log: DeltaTable | None

    @property
    def schema(self) -> StructType | None:
        """The table's columns; None if there is no table."""
        if self.log is None:
            return None
        with lake_errors(self.path, NOT_READ):
            return StructType.fromJson(json.loads(self.log.schema().to_json()))

    def files(self, partition: Partition | None = None) -> tuple[str, ...] | None:
        """The files with the table's rows, or with the partition's. None if there are more than FEW_FILES: Delta reads
        these faster, since it leaves out some of them by their statistics.
        """
        paths = self.all_files(partition)
        return None if len(paths) > FEW_FILES else paths

    def all_files(self, partition: Partition | None = None) -> tuple[str, ...]:
        """The files with the table's rows, or with the partition's, however many there are."""
        return tuple(f"{self.path}/{path}" for path in self._paths(partition))

    def files_of(self, column: str, values: Collection[str]) -> tuple[str, ...]:
        """The files with the rows of several partitions. values: theirs, of the column that partitions the table."""
        if self.log is None or not values or not len(self._listed):
            return ()
        wanted = pc.field(f"partition.{column}").isin([*values])
        return tuple(f"{self.path}/{path}" for path in sorted(map(str, self._listed.filter(wanted)["path"])))

    def values(self, column: str) -> list[str]:
        """The values of the column by which the table is partitioned."""
        if self.log is None:
            return []
        files = self._listed
        return sorted(set(map(str, files[f"partition.{column}"].to_pylist()))) if len(files) else []

    def written(self, column: str) -> dict[str, int]:
        """When the newest file of each value of the partitioning column was written, by value: ms since 1970, from the
        log.
        """
        if self.log is None:
            return {}
        value, at = f"partition.{column}", "modification_time"
        newest: Any = self._listed.group_by(value, use_threads=False).aggregate([(at, "max")])
        return dict(zip(newest[value].to_pylist(), newest[f"{at}_max"].cast(pa.int64()).to_pylist(), strict=True))

    def different_values(self, schema: pa.Schema, partitioned_by: str) -> pa.Table:
        """The values that a few columns have in the table's rows; each combination of values at least once.

        A file is not opened if its statistics say that all of its rows have the same values, and which. Times from
        statistics are cut to milliseconds. schema: the columns, including `partitioned_by`, by which the table is
        partitioned. Raises LakeError if a file cannot be read.
        """
        if self.log is None:
            return schema.empty_table()
        files, in_file = self._listed, [name for name in schema.names if name != partitioned_by]
        if not {f"{kind}.{name}" for name in in_file for kind in _OF_ONE_VALUE} <= {*files.column_names}:
            return self.rows(self.all_files(), schema, partitioned_by)
        known = files
        for name in in_file:
            least, greatest, nulls = (pc.field(f"{kind}.{name}") for kind in _OF_ONE_VALUE)
            known = known.filter((least == greatest) & (nulls == 0))
        stated = [known[f"partition.{name}" if name == partitioned_by else f"min.{name}"] for name in schema.names]
        to_open = sorted({*map(str, files["path"])} - {*map(str, known["path"])})
        opened = self.rows([f"{self.path}/{path}" for path in to_open], schema, partitioned_by)
        return pa.concat_tables([pa.table(stated, schema.names).cast(schema), opened])

    def row_count(self, files: Collection[str]) -> int:
        """How many rows some of the table's files have, by the log. For files about which the log says nothing it is by
        their footers; raises LakeError where such a file cannot be read.
        """
        if not files:
            return 0
        counts = dict(zip(self._listed["path"].to_pylist(), self._listed["num_records"].to_pylist(), strict=True))
        by_file = {file: counts[file.removeprefix(f"{self.path}/")] for file in files}
        unknown = [file for file, count in by_file.items() if count is None]
        return sum(count for count in by_file.values() if count is not None) + rows_in_files(unknown)

    def own_log(self) -> DeltaTable | None:
        """A log of the caller's own at the same version, which the caller may move to another; None without a log."""
        with lake_errors(self.path, NOT_READ):
            return None if self.log is None else DeltaTable(self.path, version=self.log.version())

    def rows(self, files: Collection[str], schema: pa.Schema, partitioned_by: str) -> pa.Table:
        """The rows in some of the table's files, with the columns of the schema; null where a file lacks a column.

        partitioned_by: the column whose values are in the names of folders. Raises LakeError if a file cannot be
        read.
        """
        if not files:
            return schema.empty_table()
        with lake_errors(self.path, "its rows could not be read"):
            return dataset(
                list(files),
                schema,
                _PARQUET,
                LocalFileSystem(),
                partitioning(pa.schema([schema.field(partitioned_by)]), flavor="hive"),
                self.path,
            ).to_table()

    def replace(self, schema: StructType, partition: Partition, files: Sequence[DataFile]) -> None:
        """Replace the partition's files by these, as a write with `replaceWhere` does.

        A missing table is made, with this schema. Others may write other partitions at the same time. The files must
        have the table's columns; that is not checked here. Raises LakeError if another process has replaced
        the same partition meanwhile, or if the log cannot be written.
        """
        before, table = self._state_of(partition), self
        if self.log is not None and not files and not before[0]:
            return
        for _ in range(_TRIES):
            try:
                table._commit(schema, partition, files)
                return
            except OSError as fault:
                raise LakeError(f"{self.path}: its log could not be written: {_one_line_text(fault)}") from fault
            except DeltaError as fault:
                now = open_local_table(self.path)
                if now is None or now._version == table._version:
                    raise LakeError(f"{self.path}: could not be changed: {_one_line_text(fault)}") from fault
                table = now
            if now._state_of(partition) != before:
                break
        raise LakeError(
            f"{self.path}: another refetch has written the same rows at the same time: run the command again when that "
            "has ended"
        )

    def _is_ours(self) -> bool:
        if self.log is None:
            return True
        protocol = self.log.protocol()
        is_plain = (protocol.min_reader_version, protocol.min_writer_version) <= _PLAIN
        return is_plain and not any(map(_NOT_OURS.match, self._paths()))

    @property
    def _version(self) -> int | None:
        return None if self.log is None else self.log.version()

    @cached_property
    def _listed(self) -> pa.Table:
        """What the log says about each of the table's files, as a table."""
        with lake_errors(self.path, NOT_READ):
            return pa.table(self.log.get_add_actions(flatten=True)) if self.log is not None else pa.table({})

    def _paths(self, partition: Partition | None = None) -> list[str]:
        """The table's files, or the partition's, by the names that they have in the log."""
        if self.log is None:
            return []
        files = self._listed
        if partition is not None and len(files):
            column, value = partition
            files = files.filter(pc.field(f"partition.{column}") == value)
        return sorted(map(str, files["path"]))

    def _state_of(self, partition: Partition) -> tuple[list[str], int | None]:
        """The partition's files, and the version of its last transaction; None if it has had none."""
        with lake_errors(self.path, NOT_READ):
            last = None if self.log is None else self.log.transaction_version(_partition_name(partition))
        return self._paths(partition), last

    def _commit(self, schema: StructType, partition: Partition, files: Sequence[DataFile]) -> None:
        column, value = partition
        now = time.time_ns() // NS_PER_MS
        added = [AddAction(file.path, file.size, {column: value}, now, True, file.stats) for file in files]
        # If two processes both write the first rows of a partition, neither removes a file that the other has read, so
        # Delta sees no conflict. So both name the same transaction, and Delta accepts only one of two such commits.
        transaction = Transaction(_partition_name(partition), 0 if self.log is None else self.log.version() + 1, now)
        properties = CommitProperties(app_transactions=[transaction])
        forget_checksum(self.path)
        if self.log is None:
            create_table_with_add_actions(
                self.path, Schema.from_json(schema.json()), added,
                partition_by=[column], configuration=NEW_TABLE, commit_properties=properties,
            )  # fmt: skip
        else:
            self.log.create_write_transaction(
                [*added], "overwrite", self.log.schema(), [column], [(column, "=", value)], commit_properties=properties
            )


def open_local_table(path: str) -> LocalTable | None:
    """The table in this folder, or the one that will be made there. None if Delta's own classes have to read and
    write it, because delta-rs would change or reject its path, or does not know a feature that it uses.

    Raises LakeError if there is a log that cannot be read.
    """
    if _NOT_TAKEN_AS_IT_IS.search(path):
        return None
    try:
        newest = _newest_commit(path)
        table = _table_without_commits(path) if newest is None else _table_at(path, newest)
        return table if table._is_ours() else None
    except DeltaError:  # a feature that delta-rs does not know, or a broken log: Delta reads it, or says what is wrong
        return None
    except OSError as fault:
        raise LakeError(f"{path}: {NOT_READ}: {_one_line_text(fault)}") from fault


def _newest_commit(path: str) -> Commit | None:
    """The newest version that has a file in a table's log; None if there is none."""
    try:
        with os.scandir(f"{path}/_delta_log") as entries:
            newest = max((entry for entry in entries if _COMMIT.fullmatch(entry.name)), key=_name_of, default=None)
            return None if newest is None else Commit(newest.name, newest.inode(), newest.stat().st_mtime_ns)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _name_of(entry: os.DirEntry[str]) -> str:
    return entry.name


@lru_cache(maxsize=_TABLES_KEPT)
def _table_at(path: str, newest: Commit) -> LocalTable:
    """The table. Its log is not read again while the newest version is the same: a job asks for a table dozens of
    times, and reading a log takes longer with every night that is added to it.
    """
    return LocalTable(path, DeltaTable(path))


def _table_without_commits(path: str) -> LocalTable:
    """The table whose log has a checkpoint and nothing after it, or the one that will be made."""
    return LocalTable(path, DeltaTable(path) if DeltaTable.is_deltatable(path) else None)


def has_files(path: str, partition: Partition) -> bool:
    """Whether the newest version of a table has files of a partition; also True where delta-rs cannot read the log.

    Raises LakeError as `open_local_table` does.
    """
    table = open_local_table(path)
    return table is None or bool(table.all_files(partition))


def forget_checksum(path: str) -> None:
    """Remove Hadoop's checksum of `_last_checkpoint`. delta-rs may write that file anew, and Delta would then report a
    wrong checksum.
    """
    Path(path, "_delta_log", "._last_checkpoint.crc").unlink(missing_ok=True)


def rows_in_files(paths: Collection[str]) -> int:
    """How many rows Parquet files have, by their footers: the log does not say it for files without statistics.

    Raises LakeError if a file cannot be read.
    """
    return sum(_footer_of(path).num_rows for path in paths)


def columns_of_file(path: str) -> list[str]:
    """The columns of a Parquet file. Raises LakeError if it cannot be read."""
    return list(_footer_of(path).schema.to_arrow_schema().names)


def _footer_of(path: str) -> pq.FileMetaData:
    try:
        return pq.read_metadata(path)
    except (OSError, pa.ArrowInvalid) as fault:
        raise LakeError(f"{path}: cannot be read: {_one_line_text(fault)}") from fault


@contextmanager
def lake_errors(path: str, what: str) -> Iterator[None]:
    """Turn errors of delta-rs and Arrow into LakeError, which names the table and what could not be done."""
    try:
        yield
    except (DeltaError, OSError, pa.ArrowException) as fault:
        raise LakeError(f"{path}: {what}: {_one_line_text(fault)}") from fault


def _one_line_text(fault: Exception) -> str:
    """The message of delta-rs or Arrow in one line, without the colours and the stack trace that delta-rs adds."""
    return " ".join(_OWN_CALLS.sub("", _COLOURS.sub("", str(fault))).split())


def _partition_name(partition: Partition) -> str:
    return "=".join(partition)
