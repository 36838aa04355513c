"""Tells the processes apart that share a client.id and an address, by what their requests show.

A fleet of producers or consumers often has one configuration, and so one client.id: that of a Java consumer is by
default made of its group. Behind NAT, or on one host, its processes have one address, too. Such processes show if two
connections to one broker are in use side by side on which they do the same: produce, fetch, or say to a coordinator
that a member is there. A process has one such connection to a broker at a time. Connections are then brought together
by two kinds of evidence:

- The producer id of an idempotent producer. Each has its own, and uses it on all its connections.
- Correlation ids. Kafka's own client counts its requests over all its connections (NetworkClient). So no two
  connections of a process have the same correlation id, and in the order of time the ids rise from one connection to
  the next. From connections of one process to those of another, they fall as often as they rise.

Clients that count the requests of each connection by itself, as librdkafka does, show neither when they consume.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from schemas.tables.silver import RECORD_BATCHES
from schemas.tables.values import FROM_PRODUCE
from udfs.columns.arrays import Ints
from udfs.columns.sentinels import NONE
from udfs.replay.shared.client_connections import ClientConnection, any_side_by_side
from udfs.replay.shared.client_software import FETCH
from udfs.replay.shared.columns import int_column, rows_alike
from udfs.replay.shared.correlation_ids import (
    Fit,
    fit_of,
    with_common_ids,
)
from udfs.replay.shared.silver_columns import is_text

MOST_CONNECTIONS = 1000
"""The most connections of one client.id and address that are compared by their correlation ids."""
PRODUCER_ID_COLUMNS = (RECORD_BATCHES.connection_id, RECORD_BATCHES.source, RECORD_BATCHES.producer_id)
_IDS: list[pa.Field[Any]] = [pa.field("connection_id", pa.int64()), pa.field("producer_id", pa.int64())]
PRODUCER_IDS = pa.schema(_IDS)
"""The producer ids of some batches of a connection."""


class Processes(NamedTuple):
    """The processes of clients that are several processes.

    first: for each of their connections, the first connection of its process. unknown: connections of which it is not
    known whose they are.
    """

    first: Mapping[int, int]
    unknown: frozenset[int]


ONE_EACH = Processes({}, frozenset())
"""Each client is one process."""


def producer_id_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of PRODUCER_IDS from rows of RECORD_BATCHES: few, however many batches there are."""
    b = RECORD_BATCHES
    for batch in batches:
        produced = batch.filter(is_text(batch[b.source], FROM_PRODUCE))
        ids = pa.array(int_column(produced, b.producer_id, NONE))
        _, first = rows_alike(produced.num_rows, produced[b.connection_id], ids)
        rows = pa.RecordBatch.from_arrays([produced[b.connection_id], ids], schema=PRODUCER_IDS).take(first)
        yield rows.filter(pa.array(rows["producer_id"].to_numpy() >= 0))


def tell_apart(
    in_doubt: Iterable[Sequence[ClientConnection]], ids: Mapping[int, set[int]], requests: Mapping[int, Ints]
) -> Processes:
    """The processes of clients, from the connections of each.

    ids: the producer ids of each connection that has any. requests: of the other connections, the times and correlation
    ids of requests in the order of time, int64[n, 2].
    """
    first, unknown = dict[int, int](), set[int]()
    for members in in_doubt:
        processes, open_ones = processes_of_client(members, ids, requests)
        if sum(any(c.has_records for c in process) for process in processes) < 2 and not open_ones:
            continue
        for process in processes:
            begins = min(process, key=lambda c: (c.begin, c.connection_id))
            first |= dict.fromkeys((c.connection_id for c in process), begins.connection_id)
        unknown |= {c.connection_id for c in open_ones}
    return Processes(first, frozenset(unknown))


def processes_of_client(
    members: Sequence[ClientConnection], ids: Mapping[int, set[int]], requests: Mapping[int, Ints]
) -> tuple[list[Sequence[ClientConnection]], list[ClientConnection]]:
    """(the connections of each process; those with records of which it is not known whose they are).

    members: the connections of one client. ids, requests: as in `tell_apart`.
    """
    named = processes_by_producer_id([c for c in members if c.connection_id in ids], ids)
    others = [c for c in members if c.connection_id not in ids]
    numbered = with_common_ids(others, requests)
    processes, open_ones = whole_consumers(*processes_by_correlation_id(numbered, requests), requests)
    apart = [c for c in others if c not in numbered and c.software[0] is not None]
    if any_side_by_side(apart):
        open_ones += apart
    elif apart:
        processes.append(apart)
    return [*named, *processes], [c for c in open_ones if c.has_records]


def whole_consumers(
    processes: list[list[ClientConnection]], open_ones: list[ClientConnection], requests: Mapping[int, Ints]
) -> tuple[list[list[ClientConnection]], list[ClientConnection]]:
    """The same, where a consumer of which it is open whether it has another connection is open itself: its application
    takes the records of all its connections.
    """
    lacking = [c for c in open_ones if c.does == FETCH]
    whole = list[list[ClientConnection]]()
    for members in processes:
        is_consumer = any(c.does == FETCH for c in members)
        if is_consumer and any(fit_of(c, members, requests) > Fit.NO for c in lacking):
            open_ones = [*open_ones, *members]
        else:
            whole.append(members)
    return whole, open_ones


def processes_by_producer_id(
    connections: Iterable[ClientConnection], ids: Mapping[int, set[int]]
) -> Iterable[Sequence[ClientConnection]]:
    """The connections of each process: those with a common producer id, or with ids that a third connection has."""
    known: dict[int, tuple[set[int], list[ClientConnection]]] = {}
    for connection in connections:
        process = (set(ids[connection.connection_id]), [connection])
        for earlier in {min(known[number][0]): known[number] for number in process[0] if number in known}.values():
            process[0].update(earlier[0])
            process[1].extend(earlier[1])
        known |= dict.fromkeys(process[0], process)
    return {min(numbers): members for numbers, members in known.values()}.values()


def processes_by_correlation_id(
    connections: Iterable[ClientConnection], requests: Mapping[int, Ints]
) -> tuple[list[list[ClientConnection]], list[ClientConnection]]:
    """(the connections of each process; those of which it is not known whose they are).

    The connections with the most requests come first, because they say the most about those that come later. requests:
    as in `tell_apart`.
    """
    processes, open_ones = list[list[ClientConnection]](), list[ClientConnection]()
    of = defaultdict(lambda: np.zeros((0, 2), np.int64), requests)
    by_weight = sorted(connections, key=lambda c: (-len(of[c.connection_id]), c.connection_id))
    for connection in by_weight[:MOST_CONNECTIONS]:
        fits = [fit_of(connection, members, of) for members in processes]
        best = max(fits, default=Fit.NO)
        if best == Fit.NO:
            processes.append([connection])
        elif best > Fit.OPEN and fits.count(best) == 1:
            processes[fits.index(best)].append(connection)
        else:
            open_ones.append(connection)
    return processes, open_ones + by_weight[MOST_CONNECTIONS:]
