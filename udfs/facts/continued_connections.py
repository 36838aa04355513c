"""Connections that continue from an earlier capture set. What that set knows about them is taken over if they fit.

A connection is the same one if it has the same endpoints, if this set does not show that it was opened, and if the
correlation id of its first request follows that of its last request in the earlier set: clients count their requests.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.tables import values
from schemas.tables.silver import FETCH_PARTITIONS
from schemas.wire.fetch import FETCH_RESPONSE
from udfs.columns.arrays import Ints
from udfs.columns.arrow_columns import compute
from udfs.columns.sentinels import UNKNOWN
from udfs.facts.earlier_sessions import (
    ENTRY_COLUMNS,
    FETCH_COLUMNS,
    PLACE_COLUMNS,
    LateResponse,
    last_fetch,
    session_behind,
)
from udfs.facts.exchanges import LACKING, Exchanges
from udfs.facts.fetch_lists import LISTED_FETCH, Returned
from udfs.facts.fetch_session import NOWHERE, Session
from udfs.facts.fetches import FetchMessages, response_fields, returned_partitions
from udfs.facts.hashed_names import HashedNames
from udfs.facts.message_bodies import response_bodies_of
from udfs.wire.messages import decode_bodies

_F = FETCH_PARTITIONS
TOPIC_IDS_FROM = 13
"""The first version of Fetch that names topics by their ids (KIP-516)."""
NO_CORRELATION_ID = 2**40
"""More than any correlation id, which has 32 bits."""
_COLUMNS: list[pa.Field[Any]] = [
    pa.field("connection_id", pa.int64()),  # as in this set
    pa.field("client_software_name", pa.string()),
    pa.field("client_software_version", pa.string()),
    pa.field("correlation_id", pa.int64()),  # of the last request
    pa.field("fetch_correlation_id", pa.int64()),  # of a fetch whose response the earlier set lacks, else null
]
EARLIER_CONNECTIONS = pa.schema(_COLUMNS)
"""The connections of an earlier set, by connection_id."""
EARLIER_PARTITIONS = tuple(
    map(
        str,
        (_F.connection_id, _F.topic, _F.topic_id, _F.api_version, *FETCH_COLUMNS, *PLACE_COLUMNS, *ENTRY_COLUMNS),
    )
)
"""The columns of `fetch_partitions` that describe the session of a connection."""
NOT_YET, FITS, DOES_NOT_FIT = -1, 1, 0
NOT_BEGUN_BEFORE, NOT_THERE, TAKEN_OVER, UNLIKE, NO_REQUEST = range(5)
WORDS = pa.array([None, values.NOT_THERE, values.CONTINUED, values.DOES_NOT_FIT, values.NO_REQUEST], pa.string())
"""The word of CONNECTIONS.continuation for each of these codes."""


@dataclass(frozen=True)
class EarlierSet:
    """What an earlier capture set knows about its connections.

    connections: rows of EARLIER_CONNECTIONS in the order of connection_id. partitions: rows of `fetch_partitions` with
    the columns EARLIER_PARTITIONS, for the last fetch of each connection, in the order of connection_id. connection_id
    is the id in this set.
    """

    connections: pa.Table
    partitions: pa.Table


@dataclass
class ContinuedConnections:
    """The connections of an earlier set, and whether this set continues them. fit: NOT_YET, FITS or DOES_NOT_FIT for
    each of them.
    """

    earlier: EarlierSet
    fit: Ints = field(init=False)
    answers: dict[int, LateResponse] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.fit = np.full(self.earlier.connections.num_rows, NOT_YET)

    def begin(self, exchanges: Exchanges) -> dict[int, Ints]:
        """Note which connections of a chunk are continued, and the responses for which their fetches waited.

        Returns what the clients of continued connections that begin in the chunk had reported about their software:
        hashes of name and version, int64[2], by connection of the chunk.
        """
        begun = self._note_first_requests(exchanges)
        self._note_answers(exchanges)
        return {connection: self._software(row, exchanges.names) for connection, row in begun}

    def sessions(self, messages: FetchMessages) -> dict[int, Session]:
        """The sessions from the earlier set of connections whose first fetch is in the chunk, by connection of the
        chunk.
        """
        exchanges, exchange = messages.exchanges, messages.request_exchanges
        connections = np.unique(exchanges.connection[exchange[exchange != UNKNOWN]])
        rows = self._rows_of(exchanges.connection_ids[connections])
        going_on: dict[int, Session] = {}
        for connection, row in zip(connections.tolist(), rows.tolist(), strict=True):
            if row != NOWHERE and self.fit[row] == FITS and row not in self._begun:
                self._begun.add(row)
                session = self._session(row, exchanges.names)
                if session is not None:
                    going_on[connection] = session
        return going_on

    def words(self, exchanges: Exchanges, connections: int) -> pa.Array[Any]:
        """The column `continuation` of the first connections of a chunk, string[connections]."""
        rows = self._rows_of(exchanges.connection_ids[:connections])
        fit = np.append(self.fit, NOT_YET)[rows]
        opened = exchanges.frames.connections["syn_sequence"][:connections] != UNKNOWN
        code = np.select(
            [opened, rows == NOWHERE, fit == FITS, fit == DOES_NOT_FIT],
            [NOT_BEGUN_BEFORE, NOT_THERE, TAKEN_OVER, UNLIKE],
            default=NO_REQUEST,
        )
        return WORDS.take(code)

    @cached_property
    def _begun(self) -> set[int]:
        """The rows whose session `sessions` has already returned."""
        return set()

    @cached_property
    def _ids(self) -> Ints:
        ids: Ints = self.earlier.connections["connection_id"].to_numpy()
        return ids

    @cached_property
    def _correlation_ids(self) -> tuple[Ints, Ints]:
        """(correlation ids of last requests; those of fetches under way, or NO_CORRELATION_ID), int64[rows] each."""
        last, fetch = (self.earlier.connections[name] for name in ("correlation_id", "fetch_correlation_id"))
        return last.to_numpy(), compute.fill_null(fetch, NO_CORRELATION_ID).to_numpy()

    @cached_property
    def _spans(self) -> tuple[Ints, Ints]:
        """(first, end) of the partitions of each row, int64[rows]."""
        of_partitions = self.earlier.partitions["connection_id"].to_numpy()
        return np.searchsorted(of_partitions, self._ids), np.searchsorted(of_partitions, self._ids, "right")

    def _rows_of(self, connection_ids: Ints) -> Ints:
        """The row of each connection, NOWHERE if the earlier set does not have it: int64[n]."""
        if not len(self._ids):
            return np.full(len(connection_ids), NOWHERE)
        place = np.minimum(np.searchsorted(self._ids, connection_ids), len(self._ids) - 1)
        return np.where(self._ids[place] == connection_ids, place, NOWHERE)

    def _note_first_requests(self, exchanges: Exchanges) -> list[tuple[int, int]]:
        """(connection of the chunk, row) of the connections that begin in the chunk and are continued."""
        requests, connections = exchanges.frames.requests, exchanges.frames.connections
        first = requests[requests["number"] == 0]
        row = self._rows_of(exchanges.connection_ids[first["connection"]])
        is_new = (row != NOWHERE) & (connections["syn_sequence"][first["connection"]] == UNKNOWN)
        is_new &= np.append(self.fit, FITS)[row] == NOT_YET
        first, row = first[is_new], row[is_new]
        behind = (first["correlation_id"] - self._correlation_ids[0][row]) % (1 << 32)
        self.fit[row] = np.where((behind > 0) & (behind < 1 << 31), FITS, DOES_NOT_FIT)
        fits = self.fit[row] == FITS
        return list(zip(first["connection"][fits].tolist(), row[fits].tolist(), strict=True))

    def _note_answers(self, exchanges: Exchanges) -> None:
        """Note the responses in the chunk to fetches of the earlier set."""
        orphans = np.flatnonzero((exchanges.request == UNKNOWN) & (exchanges.response_fields[LACKING] == 0))
        row = self._rows_of(exchanges.connection_id[orphans])
        of_fetch = np.append(self._correlation_ids[1], NO_CORRELATION_ID)[row]
        is_answer = (row != NOWHERE) & (of_fetch == exchanges.response_fields["correlation_id"][orphans])
        orphans, row = orphans[is_answer], row[is_answer]
        if not len(orphans):
            return
        versions = self.earlier.partitions[_F.api_version].take(pa.array(self._spans[0][row])).to_numpy()
        kept, bodies = response_bodies_of(
            exchanges, orphans, np.full(len(row), FETCH_RESPONSE.api_key), versions.astype(np.int64)
        )
        response = decode_bodies(FETCH_RESPONSE, exchanges.frames.arena, *bodies)
        returned, fields = returned_partitions(exchanges, response), response_fields(response, len(kept))
        row_of = dict(zip(orphans.tolist(), row.tolist(), strict=True))
        for number, orphan in enumerate(kept.tolist()):
            if response.fault[number] == 0:
                self.answers[row_of[orphan]] = _answer(number, fields, returned)

    def _software(self, row: int, names: HashedNames) -> Ints:
        texts = [self.earlier.connections[name][row].as_py() for name in EARLIER_CONNECTIONS.names[1:3]]
        return np.array([names.learn_text(text) for text in texts])

    def _session(self, row: int, names: HashedNames) -> Session | None:
        first, end = (int(edges[row]) for edges in self._spans)
        if first == end:
            return None
        rows = self.earlier.partitions.slice(first, end - first)
        by_id = rows[_F.api_version][0].as_py() >= TOPIC_IDS_FROM
        topics = rows[_F.topic_id if by_id else _F.topic].combine_chunks().dictionary_encode()
        learn = names.learn_id_text if by_id else names.learn_text
        hashes = np.array([learn(text) for text in topics.dictionary.to_pylist()], np.int64)
        return session_behind(last_fetch(rows, hashes[topics.indices.to_numpy()]), self.answers.pop(row, None))


def _answer(number: int, fields: dict[str, Ints], returned: Returned) -> LateResponse:
    """One of several responses, given by its number, with only its own partitions."""
    fetch = np.zeros(1, LISTED_FETCH)
    for name, column in fields.items():
        fetch[name] = column[number]
    fetch["is_answered"] = 1
    first, end = int(fetch["returned_from"][0]), int(fetch["returned_to"][0])
    fetch["returned_from"], fetch["returned_to"] = 0, end - first
    return LateResponse(fetch, Returned._make(column[first:end].copy() for column in returned))
