"""The users that clients are to their brokers, and which clients share quotas."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.tables.silver import EXCHANGES
from schemas.wire.apis import API_KEYS
from udfs.columns.sentinels import NONE
from udfs.replay.fetch_max_bytes.quotas import OwnQuota
from udfs.replay.shared.columns import int_column, rows_alike
from udfs.replay.shared.process_addresses import ONE_ADDRESS_EACH, ProcessAddresses

FETCH, PRODUCE = API_KEYS["FETCH"], API_KEYS["PRODUCE"]
OF_SASL = (API_KEYS["SASL_HANDSHAKE"], API_KEYS["SASL_AUTHENTICATE"])
ANONYMOUS = "ANONYMOUS"
"""The user's name of a client that does not authenticate (KafkaPrincipal.ANONYMOUS)."""
WHO_COLUMNS = (
    EXCHANGES.connection_id, EXCHANGES.client_id, EXCHANGES.client_address, EXCHANGES.api_key, EXCHANGES.principal
)  # fmt: skip
_WHO: list[pa.Field[Any]] = [
    pa.field("connection_id", pa.int64()),
    pa.field("client_id", pa.string()),
    pa.field("client_address", pa.string()),
    pa.field("principal", pa.string()),
    pa.field("counts", pa.bool_()),
    pa.field("authenticates", pa.bool_()),
]
WHO = pa.schema(_WHO)
"""What some requests of a connection show of its client. counts: their API is the one whose bytes a quota counts."""
Client = tuple[str, str]
"""The client.id and address of a client."""


def who_rows(
    batches: Iterable[pa.RecordBatch], api_key: int, processes: ProcessAddresses = ONE_ADDRESS_EACH
) -> Iterator[pa.RecordBatch]:
    """Rows of WHO from rows of EXCHANGES: few, however many exchanges there are. api_key: the API that quotas count.
    processes: those of clients that are several.
    """
    x = EXCHANGES
    for batch in batches:
        api = int_column(batch, x.api_key, NONE)
        kind = np.where(api == api_key, 1, np.where(np.isin(api, OF_SASL), 2, 0))
        address = processes.of(batch[x.connection_id], batch[x.client_address])
        texts = [batch[x.client_id], address, batch[x.principal]]
        _, first = rows_alike(batch.num_rows, batch[x.connection_id], *texts, pa.array(kind))
        named: list[Any] = [text.take(pa.array(first, pa.int64())) for text in texts]
        columns = [
            batch[x.connection_id].take(pa.array(first, pa.int64())),
            *(text.dictionary_decode() for text in named),
        ]
        columns += [pa.array(kind[first] == 1), pa.array(kind[first] == 2)]
        yield pa.RecordBatch.from_arrays(columns, schema=WHO)


def users_of_clients(who: Iterable[Mapping[str, Any]], plain: Iterable[int]) -> dict[Client, str | None]:
    """The clients whose bytes count, each with its user's name; None if the user is not known or there are several.

    who: rows of WHO. plain: the connections whose client does not authenticate.
    """
    anonymous = set(plain)
    users: dict[Client, set[str]] = {}
    for row in who:
        if row["counts"]:
            of_client = users.setdefault((row["client_id"] or "", row["client_address"]), set())
            if row["principal"]:
                of_client.add(row["principal"].partition(":")[2] or row["principal"])
            elif row["connection_id"] in anonymous:
                of_client.add(ANONYMOUS)
    return {client: next(iter(names)) if len(names) == 1 else None for client, names in users.items()}


def quota_groups(
    clients: Iterable[Client], quotas_of: Callable[[Client], Sequence[OwnQuota | None]]
) -> dict[Client, str]:
    """A group name for each client that shares a quota with others in some lane. Two clients have the same name if they
    share a quota, directly or through other clients.

    quotas_of: a client's quota in each lane, None if it has none.
    """
    group: dict[Client, Client] = {}

    def first_of(client: Client) -> Client:
        while group[client] != client:
            client = group[client]
        return client

    holders: dict[tuple[int, object], Client] = {}
    for client in sorted(clients):
        group[client] = client
        for lane, quota in enumerate(quotas_of(client)):
            if quota is not None:
                other = first_of(holders.setdefault((lane, quota.meter), client))
                mine = first_of(client)
                group[max(mine, other)] = min(mine, other)
    firsts = {client: first_of(client) for client in group}
    shared = {first for client, first in firsts.items() if client != first}
    return {client: " at ".join(first) for client, first in firsts.items() if first in shared}
