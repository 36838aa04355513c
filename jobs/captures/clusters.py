"""The clusters that a capture set shows, and the one that is replayed. Only one is replayed, because topics of two
clusters may have the same name, and brokers the same node id.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.lake.delta_tables import stored_rows
from jobs.terminal.screen import printable_text, with_rest_count
from jobs.terminal.wording import quantity
from schemas.tables.silver import CONNECTIONS
from schemas.tables.table import Table
from udfs.errors import ArgumentError

BY_FLAG = "--cluster-id=ID"
"""How a command line names a cluster."""
MOST_SHOWN = 20
RowsOf = Callable[[SparkSession, str, Table, str], DataFrame]
"""A function that reads the rows of a capture set or run: from Spark, a lake, a table and an id."""


class CapturedCluster(NamedTuple):
    """A cluster: its id, how many addresses of its brokers were seen, and how many requests they got."""

    cluster_id: str
    servers: int
    requests: int

    def __str__(self) -> str:
        traffic = f"{quantity(self.servers, 'server')}, {quantity(self.requests, 'request')}"
        return f"{printable_text(self.cluster_id)} ({traffic})"


def captured_clusters(spark: SparkSession, lake: str, capture_id: str) -> list[CapturedCluster]:
    """The clusters of a capture set, the one with most requests first."""
    c = CONNECTIONS
    named = stored_rows(spark, lake, c, capture_id).where(F.col(c.cluster_id).isNotNull())
    columns = (F.count_distinct(c.server).alias("servers"), F.sum(c.requests).alias("requests"))
    by_cluster = named.groupBy(c.cluster_id).agg(*columns).orderBy(F.desc("requests"), c.cluster_id)
    return [CapturedCluster(*row) for row in by_cluster.collect()]


def choose_cluster(spark: SparkSession, lake: str, capture_id: str, named: str | None) -> str | None:
    """The cluster to replay: the one that is named, else the one with most requests. None if the capture set shows
    only one cluster, or none.

    stderr says which one is replayed and which others there are. Raises ArgumentError if the capture set does not show
    the named cluster.
    """
    clusters = captured_clusters(spark, lake, capture_id)
    chosen = next((one for one in clusters if named in (None, one.cluster_id)), None)
    if named is not None and chosen is None:
        lines = [
            f"{lake}: capture set {capture_id} shows no cluster {printable_text(named)}; it has",
            *_cluster_lines(clusters),
        ]
        raise ArgumentError("\n  ".join(lines if clusters else [f"{lines[0]} no response with a cluster's id"]))
    if chosen is None or len(clusters) == 1:
        return None
    why = "the one with most requests" if named is None else "as named"
    others = ", ".join(_cluster_lines([one for one in clusters if one is not chosen]))
    sys.stderr.write(
        f"refetch: capture set {capture_id} shows several clusters; {printable_text(chosen.cluster_id)} is replayed, "
        f"{why}; {BY_FLAG} names another: {others}\n"
    )
    return chosen.cluster_id


def _cluster_lines(clusters: Sequence[CapturedCluster]) -> list[str]:
    return with_rest_count(map(str, clusters[:MOST_SHOWN]), len(clusters))


def rows_of_cluster(
    spark: SparkSession, lake: str, table: Table, capture_id: str, cluster_id: str | None, read: RowsOf = stored_rows
) -> DataFrame:
    """The capture set's rows of a silver table; only those of a cluster's connections if a cluster is named. read: the
    function that reads the capture set's rows of a table.
    """
    c = CONNECTIONS
    rows = read(spark, lake, table, capture_id)
    if cluster_id is None or c.connection_id not in table.columns:
        return rows
    own = read(spark, lake, c, capture_id).where(F.col(c.cluster_id) == cluster_id).select(c.connection_id)
    return rows.join(F.broadcast(own), str(c.connection_id), "left_semi")
