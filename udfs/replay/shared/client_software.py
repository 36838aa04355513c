"""What clients say and show about their software, by connection: whether it is Kafka's own, and its release."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.tables.silver import EXCHANGES
from schemas.wire.apis import API_KEYS
from udfs.columns.arrays import Ints
from udfs.columns.sentinels import NONE
from udfs.replay.shared.columns import int_column, rows_alike
from udfs.replay.shared.silver_columns import ByConnection

JAVA = "apache-kafka-java"
"""client_software_name of Kafka's own client."""
LIBRDKAFKA = "librdkafka"
"""A part of the name of a client that is librdkafka."""
API_VERSIONS, PRODUCE, FETCH = API_KEYS["API_VERSIONS"], API_KEYS["PRODUCE"], API_KEYS["FETCH"]
HEARTBEAT = API_KEYS["HEARTBEAT"]
OF_MEMBERS = (HEARTBEAT, API_KEYS["CONSUMER_GROUP_HEARTBEAT"])
"""APIs by which the members of consumer groups say that they are there. They all count as HEARTBEAT here."""
NEWEST_PRODUCE = {0: 2, 1: 5, 2: 7}
"""For each version of ApiVersions in which Kafka's own client gives no name: the newest version of Produce that such a
client has. From version 3 on, which came with Kafka 2.4, it names itself (KIP-511)."""
SOFTWARE_COLUMNS = (
    EXCHANGES.connection_id, EXCHANGES.api_key, EXCHANGES.api_version, EXCHANGES.client_software_name,
    EXCHANGES.client_software_version, EXCHANGES.client_id, EXCHANGES.client_address, EXCHANGES.fetch_replica_id,
)  # fmt: skip
_SOFTWARE: list[pa.Field[Any]] = [
    pa.field("connection_id", pa.int64()),
    pa.field("api_key", pa.int16()),
    pa.field("api_version", pa.int16()),
    pa.field("name", pa.string()),
    pa.field("version", pa.string()),
    pa.field("client_id", pa.string()),
    pa.field("client_address", pa.string()),
]
SOFTWARE = pa.schema(_SOFTWARE)
"""The software name and version of some requests of a connection, the newest version of their API, and the client.id
and address of the first of them."""
_NUMBER = re.compile(r"[0-9]{1,9}")  # a client may write any text, of any length


def software_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of SOFTWARE from rows of EXCHANGES: few, however many exchanges there are."""
    x = EXCHANGES
    for batch in batches:
        api = shown_apis(batch)
        shown = [batch[column] for column in (x.connection_id, x.client_software_name, x.client_software_version)]
        of_row, first = rows_alike(batch.num_rows, *shown, pa.array(api, pa.int16()))
        newest = np.full(len(first), NONE)
        np.maximum.at(newest, of_row, int_column(batch, x.api_version, NONE))
        rows = batch.take(first)
        said = (x.client_software_name, x.client_software_version, x.client_id, x.client_address)
        texts: list[Any] = [rows[column] for column in said]
        numbers = [rows[x.connection_id], pa.array(api[first], pa.int16()), pa.array(newest, pa.int16())]
        columns = [*numbers, *(text.dictionary_decode() for text in texts)]
        yield pa.RecordBatch.from_arrays(columns, schema=SOFTWARE)


def shown_apis(batch: pa.RecordBatch) -> Ints:
    """The API of each request that shows what its client is; NONE for other APIs, and for fetches of followers:
    int64[rows].
    """
    x = EXCHANGES
    api = int_column(batch, x.api_key, NONE)
    api = np.where(np.isin(api, OF_MEMBERS), HEARTBEAT, api)
    by_follower = (api == FETCH) & (int_column(batch, x.fetch_replica_id, NONE) >= 0)
    return np.where(np.isin(api, (API_VERSIONS, PRODUCE, FETCH, HEARTBEAT)) & ~by_follower, api, NONE)


@dataclass(frozen=True)
class Software:
    """What a connection's requests say about their client; None if they say nothing, the greatest if they differ.

    name, version: of all requests. name_to_start: the name in API_VERSIONS and PRODUCE requests only. newest: the
    newest version of these two requests, by API key. clients: the client.id (empty for none) and address in requests
    of each API, by the key from `shown_apis`.
    """

    name: str | None
    version: str | None
    name_to_start: str | None
    newest: dict[int, int]
    clients: dict[int, tuple[str, str]]

    @property
    def is_nameless(self) -> bool:
        """Whether the client shows that it is not Kafka's own: its API_VERSIONS request has no name, but it produces in
        a version that Kafka's own client has only in later releases, which ask in a later version.
        """
        asks, produces = self.newest.get(API_VERSIONS), self.newest.get(PRODUCE)
        if asks is None or produces is None:
            return False
        return asks in NEWEST_PRODUCE and produces > NEWEST_PRODUCE[asks]


def may_be_java(name: str | None, is_nameless: bool) -> bool:
    """Whether a client of this name may be Kafka's own."""
    return not is_nameless if name is None else name == JAVA


