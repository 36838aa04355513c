"""Tables as files: what a table has of each capture set or run, how rows are deleted, and how files are joined and
removed.

This does not disturb readers: the files of a version that somebody reads stay for the retention.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple, Protocol

import deltalake
import pyarrow as pa
from deltalake import WriterProperties
from deltalake.exceptions import CommitFailedError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.lake.delta_tables import local_table
from jobs.lake.local_log import NOT_READ, forget_checksum, lake_errors
from jobs.lake.table_address import TableAddress, address_of
from schemas.tables.table import Table
from udfs.errors import LakeError

HOUR = timedelta(hours=1)
_CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"
_LOGGING = "spark.databricks.delta.vacuum.logging.enabled"
"""The property with which Delta logs its vacuums. Without it Delta does not say how many files a vacuum removed."""
_CONFLICT = "[DELTA_CONCURRENT_"
"""The beginning of Delta's message if somebody else has meanwhile written the rows that a statement changes. Several
exceptions have it, and through Spark Connect they have other names."""
_VACUUMED, _REMOVED = "VACUUM END", "numDeletedFiles"


class Holding(NamedTuple):
    """What a table has of a capture set or run: how many files, their bytes, and when the newest was written."""

    files: int
    size: int
    written: datetime


class Compacted(NamedTuple):
    """How many files a table had before and after they were joined. after: None if somebody wrote the table meanwhile;
    then nothing was changed.
    """

    before: int
    after: int | None


class StoredTable(Protocol):
    """A table that exists in the lake."""

    def holdings(self) -> Mapping[str, Holding]:
        """What the table has of each capture set or run, by id."""

    def drop(self, identities: Collection[str]) -> None:
        """Delete the rows of these capture sets or runs. Raises LakeError if somebody writes the same rows."""

    def compact(self) -> Compacted:
        """Join the files of each capture set and run."""

    def vacuum(self, retention: timedelta, *, dry_run: bool = False) -> int | None:
        """Remove files that no version has needed for at least the retention, including those of killed runs.

        Returns how many; None for a dry run that does not know. A dry run removes nothing. It has to be called within
        `vacuums_allowed`.
        """


def stored_table(spark: SparkSession, lake: str, table: Table) -> StoredTable | None:
    """The table; None if the lake does not have it."""
    local = local_table(spark, lake, table)
    if local is not None:
        return None if local.log is None else LocalStore(local.path, str(table.replaced_by))
    address = address_of(lake, table)
    return None if address.columns(spark) is None else DeltaStore(spark, address, str(table.replaced_by))


@dataclass(frozen=True)
class LocalStore:
    """A table in a folder that this process sees, by delta-rs."""

    path: str
    column: str

    def holdings(self) -> Mapping[str, Holding]:
        """As of StoredTable, from the log only."""
        with lake_errors(self.path, NOT_READ):
            files = pa.table(self._log.get_add_actions(flatten=True))
        sums = files.group_by(f"partition.{self.column}").aggregate(
            [("path", "count"), ("size_bytes", "sum"), ("modification_time", "max")]
        )
        return {
            row[f"partition.{self.column}"]: Holding(
                row["path_count"], row["size_bytes_sum"], datetime_of_ms(row["modification_time_max"])
            )
            for row in sums.to_pylist()
        }

    def drop(self, identities: Collection[str]) -> None:
        """As in StoredTable."""
        named = ", ".join(f"'{identity}'" for identity in sorted(identities))
        with lake_errors(self.path, "rows could not be deleted"):
            forget_checksum(self.path)
            try:
                self._log.delete(f"{self.column} IN ({named})")
            except CommitFailedError as fault:
                raise in_use_error(self.path) from fault

    def compact(self) -> Compacted:
        """As of StoredTable. It also removes versions of the log that are older than the table's retention of them."""
        with lake_errors(self.path, "its files could not be joined"):
            log = self._log
            before = len(log.file_uris())
            forget_checksum(self.path)
            try:
                log.optimize.compact(writer_properties=WriterProperties(compression="ZSTD"))
            except CommitFailedError:
                return Compacted(before, None)
            log.cleanup_metadata()
            return Compacted(before, len(log.file_uris()))

    def vacuum(self, retention: timedelta, *, dry_run: bool = False) -> int | None:
        """As of StoredTable. It also removes folders of capture sets and runs that have been empty for as long."""
        hours = whole_hours(retention)
        with lake_errors(self.path, "files that nobody needs could not be removed"):
            log = self._log
            # A vacuum adds two versions to the log, so none is made if there is nothing to remove.
            unneeded = log.vacuum(hours, dry_run=True, enforce_retention_duration=False, full=True)
            if unneeded and not dry_run:
                forget_checksum(self.path)
                log.vacuum(hours, dry_run=False, enforce_retention_duration=False, full=True)
        if not dry_run:
            remove_empty_folders(Path(self.path), f"{self.column}=*", retention)
        return len(unneeded)

    @property
    def _log(self) -> deltalake.DeltaTable:
        return deltalake.DeltaTable(self.path)


