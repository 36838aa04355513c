"""What a job can do with a session apart from queries: everything if Spark's driver belongs to this process, less
through Spark Connect, where the driver is elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import Protocol

from py4j.java_gateway import JVMView
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.utils import is_remote

from jobs.session.connect_server import check_delta, check_rows_are_kept, code_of_workers
from jobs.session.shipped_code import ship_code, ship_to_server
from jobs.session.spark_properties import is_one_machine
from udfs import CODE

_GROUP, _DESCRIPTION = "spark.jobGroup.id", "spark.job.description"
_MANY_ROWS = 1 << 20

Cancel = Callable[[Sequence[str], bool], None]
"""A function of (groups, whether to cancel all jobs). It cancels the jobs of these groups, also those that begin later,
and all other jobs if asked to.
"""


class Driver(Protocol):
    """The driver of a session."""

    @property
    def java(self) -> JVMView | None:
        """Spark's Java; None if it cannot be reached."""

    @property
    def has_workers_here(self) -> bool:
        """Whether this process's Spark starts the session's Python workers on this machine."""

    def cores(self) -> int:
        """How many tasks can run at the same time."""

    def take_over(self) -> None:
        """Prepare a session that somebody else has started for reading lakes. Raises SetupError if that fails."""

    def ship(self) -> None:
        """Let workers import refetch's packages. Raises SetupError if they cannot, or have another version."""

    def check_decoding(self) -> None:
        """Check that captures can be decoded and replayed. Raises SetupError, which says what is missing, if not."""

    @contextmanager
    def in_group(self, group: str, description: str | None) -> Iterator[None]:
        """Put the jobs that the block starts into this group. description: None keeps the current one."""

    def tasks(self, group: str) -> tuple[int, int]:
        """(how many tasks of the group's jobs are done, how many tasks are known)."""

    def canceller(self) -> Cancel:
        """A function that cancels jobs. It may be called from any thread."""


def driver_of(spark: SparkSession) -> Driver:
    """The session's driver."""
    return ConnectDriver(spark) if is_remote() else ClassicDriver(spark)


class ClassicDriver:
    """Spark's driver in a Java process that belongs to this one."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark, self._context = spark, spark.sparkContext

    @property
    def java(self) -> JVMView | None:
        """As of Driver."""
        return self._context._jvm

    @property
    def has_workers_here(self) -> bool:
        """As of Driver."""
        return is_one_machine(self._context.master or "")

    def cores(self) -> int:
        """As of Driver."""
        return self._context.defaultParallelism

    def take_over(self) -> None:
        """As of Driver."""
        self.ship()

    def ship(self) -> None:
        """As of Driver."""
        ship_code(self._spark)

    def check_decoding(self) -> None:
        """As of Driver: nothing is checked, because a task that fails says what its environment lacks."""

    @contextmanager
    def in_group(self, group: str, description: str | None) -> Iterator[None]:
        """As of Driver."""
        before = {key: self._context.getLocalProperty(key) for key in (_GROUP, _DESCRIPTION)}
        try:
            for key, value in ((_GROUP, group), (_DESCRIPTION, description or before[_DESCRIPTION])):
                self._context.setLocalProperty(key, value)  # type: ignore[arg-type]  # None clears the property
            yield
        finally:
            for key, value in before.items():
                self._context.setLocalProperty(key, value)  # type: ignore[arg-type]

    def tasks(self, group: str) -> tuple[int, int]:
        """As of Driver."""
        tracker = self._context.statusTracker()
        jobs = [job for job_id in tracker.getJobIdsForGroup(group) if (job := tracker.getJobInfo(job_id))]
        running = {stage_id: job.status == "RUNNING" for job in jobs for stage_id in job.stageIds}
        stages = [info for stage_id in running if (info := tracker.getStageInfo(stage_id))]
        done = sum(info.numCompletedTasks for info in stages)
        # An ended job may have skipped stages. Their tasks will never be done, so they do not count as known.
        return done, sum(info.numTasks if running[info.stageId] else info.numCompletedTasks for info in stages)

    def canceller(self) -> Cancel:
        """As of Driver. The function raises Py4JError or OSError if Java cannot be reached."""
        java = self._context._jsc.sc()

        def cancel(groups: Sequence[str], all_jobs: bool) -> None:
            if all_jobs:
                java.cancelAllJobs()
            for group in groups:
                java.cancelJobGroupAndFutureJobs(group)

        return cancel


class ConnectDriver:
    """Spark's driver behind a Spark Connect server, which accepts queries, functions and files, but hides its Java."""

    java = None
    has_workers_here = False

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def cores(self) -> int:
        """As of Driver."""
        return _cores_of_server(self._spark)

    def take_over(self) -> None:
        """As of Driver: it sends nothing to workers, because they do not read lakes."""
        check_delta(self._spark)

    def ship(self) -> None:
        """As of Driver."""
        if code_of_workers(self._spark) != CODE:
            ship_to_server(self._spark)

    def check_decoding(self) -> None:
        """As of Driver."""
        check_rows_are_kept(self._spark)
        self.ship()

    @contextmanager
    def in_group(self, group: str, description: str | None) -> Iterator[None]:
        """As of Driver, with a tag; the server shows no description."""
        self._spark.addTag(group)
        try:
            yield
        finally:
            self._spark.removeTag(group)

    def tasks(self, group: str) -> tuple[int, int]:
        """As of Driver: always (0, 0), because the server does not say."""
        return 0, 0

    def canceller(self) -> Cancel:
        """As of Driver. A server that does not answer cannot be asked to cancel jobs."""

        def cancel(groups: Sequence[str], all_jobs: bool) -> None:
            with suppress(PySparkException):
                if all_jobs:
                    self._spark.interruptAll()
                for group in groups:
                    self._spark.interruptTag(group)

        return cancel


@cache
def _cores_of_server(spark: SparkSession) -> int:
    """How many tasks the server runs at a time: the number of partitions into which it divides a range. It is asked
    once for each session.
    """
    parts = spark.range(_MANY_ROWS).select(F.spark_partition_id().alias("part")).agg(F.max("part"))
    return 1 + int(parts.collect()[0][0])