def software_by_connection(rows: pa.Table) -> dict[int, Software]:
    """The software of each connection, from all rows of SOFTWARE."""
    by_connection: dict[int, list[dict[str, Any]]] = {}
    for row in rows.to_pylist():
        by_connection.setdefault(row["connection_id"], []).append(row)
    return {connection: _software(said) for connection, said in by_connection.items()}


def _software(rows: list[dict[str, Any]]) -> Software:
    """The software of one connection, from its rows of SOFTWARE."""
    named = [row for row in rows if row["name"] is not None]
    newest: dict[int, int] = {}
    clients: dict[int, tuple[str, str]] = {}
    for row in rows:
        api, client = row["api_key"], (row["client_id"] or "", row["client_address"])
        if api in (API_VERSIONS, PRODUCE) and row["api_version"] != NONE:
            newest[api] = max(newest.get(api, NONE), row["api_version"])
        clients[api] = min(clients.get(api, client), client)
    return Software(
        name=max((row["name"] for row in named), default=None),
        version=max((row["version"] for row in named if row["version"] is not None), default=None),
        name_to_start=max((row["name"] for row in named if row["api_key"] in (API_VERSIONS, PRODUCE)), default=None),
        newest=newest,
        clients=clients,
    )


def release_of(version: str | None) -> tuple[int, int] | None:
    """The release, such as (4, 2), of the version that a client says it has; None if it says none."""
    parts = (version or "").split(".")[:2]
    if len(parts) < 2 or not all(map(_NUMBER.fullmatch, parts)):
        return None
    return int(parts[0]), int(parts[1])


def librdkafka_release(software: Software) -> int | None:
    """The release of librdkafka that a client is, or uses through a binding, as 1000 x major + minor; 0 if it does not
    say which, None if it is another client. Bindings say it in their version: `confluent-kafka-python` has versions
    such as `2.16.1-rdkafka-2.16.0`.
    """
    name, version = software.name or "", software.version or ""
    if LIBRDKAFKA not in name and "rdkafka" not in version:
        return None
    release = release_of(version.rpartition("rdkafka-")[2].removeprefix("v"))
    return 0 if release is None else release_code(release)


def is_librdkafka(software: Software) -> bool:
    """Whether a client is librdkafka, or uses it through a binding."""
    return librdkafka_release(software) is not None


def release_code(release: tuple[int, int]) -> int:
    """A release as 1000 x major + minor.

    >>> release_code((2, 16))
    2016
    """
    return 1000 * release[0] + min(release[1], 999)


def release_code_of_text(release: str) -> int:
    """A release in the spelling of settings, such as 1.5, as 1000 x major + minor; 0 for any other text."""
    return release_code(release_of(release) or (0, 0))


def librdkafka_clients(software: Mapping[int, Software]) -> ByConnection:
    """The release of each connection whose client is librdkafka, from `librdkafka_release`."""
    releases = {connection: librdkafka_release(client) for connection, client in software.items()}
    return numbers_by_connection({connection: number for connection, number in releases.items() if number is not None})


def numbers_by_connection(numbers: dict[int, int]) -> ByConnection:
    """A number for each connection, in the form in which rows look them up."""
    ids: Ints = np.array(sorted(numbers), np.int64)
    return ByConnection(ids, np.array([numbers[connection] for connection in ids.tolist()], np.int64))


def java_clients(software: Mapping[int, Software]) -> ByConnection:
    """1 for each connection whose client may be Kafka's own, 0 for each other one. Connections that neither produce nor
    ask for the versions of APIs are left out.
    """
    return numbers_by_connection(
        {
            connection: int(may_be_java(client.name_to_start, client.is_nameless))
            for connection, client in software.items()
            if client.newest
        }
    )
