"""What a replay is to the jobs that run it and show its answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row, SparkSession

from jobs.captures.clusters import rows_of_cluster
from jobs.replays.one_shuffle import InOrder
from jobs.run import Run
from schemas.tables.table import Table

OwnRows = Callable[[Table], DataFrame]
"""A table's rows that belong to the run."""


@dataclass(frozen=True)
class Source:
    """What a replay is made from: a capture set, as the run asks for it.

    before: by name the packed rows of the replays before it, in the order of `algorithms.ALGORITHMS`.
    """

    spark: SparkSession
    run: Run
    capture_id: str
    run_id: str
    before: Mapping[str, DataFrame]

    def rows(self, table: Table) -> DataFrame:
        """The capture set's rows of a silver table: those of the run's cluster."""
        return rows_of_cluster(self.spark, self.run.lake, table, self.capture_id, self.run.cluster_id)


@dataclass(frozen=True)
class Prepared:
    """What one replay has to do on one capture set.

    events: rows of a step table, with the column SHARD that says which task takes a row. order: the columns by which a
    task has its rows sorted. replay: what a task makes of its rows, as packed rows of the algorithm's tables and of
    `fidelity`. shards: how many tasks there are, as many as suit the session if None. is_narrow: no row is large, so
    that a batch of as many as Spark puts together is not.
    """

    events: DataFrame
    order: Sequence[str]
    replay: InOrder
    shards: int | None = None
    is_narrow: bool = False


@dataclass(frozen=True)
class Algorithm:
    """One of Kafka's algorithms, replayed over a capture set under every lane of a scenario.

    name: as conf/settings.yaml and scenarios have it, and the part of `udfs.kernels.warm_up` that compiles its kernels.
    title: what it tells, as a heading.
    tables: the gold tables that are its own; `fidelity` is everyone's.
    hands_on: the step tables whose rows it makes beside its own, for replays that come after it.
    prepare: from a source to what has to be done. Raises CaptureError where the captures do not tell what it needs.
    queries: what to ask of the tables for the summary, by name, in rows so few that the driver can hold them.
    lines: of the queries' rows by name and the lanes in order, the summary's lines.
    """

    name: str
    title: str
    tables: tuple[Table, ...]
    prepare: Callable[[Source], Prepared]
    queries: Mapping[str, Callable[[OwnRows], DataFrame]]
    lines: Callable[[Mapping[str, list[Row]], Sequence[str]], Iterable[str]]
    hands_on: tuple[Table, ...] = ()
