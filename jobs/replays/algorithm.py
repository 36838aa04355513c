"""What a replay is to the jobs that run it and show its answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession

from jobs.captures.clusters import rows_of_cluster
from jobs.run import Run
from schemas.tables.gold import TABLES_OF_REPLAY
from schemas.tables.table import Table
from udfs.replay.fetch_max_bytes.silver_events import TieredTopics
from udfs.replay.shared.client_software import Software
from udfs.replay.shared.silver_files import FilePart

OwnRows = Callable[[Table], DataFrame]
"""A function from a table to its rows that belong to the run."""


@dataclass
class Lookups:
    """What several replays look up in one capture set. The first replay that needs it looks it up, for the others, too.

    software: by connection id; None until it is looked up. parts: by silver table the parts of its files, None where
    workers do not see the files. connections: the connection ids of the cluster that is replayed, None where all are.
    tiered: the topics with tiered storage; None until they are looked up.
    """

    software: Mapping[int, Software] | None = None
    parts: dict[Table, list[FilePart] | None] = field(default_factory=dict)
    connections: pa.Array[pa.Int64Scalar] | None = None
    tiered: TieredTopics | None = None


@dataclass(frozen=True)
class Source:
    """What a replay is made from: a capture set, and the run that asks for the replay.

    before: by name the packed rows of the replays of this run that come before it in `algorithms.ALGORITHMS`.
    judges_lanes: whether the rows are only looked at to judge lanes, so that those that are the same in every lane
    need not be made.
    """

    spark: SparkSession
    run: Run
    capture_id: str
    run_id: str
    before: Mapping[str, DataFrame]
    lookups: Lookups = field(default_factory=Lookups)
    judges_lanes: bool = False

    def rows(self, table: Table) -> DataFrame:
        """The capture set's rows of a silver table: those of the run's cluster."""
        return rows_of_cluster(self.spark, self.run.lake, table, self.capture_id, self.run.cluster_id)


@dataclass(frozen=True)
class Algorithm:
    """One of Kafka's algorithms, replayed over a capture set under every lane of a scenario.

    name: as conf/settings.yaml and scenarios have it, and the part of `udfs.kernels.warm_up` that compiles its kernels.
    title: the heading of its lines in the summary.
    packed: makes the packed rows of its tables and of `fidelity` from a source. Raises CaptureError where the captures
    do not show what it needs.
    queries: by name what the summary asks of the tables; each gives so few rows that the driver can hold them.
    lines: makes the summary's lines from the rows of each query, by the query's name, and the lanes in order.
    """

    name: str
    title: str
    packed: Callable[[Source], DataFrame]
    queries: Mapping[str, Callable[[OwnRows], DataFrame]]
    lines: Callable[[Mapping[str, list[Row]], Sequence[str]], Iterable[str]]

    @property
    def tables(self) -> tuple[Table, ...]:
        """The gold tables that it alone writes."""
        return TABLES_OF_REPLAY[self.name]
