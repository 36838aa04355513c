"""Correlation ids: what the requests of a connection show of the process that sent them.

Kafka's own client counts its requests over all its connections (NetworkClient).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.tables.silver import EXCHANGES
from schemas.wire.apis import API_KEYS
from udfs.columns.arrays import Bools, Ints
from udfs.columns.arrow_columns import us_since_1970
from udfs.columns.sentinels import NONE
from udfs.replay.shared.client_connections import ClientConnection, does_the_same
from udfs.replay.shared.client_software import FETCH, may_be_java
from udfs.replay.shared.columns import int_column, rows_alike

LEAST_CHANGES = 16
"""How often requests have to change between two connections before correlation ids say anything about them."""
LEAST_RISING = 0.75
"""At least this share of the changes have rising ids if both connections are one process's. It is not 1 because the
bytes of a request may have to wait for those before them on their connection."""
SENT_TOGETHER = 16
"""An id counts as rising if it is at most this much lower: a client makes requests for several brokers together, and
then writes them in any order."""
CHANCE = 0.01
"""A process that has most of the ids near those of another process's connection seldom leaves out just these. A
connection fills the gaps of a process if the chance of that is at most this."""
NEAR_IDS = 8
"""The ids near an id: so many on both sides of it."""
NEXT_IDS = 32
"""A connection goes on from those of a process if its first id is higher than theirs by at most this much: not every
request is looked at, and not every connection."""
LEAST_LEFT_OUT = 0.1
"""A connection's ids leave some out if at least this share of them do not follow the one before. A connection that is
counted by itself has the next id in each request, but for those that the capture lacks."""
ALL_OF_FIRST = 128
"""Of each connection, this many requests are looked at, and then half as many of each doubling of their number."""
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
"""Some requests of a connection."""
NOT_COUNTED = tuple(API_KEYS[name] for name in ("API_VERSIONS", "SASL_HANDSHAKE", "SASL_AUTHENTICATE"))
"""APIs by whose requests a connection begins. Kafka's own client gives those of SASL ids of their own
(SaslClientAuthenticator), which all its connections have."""


class Fit(IntEnum):
    """Whether a connection is of a process: it is not; it is open; its ids go on from where the process's ended; they
    are those that the process left out; they alternate with those of the process.
    """

    NO, OPEN, GOES_ON, FILLS, ALTERNATES = range(5)


def request_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of REQUESTS from rows of EXCHANGES: those that are looked at, and the last one of each connection."""
    x = EXCHANGES
    for batch in batches:
        rows = batch.filter(pa.array(~np.isin(int_column(batch, x.api_key, NONE), NOT_COUNTED)))
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
    edges = np.append(begins, len(connection)).tolist()
    groups = zip(connection[begins].tolist(), pairwise(edges), strict=True)
    return {which: in_order_of_time(pairs[begin:end]) for which, (begin, end) in groups}


def is_looked_at(number: Ints) -> Bools:
    """Whether the request of each number is looked at, which is so for ever fewer of a connection's requests."""
    every = 1 << np.maximum(np.frexp(number.astype(np.float64))[1] - ALL_OF_FIRST.bit_length() + 1, 0)
    return number % every == 0


def in_order_of_time(requests: Ints) -> Ints:
    """Requests in the order of time. requests: int64[n, 2], times and correlation ids."""
    return requests[np.argsort(requests[:, 0], kind="stable")]


def fit_of(connection: ClientConnection, members: Sequence[ClientConnection], requests: Mapping[int, Ints]) -> Fit:
    """Whether a connection is of the process that has the connections `members`. requests: as in `tell_apart`."""
    own, others = requests[connection.connection_id], [requests[other.connection_id] for other in members]
    if any(is_other_software(connection, other) for other in members):
        return Fit.NO
    at_same_broker = (of for of, other in zip(others, members, strict=True) if does_the_same(connection, other))
    if any(are_side_by_side(own, of) for of in at_same_broker):
        return Fit.NO
    known = np.concatenate(others)
    if len(np.intersect1d(own[:, 1], known[:, 1])):
        return Fit.NO
    is_own = np.repeat([True, False], [len(own), len(known)])
    every = np.concatenate([own, known])
    order = np.argsort(every[:, 0], kind="stable")
    changes, rises = np.diff(is_own[order]), np.diff(every[order, 1]) >= -SENT_TOGETHER
    is_rising = bool(changes.any() and rises[changes].mean() >= LEAST_RISING)
    if changes.sum() >= LEAST_CHANGES:
        return Fit.ALTERNATES if is_rising else Fit.NO
    if is_rising and chance_of_no_common_id(known[:, 1], own[:, 1]) <= CHANCE:
        return Fit.FILLS
    return Fit.GOES_ON if goes_on(known, own) else Fit.OPEN


def is_other_software(one: ClientConnection, other: ClientConnection) -> bool:
    """Whether two connections say names or releases of their client that differ. The capture lacks what a connection
    said that began before it.
    """
    return any(a != b for a, b in zip(one.software, other.software, strict=True) if a is not None and b is not None)


def chance_of_no_common_id(known: Ints, own: Ints) -> float:
    """The chance that a connection of another process has none of the ids of a process: for each of its ids, the share
    of ids near it that the process does not have. known, own: int64[n], ids.
    """
    known = np.sort(known)
    near = np.searchsorted(known, own + NEAR_IDS, side="right") - np.searchsorted(known, own - NEAR_IDS, side="left")
    return float(np.prod(1 - np.minimum(near / (2 * NEAR_IDS + 1), 1)))


def goes_on(known: Ints, own: Ints) -> bool:
    """Whether a connection's requests begin where those of a process ended: int64[n, 2] each."""
    if len(known) < LEAST_CHANGES or not len(own) or own[:, 0].min() < known[:, 0].max():
        return False
    return bool(0 < own[0, 1] - known[:, 1].max() <= NEXT_IDS)


def are_side_by_side(one: Ints, other: Ints) -> bool:
    """Whether two connections sent requests at the same time: int64[n, 2] each, in the order of time."""
    return bool(len(one) and len(other) and one[0, 0] < other[-1, 0] and other[0, 0] < one[-1, 0])


def with_common_ids(
    connections: Iterable[ClientConnection], requests: Mapping[int, Ints]
) -> list[ClientConnection]:  # fmt: skip
    """Those of a client's connections whose correlation ids count the requests of all connections of a process, as
    Kafka's own client does.

    A consumer whose name the capture lacks may be another client, which may have several connections to a broker. It
    counts for all if it fetches on a connection with ids that leave some out. requests: as in `tell_apart`.
    """
    may_be = [c for c in connections if may_be_java(c.software[0], is_nameless=False)]
    fetching = [c for c in may_be if c.does == FETCH and c.software[0] is None]
    counts_for_all = not fetching or any(
        leaves_ids_out(requests[c.connection_id][:ALL_OF_FIRST, 1]) for c in fetching if c.connection_id in requests
    )
    return [c for c in may_be if c.software[0] is not None or counts_for_all]


def leaves_ids_out(ids: Ints) -> bool:
    """Whether enough ids are known, int64[n], and they often rise by more than one."""
    return len(ids) >= LEAST_CHANGES and bool((np.diff(ids) != 1).mean() >= LEAST_LEFT_OUT)
