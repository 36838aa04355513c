"""Tells the processes apart that share a client.id and an address, by what their produce requests show.

A fleet of producers often has one configuration, and so one client.id. Behind NAT, or on one host, its processes have
one address, too. Such processes show if two connections to one broker are in use side by side, because a process has
one connection to a broker at a time. Connections are then brought together by two kinds of evidence:

- The producer id of an idempotent producer. Each has its own, and uses it on all its connections.
- Correlation ids. Kafka's own client counts its requests over all its connections (NetworkClient). So no two
  connections of a process have the same correlation id, and in the order of time the ids rise from one connection to
  the next. From connections of one process to those of another, they fall as often as they rise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import IntEnum
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from schemas.tables.silver import CONNECTIONS, EXCHANGES, RECORD_BATCHES
from schemas.tables.values import FROM_PRODUCE
from udfs.columns.arrays import Bools, Ints
from udfs.columns.arrow_columns import us_since_1970
from udfs.columns.sentinels import NONE
from udfs.replay.shared.client_software import PRODUCE, Software, may_be_java
from udfs.replay.shared.columns import int_column, rows_alike
from udfs.replay.shared.silver_columns import is_text

LEAST_CHANGES = 16
"""How often requests have to change between two connections before correlation ids say anything about them."""
LEAST_RISING = 0.75
"""At least this share of the changes have rising ids if both connections are one process's. It is not 1 because the
bytes of a request may have to wait for those before them on their connection."""
SENT_TOGETHER = 16
"""An id counts as rising if it is at most this much lower: a client makes requests for several brokers together, and
then writes them in any order."""
NEXT_IDS = 32
"""A connection goes on from those of a process if its first id is higher than theirs by at most this much: a client
also sends other requests than those that produce."""
ALL_OF_FIRST = 128
"""Of each connection, this many requests are looked at, and then half as many of each doubling of their number."""
MOST_CONNECTIONS = 1000
"""The most connections of one client.id and address that are compared by their correlation ids."""

CONNECTION_COLUMNS = (
    CONNECTIONS.connection_id, CONNECTIONS.server, CONNECTIONS.client, CONNECTIONS.client_software_name,
    CONNECTIONS.first_time, CONNECTIONS.last_time,
)  # fmt: skip
PRODUCER_ID_COLUMNS = (RECORD_BATCHES.connection_id, RECORD_BATCHES.source, RECORD_BATCHES.producer_id)
_IDS: list[pa.Field[Any]] = [pa.field("connection_id", pa.int64()), pa.field("producer_id", pa.int64())]
PRODUCER_IDS = pa.schema(_IDS)
"""The producer ids of some batches of a connection."""

REQUEST_COLUMNS = (
    EXCHANGES.connection_id, EXCHANGES.exchange_no, EXCHANGES.api_key, EXCHANGES.correlation_id,
    EXCHANGES.request_first_time,
)  # fmt: skip
_REQUESTS: list[pa.Field[Any]] = [
    pa.field("connection_id", pa.int64()),
    pa.field("exchange_no", pa.int64()),
    pa.field("time", pa.int64()),  # us, when its first byte was captured
    pa.field("correlation_id", pa.int64()),
]
REQUESTS = pa.schema(_REQUESTS)
"""Some produce requests."""


class Fit(IntEnum):
    """Whether a connection is of a process: it is not; it is open; its ids go on from where the process's ended; its
    ids alternate with those of the process.
    """

    NO, OPEN, GOES_ON, ALTERNATES = range(4)


class ProducingConnection(NamedTuple):
    """A connection on which produce requests were sent.

    client: the client.id and address. software: name and version, as far as they are known. begin, end: the times of
    the first and the last packet.
    """

    connection_id: int
    client: tuple[str, str]
    server: str | None
    software: tuple[str | None, str | None]
    begin: datetime
    end: datetime


class Processes(NamedTuple):
    """The processes of clients that are several processes.

    first: for each of their connections, the first connection of its process. unknown: connections of which it is not
    known whose they are.
    """

    first: Mapping[int, int]
    unknown: frozenset[int]


ONE_EACH = Processes({}, frozenset())
"""Each client is one process."""


def producing_connections(connections: pa.Table, software: Mapping[int, Software]) -> list[ProducingConnection]:
    """The connections on which Kafka's own client, or what may be that, sent produce requests.

    connections: CONNECTION_COLUMNS of CONNECTIONS.
    """
    producing = []
    for row in connections.to_pylist():
        connection, server, client, name, begin, end = (row[column] for column in CONNECTION_COLUMNS)
        shown = software.get(connection)
        if client is None or shown is None or shown.producer is None:
            continue
        if may_be_java(shown.name or name, shown.is_nameless):
            said = (shown.name, shown.version)
            producing.append(ProducingConnection(connection, shown.producer, server, said, begin, end))
    return producing


def connections_in_doubt(connections: Iterable[ProducingConnection]) -> list[list[ProducingConnection]]:
    """The connections of each client that has two connections to one broker side by side."""
    by_client: dict[tuple[str, str], list[ProducingConnection]] = {}
    for connection in connections:
        by_client.setdefault(connection.client, []).append(connection)
    return [members for _, members in sorted(by_client.items()) if any_side_by_side(members)]


def any_side_by_side(connections: Iterable[ProducingConnection]) -> bool:
    """Whether two of the connections to one broker overlap in time."""
    in_turn = sorted(connections, key=lambda c: (c.server or "", c.begin, c.end))
    return any(one.server == other.server and other.begin < one.end for one, other in pairwise(in_turn))


def producer_id_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of PRODUCER_IDS from rows of RECORD_BATCHES: few, however many batches there are."""
    b = RECORD_BATCHES
    for batch in batches:
        produced = batch.filter(is_text(batch[b.source], FROM_PRODUCE))
        ids = pa.array(int_column(produced, b.producer_id, NONE))
        _, first = rows_alike(produced.num_rows, produced[b.connection_id], ids)
        rows = pa.RecordBatch.from_arrays([produced[b.connection_id], ids], schema=PRODUCER_IDS).take(first)
        yield rows.filter(pa.array(rows["producer_id"].to_numpy() >= 0))


