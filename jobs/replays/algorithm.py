"""The description of a replay for the jobs that run it and show its answers."""

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
from udfs.replay.shared.process_addresses import ProcessAddresses
from udfs.replay.shared.silver_files import FilePart

OwnRows = Callable[[Table], DataFrame]
"""A function from a table to its rows that belong to the run."""


@dataclass
class Lookups:
    """What several replays look up in one capture set. The first replay that needs it looks it up for all.

    software: by connection id; None until it is looked up. parts: for each silver table the parts of its files, None if
    workers do not see the files. connections: the connection ids of the cluster that is replayed, None if all are
    replayed. tiered: the topics with tiered storage; None until they are looked up. addresses: those of the processes
    of clients that are several; None until they are looked up.
    """

    software: Mapping[int, Software] | None = None
    parts: dict[Table, list[FilePart] | None] = field(default_factory=dict)
    connections: pa.Array[pa.Int64Scalar] | None = None
    tiered: TieredTopics | None = None
    addresses: ProcessAddresses | None = None


@dataclass(frozen=True)
class Source:
    """What a replay is made from: a capture set, and the run that asks for the replay.

    before: the packed rows, by name, of the replays of this run that come earlier in `algorithms.ALGORITHMS`.
    judges_lanes: whether the rows are only used to judge lanes, so that rows that are the same in every lane are not
    needed.
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
    """One of Kafka's algorithms, replayed over a capture set in every lane of a scenario.

    name: as in conf/settings.yaml and scenarios; the part of `udfs.kernels.warm_up` that compiles its kernels has it,
    too.
    title: the heading of its lines in the summary.
    packed: makes the packed rows of its tables and of `fidelity` from a source. Raises CaptureError if the captures do
    not show what it needs.
    queries: the summary's queries over the tables, by name; each returns few enough rows for the driver to hold.
    lines: makes the summary's lines from the rows of each query, by the query's name, and the lanes in order.
    """

    name: str
    title: str
    packed: Callable[[Source], DataFrame]
    queries: Mapping[str, Callable[[OwnRows], DataFrame]]
    lines: Callable[[Mapping[str, list[Row]], Sequence[str]], Iterable[str]]

    @property
    def tables(self) -> tuple[Table, ...]:
        """The gold tables that only this replay writes."""
        return TABLES_OF_REPLAY[self.name]
