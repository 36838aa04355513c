"""The reads of fetches, with what was there to read. They are made from silver tables and partitions' logs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame

from jobs.replays.algorithm import Source
from jobs.replays.client_processes import client_addresses
from jobs.replays.fetch_max_bytes.tiered import tiered_topics
from jobs.replays.silver import Read, client_software, dealt_silver, read_small_table
from jobs.session.one_shuffle import deal_again
from schemas.tables.silver import CONNECTIONS, FETCH_PARTITIONS, RECORD_BATCHES
from udfs.columns.arrow_columns import compute as pc
from udfs.columns.arrow_columns import us_since_1970
from udfs.replay.fetch_max_bytes.partition_log.replay import grouped_read_rows
from udfs.replay.fetch_max_bytes.settings import FetchLanes
from udfs.replay.fetch_max_bytes.silver_events import (
    BATCH_COLUMNS,
    LOGS,
    READ_COLUMNS,
    READERS,
    batch_events,
    profiles_by_connection,
    read_events,
)
from udfs.replay.fetch_max_bytes.who_has_quotas import Client


def dealt_reads(source: Source, shards: int, groups: Mapping[Client, str], joins_fetchers: bool = False) -> DataFrame:
    """Rows of DEALT for the step READERS; one shuffle by partition. groups, joins_fetchers: as in `with_groups`."""
    profiles = profiles_by_connection(client_software(source))
    of_fetches = partial(
        read_events, profiles=profiles, tiered=tiered_topics(source), processes=client_addresses(source)
    )  # fmt: skip
    reads = [
        Read(RECORD_BATCHES, BATCH_COLUMNS, batch_events),
        Read(FETCH_PARTITIONS, READ_COLUMNS, of_fetches),
    ]
    logs = dealt_silver(source, LOGS, reads, shards)
    grouped = partial(grouped_read_rows, groups=groups, joins_fetchers=joins_fetchers)
    return deal_again(logs, LOGS, READERS, shards, grouped)


def with_connections(source: Source, lanes: FetchLanes) -> FetchLanes:
    """The lanes with what the table `connections` shows of the capture set."""
    c = CONNECTIONS
    connections = read_small_table(source, c, (c.connection_id, c.broker, c.last_time, c.ended, c.missing_bytes))
    return replace(
        lanes,
        lossy=lossy_connections(connections),
        closed_at=ends_of_connections(connections),
        captured_until=ends_of_brokers(connections),
    )


def ends_of_brokers(connections: pa.Table) -> dict[str, int]:
    """The last time at which the capture set shows each broker (us since 1970), by its name. connections: of
    CONNECTIONS.
    """
    c = CONNECTIONS
    known = connections.select([c.broker, c.last_time]).drop_null()
    times = known.set_column(1, c.last_time, us_since_1970(known[c.last_time]))
    ends = times.group_by(c.broker).aggregate([(c.last_time, "max")])
    return {row[c.broker]: row[f"{c.last_time}_max"] for row in ends.to_pylist()}


def ends_of_connections(connections: pa.Table) -> dict[int, int]:
    """When connections ended whose end the capture shows (us since 1970), by their ids. connections: of CONNECTIONS."""
    c = CONNECTIONS
    ended = connections.filter(connections[c.ended]).select([c.connection_id, c.last_time]).drop_null()
    ids, times = ended[c.connection_id].to_numpy(), us_since_1970(ended[c.last_time]).to_numpy()
    return dict(zip(ids.tolist(), times.tolist(), strict=True))


def lossy_connections(connections: pa.Table) -> frozenset[int]:
    """The ids of connections of which the capture lacks bytes. connections: of CONNECTIONS."""
    c = CONNECTIONS
    lossy = connections.filter(pc.greater(connections[c.missing_bytes], 0))
    return frozenset(lossy[c.connection_id].drop_null().to_numpy().tolist())
