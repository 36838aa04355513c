"""The exchanges of a chunk of frames, and the columns about the exchange that rows of every table have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from schemas.tables.silver import EXCHANGES
from udfs.capture.endpoints import connection_endpoints
from udfs.capture.packet_chunks import Frames
from udfs.capture.tcp_headers import CONNECTION_BYTES
from udfs.columns.arrays import Ints, read_only
from udfs.columns.arrow_columns import dictionary_column, repeated_text_column
from udfs.columns.picking import pick_columns
from udfs.columns.sentinels import UNKNOWN
from udfs.facts.arrow_tables import Values, ns_to_us
from udfs.facts.hashed_names import HashedNames, hash_spans
from udfs.facts.number_columns import Picked

ANSWERED, NO_RESPONSE, UNANSWERED, ORPHAN_RESPONSE = range(4)
"""How an exchange ended. NO_RESPONSE: its request gets no response. UNANSWERED: it gets one, but not in the capture."""

NUMBER_BYTES = 8
RESPONSE_FIELDS = {
    **dict.fromkeys(
        ("number", "start", "size", "first_time", "last_time", "last_packet", "correlation_id"), UNKNOWN
    ),
    "missing": 0, "unsent": 0,
}  # fmt: skip
REQUEST_FIELDS = {
    **RESPONSE_FIELDS, "api_key": -1, "api_version": -1, "client_id_start": UNKNOWN, "client_id_length": UNKNOWN,
    "body_start": UNKNOWN, "awaits_response": 1,
}  # fmt: skip
"""The fields of FRAME from which rows are made, and their values if there is no frame."""
LACKING = "lacking"
"""One more field: how many bytes of a frame the capture lacks, because they were not captured or never sent."""


@dataclass
class Exchanges:
    """A chunk's exchanges as columns, by connection and in the order of its requests: int64[n] unless stated otherwise.

    `request` and `response` are rows of the chunk's frames, UNKNOWN if the capture has no such frame.
    `request_fields` and `response_fields` are the fields of these frames from which rows are made, and LACKING.
    `server`, `client`, `client_address` and `connection_ids` have a row for each connection, not for each exchange.

    Other columns are filled in when bodies are decoded, and are UNKNOWN before: `error`, `throttle`, those of fetches,
    and `readable_known`. The last is for fetches with partitions or in a session: 1 if all partitions that had
    something to read are known, else 0. `fault` is a DecodeFault, 0 before decoding. `software` has the hashes of the
    client software's name and version, `member` those of group and member id, `fetch_rack` those of consumers' racks.
    """

    frames: Frames
    capture_id: str
    names: HashedNames
    request: Ints
    response: Ints
    request_fields: Mapping[str, Ints]
    response_fields: Mapping[str, Ints]
    connection: Ints
    number: Ints
    connection_ids: Ints
    connection_id: Ints
    server: pa.Array[Any]
    client: pa.Array[Any]
    client_address: pa.Array[Any]
    client_id: pa.Array[Any]
    api_key: Ints
    api_version: Ints
    error: Ints
    throttle: Ints
    fetch_max_bytes: Ints
    fetch_replica_id: Ints
    fetch_session_id: Ints
    fetch_session_epoch: Ints
    fetch_rack: Ints
    readable_known: Ints
    fault: Ints
    software: tuple[Ints, Ints]
    member: tuple[Ints, Ints]

    def __len__(self) -> int:
        return len(self.request)

    def of_api(self, key: int) -> Ints:
        """The indices of the exchanges of one API: int64[n]."""
        return np.flatnonzero(self.api_key == key)

    @cached_property
    def status(self) -> Ints:
        """How each exchange ended: ANSWERED, NO_RESPONSE, UNANSWERED or ORPHAN_RESPONSE, int64[n]."""
        awaits = self.request_fields["awaits_response"]
        ends = [self.request == UNKNOWN, self.response != UNKNOWN, awaits == 0]
        return np.select(ends, [ORPHAN_RESPONSE, ANSWERED, NO_RESPONSE], default=UNANSWERED)

    @cached_property
    def request_us(self) -> Ints:
        """When each request had been captured completely, us since 1970, UNKNOWN if there is none: int64[n]."""
        return ns_to_us(self.request_fields["last_time"])

    @cached_property
    def response_us(self) -> Ints:
        """When each response had been captured completely, us since 1970, UNKNOWN if there is none: int64[n]."""
        return ns_to_us(self.response_fields["last_time"])

    @cached_property
    def missing_bytes(self) -> Ints:
        """Bytes of both frames that the capture does not have, int64[n]."""
        return self.request_fields["missing"] + self.response_fields["missing"]

    @cached_property
    def unsent_bytes(self) -> Ints:
        """Bytes of both frames that were never sent, int64[n]."""
        return self.request_fields["unsent"] + self.response_fields["unsent"]


def with_lacking(fields: dict[str, Ints]) -> dict[str, Ints]:
    """The fields of frames and LACKING, as columns that cannot be written: int64[frames] each."""
    every = fields | {LACKING: fields["missing"] + fields["unsent"]}
    return {name: read_only(column) for name, column in every.items()}


def completed_exchanges(frames: Frames, capture_id: str, names: HashedNames) -> Exchanges:
    """The exchanges that a chunk completes. Responses without a request come last within their connection."""
    closed = np.flatnonzero(frames.requests["is_open"] == 0)
    orphans = np.flatnonzero(frames.responses["partner"] == UNKNOWN)
    request = np.concatenate([closed, np.full(len(orphans), UNKNOWN)])
    response = np.concatenate([frames.requests["partner"][closed], orphans])
    connection = np.concatenate([frames.requests["connection"][closed], frames.responses["connection"][orphans]])
    order = np.argsort(connection, kind="stable")
    request, response, connection = request[order], response[order], connection[order]
    request_fields, response_fields = (
        with_lacking(pick_columns(frames.requests, REQUEST_FIELDS, request)),
        with_lacking(pick_columns(frames.responses, RESPONSE_FIELDS, response)),
    )
    number = np.where(request != UNKNOWN, request_fields["number"], response_fields["number"])
    # The hash of endpoints and incarnation is the same in every run over the same capture.
    ids = connection_ids(frames.endpoints, frames.connections["incarnation"])
    server, client = endpoint_texts(frames)
    client_ids = names.learn(frames.arena, request_fields["client_id_start"], request_fields["client_id_length"])
    n = len(request)
    return Exchanges(
        frames=frames, capture_id=capture_id, names=names,
        request=request, response=response, request_fields=request_fields, response_fields=response_fields,
        connection=connection, number=number,
        connection_ids=ids, connection_id=ids[connection],
        server=server, client=client, client_address=endpoint_addresses(client),
        client_id=names.texts_of(client_ids),
        api_key=request_fields["api_key"], api_version=request_fields["api_version"],
        error=np.full(n, UNKNOWN), throttle=np.full(n, UNKNOWN), fetch_max_bytes=np.full(n, UNKNOWN),
        fetch_replica_id=np.full(n, UNKNOWN), fetch_session_id=np.full(n, UNKNOWN),
        fetch_session_epoch=np.full(n, UNKNOWN), fetch_rack=np.zeros(n, np.int64),
        readable_known=np.full(n, UNKNOWN), fault=np.zeros(n, np.int64),
        software=(np.zeros(n, np.int64), np.zeros(n, np.int64)),
        member=(np.zeros(n, np.int64), np.zeros(n, np.int64)),
    )  # fmt: skip


def connection_ids(endpoints: Sequence[bytes], incarnations: npt.NDArray[Any] | None = None) -> Ints:
    """Ids of connections: int64[n], hashes of their endpoints and incarnations.

    endpoints: 36 bytes for each connection. incarnations: int64[n]; None if each is the first between its endpoints.
    """
    rows = len(endpoints)
    numbers = (np.zeros(rows) if incarnations is None else incarnations).astype(">i8").view(np.uint8)
    ends = np.frombuffer(b"".join(endpoints), np.uint8).reshape(rows, CONNECTION_BYTES)
    keys = np.hstack((ends, numbers.reshape(rows, NUMBER_BYTES)))
    size = CONNECTION_BYTES + NUMBER_BYTES
    return hash_spans(keys.ravel(), np.arange(rows) * size, np.full(rows, size))


def endpoint_texts(frames: Frames) -> tuple[pa.Array[Any], pa.Array[Any]]:
    """(servers, clients) of connections as address:port; null if it is not known which side is the client."""
    lower, higher = connection_endpoints(b"".join(frames.endpoints))
    client = frames.connections["client"]
    ends = pa.concat_arrays([lower, higher, pa.nulls(1, pa.string())])
    n = len(client)
    row = np.arange(n)
    known = client >= 0
    return (
        ends.take(np.where(known, row + n * (1 - client), 2 * n)),
        ends.take(np.where(known, row + n * client, 2 * n)),
    )


def endpoint_addresses(endpoints: pa.Array[Any]) -> pa.Array[Any]:
    """The addresses of endpoints that are written as address:port."""
    return pc.replace_substring_regex(endpoints, r":\d+$", "")


def shared_columns(exchanges: Exchanges, rows: Ints | None = None) -> dict[str, Values]:
    """The columns about the exchange that rows of every table have.

    rows: int64[n], the exchange of each row; None for one row for each exchange.
    """
    n = len(exchanges) if rows is None else len(rows)
    connection = exchanges.connection if rows is None else exchanges.connection[rows]
    return {
        EXCHANGES.capture_id: repeated_text_column(exchanges.capture_id, n),
        EXCHANGES.connection_id: Picked(exchanges.connection_id, rows),
        EXCHANGES.exchange_no: Picked(exchanges.number, rows),
        EXCHANGES.broker: dictionary_column(exchanges.server, connection),
        EXCHANGES.client_address: dictionary_column(exchanges.client_address, connection),
        EXCHANGES.client_id: exchanges.client_id if rows is None else exchanges.client_id.take(rows),
        EXCHANGES.request_time: Picked(exchanges.request_us, rows),
        EXCHANGES.response_time: Picked(exchanges.response_us, rows),
    }