def request_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of REQUESTS from rows of EXCHANGES: those that are looked at, and the last one of each connection."""
    x = EXCHANGES
    for batch in batches:
        rows = batch.filter(pa.array(int_column(batch, x.api_key, NONE) == PRODUCE))
        number = int_column(rows, x.exchange_no, 0)
        connection, first = rows_alike(rows.num_rows, rows[x.connection_id])
        last = np.zeros(len(first), np.int64)
        np.maximum.at(last, connection, number)
        rows = rows.filter(pa.array(is_looked_at(number) | (number == last[connection])))
        columns: list[Any] = [
            rows[x.connection_id], rows[x.exchange_no], us_since_1970(rows[x.request_first_time]),
            rows[x.correlation_id],
        ]  # fmt: skip
        made = pa.RecordBatch.from_arrays([column.cast(pa.int64()) for column in columns], schema=REQUESTS)
        yield made.filter(made["time"].is_valid())


def requests_by_connection(rows: pa.Table) -> dict[int, Ints]:
    """Each connection's requests that are looked at, and its last one, in the order of time: int64[n, 2], the time and
    the correlation id of each. rows: all rows of REQUESTS.
    """
    columns: Any = [rows[name].to_numpy() for name in REQUESTS.names]
    order = np.lexsort((columns[1], columns[0]))
    connection, number, time, correlation = (column[order] for column in columns)
    is_last = np.append(connection[1:] != connection[:-1], True)[: len(order)]
    is_kept = is_looked_at(number) | is_last
    connection, pairs = connection[is_kept], np.stack([time, correlation], axis=1)[is_kept]
    begins = np.flatnonzero(np.append(True, connection[1:] != connection[:-1])[: len(connection)])
    groups = zip(connection[begins].tolist(), np.split(pairs, begins[1:]), strict=True)
    return {which: in_order_of_time(of) for which, of in groups}


def is_looked_at(number: Ints) -> Bools:
    """Whether the request of each number is looked at, which is so for ever fewer of a connection's requests."""
    every = 1 << np.maximum(np.frexp(number.astype(np.float64))[1] - ALL_OF_FIRST.bit_length() + 1, 0)
    return number % every == 0


