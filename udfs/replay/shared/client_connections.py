"""The connections of clients, and which clients have two side by side that one process would not have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple

import pyarrow as pa

from schemas.tables.silver import CONNECTIONS
from udfs.columns.arrays import Ints
from udfs.columns.sentinels import NONE
from udfs.replay.shared.client_software import FETCH, HEARTBEAT, PRODUCE, Software, is_librdkafka, may_be_java

CONNECTION_COLUMNS = (
    CONNECTIONS.connection_id, CONNECTIONS.server, CONNECTIONS.client, CONNECTIONS.client_software_name,
    CONNECTIONS.first_time, CONNECTIONS.last_time,
)  # fmt: skip


class ClientConnection(NamedTuple):
    """A connection of a client.

    client: the client.id and address. does: the API that says what the client does on it: PRODUCE, FETCH, HEARTBEAT if
    it is a member of a group there, or NONE for anything else. software: name and version, as far as they are known.
    begin, end: the times of the first and the last packet.
    """

    connection_id: int
    client: tuple[str, str]
    server: str | None
    does: int
    software: tuple[str | None, str | None]
    begin: datetime
    end: datetime

    @property
    def has_records(self) -> bool:
        """Whether records are sent over it."""
        return self.does in (PRODUCE, FETCH)


def producing_connections(connections: pa.Table, software: Mapping[int, Software]) -> list[ClientConnection]:
    """The connections on which Kafka's own client, or what may be that, sent produce requests.

    connections: CONNECTION_COLUMNS of CONNECTIONS.
    """
    every = client_connections(connections, software)
    return [c for c in every if c.does == PRODUCE and may_be_java(c.software[0], software[c.connection_id].is_nameless)]


def consuming_connections(connections: pa.Table, software: Mapping[int, Software]) -> list[ClientConnection]:
    """The connections of clients that consume, without those on which a client of this name produces, and without
    clients that may have several connections to a broker: kafka-go has one for each partition.

    connections: CONNECTION_COLUMNS of CONNECTIONS.
    """
    every = list(client_connections(connections, software))
    consumers = {c.client for c in every if c.does == FETCH}
    others = (c for c in every if c.client in consumers and c.does != PRODUCE)
    return [c for c in others if may_be_java(c.software[0], False) or is_librdkafka(software[c.connection_id])]


def client_connections(connections: pa.Table, software: Mapping[int, Software]) -> Iterator[ClientConnection]:
    """The connections with requests of clients. connections: CONNECTION_COLUMNS of CONNECTIONS."""
    for row in connections.to_pylist():
        connection, server, client, name, begin, end = (row[column] for column in CONNECTION_COLUMNS)
        shown = software.get(connection)
        if client is None or shown is None or not shown.clients:
            continue
        does = next((api for api in (PRODUCE, FETCH, HEARTBEAT) if api in shown.clients), NONE)
        who = shown.clients[does] if does != NONE else min(shown.clients.values())
        yield ClientConnection(connection, who, server, does, (shown.name or name, shown.version), begin, end)


def connections_in_doubt(connections: Iterable[ClientConnection]) -> list[list[ClientConnection]]:
    """The connections of each client that has two connections to one broker side by side."""
    by_client: dict[tuple[str, str], list[ClientConnection]] = {}
    for connection in connections:
        by_client.setdefault(connection.client, []).append(connection)
    return [members for _, members in sorted(by_client.items()) if any_side_by_side(members)]


def any_side_by_side(connections: Iterable[ClientConnection]) -> bool:
    """Whether two of the connections to one broker, on which the client does the same, overlap in time."""
    known = (c for c in connections if c.does != NONE)
    in_turn = sorted(known, key=lambda c: (c.server or "", c.does, c.begin, c.end))
    return any(does_the_same(one, other) and other.begin < one.end for one, other in pairwise(in_turn))


def does_the_same(one: ClientConnection, other: ClientConnection) -> bool:
    """Whether a process would have only one of these two connections at a time."""
    return one.server == other.server and one.does == other.does != NONE


def are_used_side_by_side(connections: Sequence[ClientConnection], requests: Mapping[int, Ints]) -> bool:
    """Whether requests show what `any_side_by_side` asks. They decide where connections are in use from their begin to
    their end, as those that fetch are: the last packets of a broken one may come after the next one's begin.
    """
    by_broker: dict[tuple[str | None, int], list[tuple[int, int]]] = {}
    for connection in connections:
        times = requests.get(connection.connection_id)
        if connection.does != NONE and times is not None:
            spans = by_broker.setdefault((connection.server, connection.does), [])
            spans.append((int(times[0, 0]), int(times[-1, 0])))
    return any(later[0] < earlier[1] for spans in by_broker.values() for earlier, later in pairwise(sorted(spans)))
