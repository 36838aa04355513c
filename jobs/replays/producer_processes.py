"""The processes of producers, where several have one client.id and address."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pyarrow as pa

from jobs.replays.algorithm import Source
from jobs.replays.silver import Read, mapped_silver, read_small_table
from schemas.tables.silver import CONNECTIONS, EXCHANGES, RECORD_BATCHES
from udfs.columns.arrays import Ints
from udfs.replay.shared.client_software import Software
from udfs.replay.shared.process_addresses import ProcessAddresses, process_addresses
from udfs.replay.shared.processes import (
    CONNECTION_COLUMNS,
    ONE_EACH,
    PRODUCER_ID_COLUMNS,
    PRODUCER_IDS,
    REQUEST_COLUMNS,
    REQUESTS,
    Processes,
    connections_in_doubt,
    producer_id_rows,
    producing_connections,
    request_rows,
    requests_by_connection,
    tell_apart,
)
from udfs.replay.shared.silver_work import kept_rows


def producer_addresses(source: Source, software: Mapping[int, Software]) -> ProcessAddresses:
    """The address of each process of the clients that are several."""
    connections = read_small_table(source, CONNECTIONS, CONNECTION_COLUMNS)
    return process_addresses(producer_processes(source, connections, software), connections)


def producer_processes(source: Source, connections: pa.Table, software: Mapping[int, Software]) -> Processes:
    """The processes of clients that have two connections to one broker side by side. Nothing is read if there are
    none. connections: CONNECTION_COLUMNS of CONNECTIONS.
    """
    in_doubt = connections_in_doubt(producing_connections(connections, software))
    if not in_doubt:
        return ONE_EACH
    doubtful = [connection.connection_id for members in in_doubt for connection in members]
    ids = producer_ids(source, doubtful)
    return tell_apart(in_doubt, ids, requests_of(source, [c for c in doubtful if c not in ids]))


def producer_ids(source: Source, connections: list[int]) -> dict[int, set[int]]:
    """The producer ids in the batches of some connections, for those that have any."""
    kept = partial(kept_rows, producer_id_rows, pa.array(connections, pa.int64()))
    rows = mapped_silver(source, [Read(RECORD_BATCHES, PRODUCER_ID_COLUMNS, kept)], PRODUCER_IDS).toArrow()
    ids: dict[int, set[int]] = {}
    for row in rows.to_pylist():
        ids.setdefault(row["connection_id"], set()).add(row["producer_id"])
    return ids


def requests_of(source: Source, connections: list[int]) -> dict[int, Ints]:
    """The times and correlation ids of produce requests on some connections."""
    if not connections:
        return {}
    kept = partial(kept_rows, request_rows, pa.array(connections, pa.int64()))
    return requests_by_connection(mapped_silver(source, [Read(EXCHANGES, REQUEST_COLUMNS, kept)], REQUESTS).toArrow())
