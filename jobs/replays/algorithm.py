"""What a replay is to the jobs that run it and show its answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row, SparkSession

from jobs.captures.clusters import rows_of_cluster
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


def never(source: Source) -> bool:
    """Whatever the source."""
    return False


@dataclass(frozen=True)
class Algorithm:
    """One of Kafka's algorithms, replayed over a capture set under every lane of a scenario.

    name: as conf/settings.yaml and scenarios have it, and the part of `udfs.kernels.warm_up` that compiles its kernels.
    title: what it tells, as a heading.
    tables: the gold tables that are its own; `fidelity` is everyone's.
    replayed: of a source, the packed rows of its tables and of `fidelity`, and of others for replays after it. Raises
    CaptureError where the captures do not tell what it needs.
    queries: what to ask of the tables for the summary, by name, in rows so few that the driver can hold them.
    lines: of the queries' rows by name and the lanes in order, the summary's lines.
    is_narrow: whether no row that goes to its workers is large, so that a batch of as many as Spark puts together is
    not.
    """

    name: str
    title: str
    tables: tuple[Table, ...]
    replayed: Callable[[Source], DataFrame]
    queries: Mapping[str, Callable[[OwnRows], DataFrame]]
    lines: Callable[[Mapping[str, list[Row]], Sequence[str]], Iterable[str]]
    is_narrow: Callable[[Source], bool] = never
