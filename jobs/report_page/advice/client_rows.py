"""The rows for advice on single clients, one for each client and lane; so few clients that the driver can hold them."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F

from jobs.replays.algorithm import OwnRows
from jobs.scenarios.scenario import CAPTURED_LANE
from jobs.terminal.lane_rows import SCENARIO
from schemas.tables.gold import FIDELITY

MOST_CLIENTS = 100
"""The most clients that get advice of their own: those that have most to gain."""
CLIENT = str(FIDELITY.client_id)
"""The column of a client's name in all gold tables that are of clients; SCENARIO has that of lanes."""


def rows_of_first_clients(rows: DataFrame, *order: Column) -> DataFrame:
    """The rows of the clients that come first in an order of their captured lanes."""
    is_captured = F.col(SCENARIO) == CAPTURED_LANE
    in_lane = F.row_number().over(Window.partitionBy(is_captured).orderBy(*order, CLIENT))
    # Both are windows of the same rows. Clients looked up apart would have Spark make all rows a second time.
    placed = rows.withColumn("place", F.min(F.when(is_captured, in_lane)).over(Window.partitionBy(CLIENT)))
    return placed.where(F.col("place") <= MOST_CLIENTS).drop("place")


def with_fidelity(
    rows: DataFrame, own_rows: OwnRows, algorithm: str, reader: str, rests_on: str = ""
) -> DataFrame:  # fmt: skip
    """The rows with how far the replay as captured agrees with the capture for each client.

    rests_on: how the names of the metrics begin that have to be checked. If none of a client's could be, nothing counts
    as checked.
    """
    t = FIDELITY
    of_clients = own_rows(t).where((F.col(t.algorithm) == algorithm) & (F.col(t.reader) == reader))
    decisive = F.coalesce(F.sum(F.when(F.col(t.metric).startswith(rests_on), F.col(t.checked))), F.lit(1))
    counted = [F.when(decisive > 0, F.sum(count)).otherwise(0).alias(count) for count in (t.checked, t.agreed)]
    sums = [*counted, F.sum(t.unknown).alias(t.unknown)]
    return rows.join(F.broadcast(of_clients.groupBy(t.client_id).agg(*sums)), str(t.client_id), "left")


def rows_by_client(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """The rows by client, each client's in the order that they came in."""
    clients: dict[str, list[Row]] = {}
    for row in rows:
        clients.setdefault(row[CLIENT], []).append(row)
    return clients
