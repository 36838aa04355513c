"""The processes of producers and consumers, where several have one client.id and address."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pyarrow as pa

from jobs.replays.algorithm import Source
from jobs.replays.silver import Read, client_software, mapped_silver, read_small_table
from schemas.tables.silver import CONNECTIONS, EXCHANGES, RECORD_BATCHES
from udfs.columns.arrays import Ints
from udfs.replay.shared.client_connections import (
    CONNECTION_COLUMNS,
    are_used_side_by_side,
    connections_in_doubt,
    consuming_connections,
    producing_connections,
)
from udfs.replay.shared.client_software import Software
from udfs.replay.shared.correlation_ids import REQUEST_COLUMNS, REQUESTS, request_rows, requests_by_connection
from udfs.replay.shared.process_addresses import ProcessAddresses, process_addresses
from udfs.replay.shared.processes import (
    ONE_EACH,
    PRODUCER_ID_COLUMNS,
    PRODUCER_IDS,
    Processes,
    producer_id_rows,
    tell_apart,
)
from udfs.replay.shared.silver_work import kept_rows


def client_addresses(source: Source) -> ProcessAddresses:
    """The address of each process of the clients that are several, looked up once for all replays."""
    if source.lookups.addresses is None:
        connections = read_small_table(source, CONNECTIONS, CONNECTION_COLUMNS)
        source.lookups.addresses = process_addresses(
            client_processes(source, connections, client_software(source)), connections
        )
    return source.lookups.addresses


def client_processes(source: Source, connections: pa.Table, software: Mapping[int, Software]) -> Processes:
    """The processes of clients that have two connections to one broker side by side. Nothing is read if there are
    none. connections: CONNECTION_COLUMNS of CONNECTIONS.
    """
    producing = connections_in_doubt(producing_connections(connections, software))
    consuming = connections_in_doubt(consuming_connections(connections, software))
    if not producing and not consuming:
        return ONE_EACH
    ids = producer_ids(source, [c.connection_id for members in producing for c in members])
    doubtful = [c.connection_id for members in (*producing, *consuming) for c in members]
    requests = requests_of(source, [number for number in doubtful if number not in ids])
    consuming = [members for members in consuming if are_used_side_by_side(members, requests)]
    return tell_apart([*producing, *consuming], ids, requests)


def producer_ids(source: Source, connections: list[int]) -> dict[int, set[int]]:
    """The producer ids in the batches of some connections, for those that have any."""
    if not connections:
        return {}
    kept = partial(kept_rows, producer_id_rows, pa.array(connections, pa.int64()))
    rows = mapped_silver(source, [Read(RECORD_BATCHES, PRODUCER_ID_COLUMNS, kept)], PRODUCER_IDS).toArrow()
    ids: dict[int, set[int]] = {}
    for row in rows.to_pylist():
        ids.setdefault(row["connection_id"], set()).add(row["producer_id"])
    return ids


def requests_of(source: Source, connections: list[int]) -> dict[int, Ints]:
    """The times and correlation ids of requests on some connections."""
    if not connections:
        return {}
    kept = partial(kept_rows, request_rows, pa.array(connections, pa.int64()))
    return requests_by_connection(mapped_silver(source, [Read(EXCHANGES, REQUEST_COLUMNS, kept)], REQUESTS).toArrow())