@dataclass(frozen=True)
class DeltaStore:
    """A table that only Spark reaches, on its file system or in a catalog. It uses Delta's SQL, because through Spark
    Connect Delta's Python classes need an extension of the server.
    """

    spark: SparkSession
    address: TableAddress
    column: str

    def holdings(self) -> Mapping[str, Holding]:
        """As in StoredTable."""
        by_file = self.address.rows(self.spark).select(
            F.col(self.column).alias("identity"), F.col("_metadata.file_path").alias("file"),
            F.col("_metadata.file_size").alias("size"), F.col("_metadata.file_modification_time").alias("written"),
        ).distinct()  # fmt: skip
        sums = by_file.groupBy("identity").agg(
            F.count("*"), F.sum("size"), F.unix_millis(F.max("written"))
        )  # fmt: skip
        return {
            identity: Holding(files, size, datetime_of_ms(written)) for identity, files, size, written in sums.collect()
        }

    def drop(self, identities: Collection[str]) -> None:
        """As in StoredTable."""
        named = ", ".join(f"'{identity}'" for identity in sorted(identities))
        try:
            self._sql(f"DELETE FROM {{table}} WHERE {self.column} IN ({named})")  # noqa: S608 - ids are refetch's own
        except PySparkException as fault:
            if _CONFLICT in str(fault):
                raise in_use_error(str(self.address)) from fault
            raise

    def compact(self) -> Compacted:
        """As in StoredTable."""
        before = self._files
        try:
            self._sql("OPTIMIZE {table}")
        except PySparkException as fault:
            if _CONFLICT in str(fault):
                return Compacted(before, None)
            raise
        return Compacted(before, self._files)

    def vacuum(self, retention: timedelta, *, dry_run: bool = False) -> int | None:
        """As in StoredTable."""
        if dry_run:
            return None
        self._sql(f"VACUUM {{table}} RETAIN {whole_hours(retention)} HOURS")
        ended = self._sql("DESCRIBE HISTORY {table}").where(F.col("operation") == _VACUUMED)
        last = ended.orderBy(F.desc("version")).select("operationMetrics").first()
        return 0 if last is None else int(last[0].get(_REMOVED, 0))

    @property
    def _files(self) -> int:
        (row,) = self._sql("DESCRIBE DETAIL {table}").select("numFiles").collect()
        return int(row[0])

    def _sql(self, statement: str) -> DataFrame:
        """Delta's answer to a statement, in which {table} stands for the table."""
        return self.spark.sql(statement.replace("{table}", self.address.sql))


def in_use_error(path: str) -> LakeError:
    """The error if somebody else changes the rows that are being deleted."""
    return LakeError(
        f"{path}: another refetch changes the rows that are to go: run the command again when that has ended"
    )


def whole_hours(retention: timedelta) -> int:
    """A retention in whole hours, rounded up, as Delta takes it."""
    return -(-retention // HOUR)


def datetime_of_ms(ms: int) -> datetime:
    """A time that Delta's log has, in milliseconds."""
    return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=ms)


def remove_empty_folders(folder: Path, pattern: str, retention: timedelta) -> None:
    """Remove the empty folders that match the pattern and have not changed for the retention."""
    latest = time.time() - retention.total_seconds()
    for subfolder in folder.glob(pattern):
        with suppress(OSError):  # those that are not empty, and those that another process has removed
            if subfolder.stat().st_mtime < latest:
                subfolder.rmdir()


@contextmanager
def vacuums_allowed(spark: SparkSession) -> Iterator[None]:
    """While the block runs, Delta's SQL removes files however new they are, and logs how many.

    This sets properties of the session. So the block has to enclose all vacuums that run at the same time: the end of
    one block would reset the properties for the others.
    """
    values = {_CHECK: "false", _LOGGING: "true"}
    before: dict[str, str | None] = {key: spark.conf.get(key, None) for key in values}
    try:
        for key, value in values.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, was in before.items():
            if was is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, was)