def tell_apart(
    in_doubt: Iterable[Sequence[ProducingConnection]], ids: Mapping[int, set[int]], requests: Mapping[int, Ints]
) -> Processes:
    """The processes of clients, from the connections of each.

    ids: the producer ids of each connection that has any. requests: of the other connections, the times and correlation
    ids of requests in the order of time, int64[n, 2].
    """
    first, unknown = dict[int, int](), set[int]()
    for members in in_doubt:
        named = processes_by_producer_id([c for c in members if c.connection_id in ids], ids)
        counted, open_ones = processes_by_correlation_id([c for c in members if c.connection_id not in ids], requests)
        processes = [*named, *counted]
        if len(processes) < 2 and not open_ones:
            continue
        for process in processes:
            begins = min(process, key=lambda c: (c.begin, c.connection_id))
            first |= dict.fromkeys((c.connection_id for c in process), begins.connection_id)
        unknown |= {c.connection_id for c in open_ones}
    return Processes(first, frozenset(unknown))


def processes_by_producer_id(
    connections: Iterable[ProducingConnection], ids: Mapping[int, set[int]]
) -> Iterable[Sequence[ProducingConnection]]:
    """The connections of each process: those with a common producer id, or with ids that a third connection has."""
    known: dict[int, tuple[set[int], list[ProducingConnection]]] = {}
    for connection in connections:
        process = (set(ids[connection.connection_id]), [connection])
        for earlier in {min(known[number][0]): known[number] for number in process[0] if number in known}.values():
            process[0].update(earlier[0])
            process[1].extend(earlier[1])
        known |= dict.fromkeys(process[0], process)
    return {min(numbers): members for numbers, members in known.values()}.values()


def processes_by_correlation_id(
    connections: Iterable[ProducingConnection], requests: Mapping[int, Ints]
) -> tuple[list[list[ProducingConnection]], list[ProducingConnection]]:
    """(the connections of each process; those of which it is not known whose they are).

    The connections with the most requests come first, because they say the most about those that come later. requests:
    as in `tell_apart`.
    """
    processes, open_ones = list[list[ProducingConnection]](), list[ProducingConnection]()
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


def fit_of(
    connection: ProducingConnection, members: Sequence[ProducingConnection], requests: Mapping[int, Ints]
) -> Fit:
    """Whether a connection is of the process that has the connections `members`. requests: as in `tell_apart`."""
    own, others = requests[connection.connection_id], [requests[other.connection_id] for other in members]
    if any(connection.software != other.software for other in members):
        return Fit.NO
    at_same_broker = (of for of, other in zip(others, members, strict=True) if other.server == connection.server)
    if any(are_side_by_side(own, of) for of in at_same_broker):
        return Fit.NO
    known = np.concatenate(others)
    if len(np.intersect1d(own[:, 1], known[:, 1])):
        return Fit.NO
    is_own = np.repeat([True, False], [len(own), len(known)])
    every = np.concatenate([own, known])
    order = np.argsort(every[:, 0], kind="stable")
    changes, rises = np.diff(is_own[order]), np.diff(every[order, 1]) >= -SENT_TOGETHER
    if changes.sum() >= LEAST_CHANGES:
        return Fit.ALTERNATES if rises[changes].mean() >= LEAST_RISING else Fit.NO
    return Fit.GOES_ON if goes_on(known, own) else Fit.OPEN


def goes_on(known: Ints, own: Ints) -> bool:
    """Whether a connection's requests begin where those of a process ended: int64[n, 2] each."""
    if len(known) < LEAST_CHANGES or not len(own) or own[:, 0].min() < known[:, 0].max():
        return False
    return bool(0 < own[0, 1] - known[:, 1].max() <= NEXT_IDS)


def are_side_by_side(one: Ints, other: Ints) -> bool:
    """Whether two connections sent requests at the same time: int64[n, 2] each, in the order of time."""
    return bool(len(one) and len(other) and one[0, 0] < other[-1, 0] and other[0, 0] < one[-1, 0])


def in_order_of_time(requests: Ints) -> Ints:
    """Requests in the order of time. requests: int64[n, 2], times and correlation ids."""
    return requests[np.argsort(requests[:, 0], kind="stable")]
