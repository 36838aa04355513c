"""What a replay is to the jobs that run it and show its answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession

from jobs.captures.clusters import rows_of_cluster
from jobs.run import Run
from schemas.tables.table import Table
from udfs.replay.shared.client_software import Software
from udfs.replay.shared.silver_files import FilePart

OwnRows = Callable[[Table], DataFrame]
"""A table's rows that belong to the run."""


@dataclass
class Lookups:
    """What several replays look up in one capture set, once it has been read.

    software: by connection. parts: of a silver table's files, None where workers do not see them. connections: those of
    the cluster that is replayed.
    """

    software: Mapping[int, Software] | None = None
    parts: dict[Table, list[FilePart] | None] = field(default_factory=dict)
    connections: pa.Array[pa.Int64Scalar] | None = None


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
    lookups: Lookups = field(default_factory=Lookups)

    def rows(self, table: Table) -> DataFrame:
        """The capture set's rows of a silver table: those of the run's cluster."""
        return rows_of_cluster(self.spark, self.run.lake, table, self.capture_id, self.run.cluster_id)


@dataclass(frozen=True)
class Algorithm:
    """One of Kafka's algorithms, replayed over a capture set under every lane of a scenario.

    name: as conf/settings.yaml and scenarios have it, and the part of `udfs.kernels.warm_up` that compiles its kernels.
    title: what it tells, as a heading.
    tables: the gold tables that are its own; `fidelity` is everyone's.
    packed: from a source to the packed rows of its tables and of `fidelity`. Raises CaptureError where the captures do
    not show what it needs.
    queries: what to ask of the tables for the summary, by name, in rows so few that the driver can hold them.
    lines: of the queries' rows by name and the lanes in order, the summary's lines.
    """

    name: str
    title: str
    tables: tuple[Table, ...]
    packed: Callable[[Source], DataFrame]
    queries: Mapping[str, Callable[[OwnRows], DataFrame]]
    lines: Callable[[Mapping[str, list[Row]], Sequence[str]], Iterable[str]]
