"""Exchanges of a chunk of frames, and what every table's rows say of the exchange they belong to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from schemas.tables.silver import EXCHANGES
from schemas.wire.apis import APIS
from udfs.arrow import array_of, coded, repeated
from udfs.capture.chunks import Frames
from udfs.capture.endpoints import connection_endpoints
from udfs.capture.framing import SIZE_BYTES
from udfs.capture.segments import UNKNOWN
from udfs.facts.arrow_tables import nulls_besides, rows_of, timestamps
from udfs.facts.names import Names, hash_spans
from udfs.facts.picking import pick
from udfs.wire.arrays import Bools, Bytes, Codes, Ints, Shorts, read_only
from udfs.wire.faults import DecodeFault
from udfs.wire.header import API_TABLE, response_body_start, response_version
from udfs.wire.kernel import kernel

OF_LOG = (
    EXCHANGES.listener, EXCHANGES.security_protocol, EXCHANGES.principal, EXCHANGES.request_queue_time_ms,
    EXCHANGES.local_time_ms, EXCHANGES.remote_time_ms, EXCHANGES.api_throttle_time_ms,
    EXCHANGES.response_queue_time_ms, EXCHANGES.send_time_ms, EXCHANGES.total_time_ms, EXCHANGES.log_line,
)  # fmt: skip
"""What a request log alone tells of an exchange."""
_NAME_OF = {api.key: api.name for api in APIS}
API_NAMES = pa.array([*(_NAME_OF.get(key) for key in range(max(_NAME_OF) + 1)), None], pa.string())
"""By API key, as in Kafka's request log; the last is null, for keys that no known Kafka has."""


class Bodies(NamedTuple):
    """Where messages' bodies lie in the arena and in which version they are written; int64[n], versions int16[n]."""

    starts: Ints
    ends: Ints
    versions: Shorts


@dataclass
class Exchanges:
    """A chunk's exchanges as columns, by connection and in the order of its requests.

    request, response: rows of the chunk's frames, or UNKNOWN. server, client_address: by connection, not by exchange.
    `error`, `throttle` and `fault` are filled in as bodies are decoded; `software` holds the hashes of the client's
    software name and version, `member` those of group and member id; `session_known`, of fetches with partitions,
    whether all that their session holds is known.
    """

    frames: Frames
    capture_id: str
    names: Names
    request: Ints
    response: Ints
    connection: Ints
    number: Ints
    connection_id: Ints
    server: pa.Array[Any]
    client_address: pa.Array[Any]
    client_id: pa.Array[Any]
    api_key: Ints
    api_version: Ints
    error: Ints
    throttle: Ints
    fetch_max_bytes: Ints
    fetch_session_id: Ints
    fetch_session_epoch: Ints
    session_known: Ints
    fault: Ints
    software: tuple[Ints, Ints]
    member: tuple[Ints, Ints]
    _fields: dict[tuple[bool, str, int], Ints] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.request)

    def of_request(self, name: str, missing: int = UNKNOWN) -> Ints:
        """A field of the requests' frames, `missing` where there is no request."""
        return self._field(True, name, missing)

    def of_response(self, name: str, missing: int = UNKNOWN) -> Ints:
        """A field of the responses' frames, `missing` where there is no response."""
        return self._field(False, name, missing)

    def _field(self, is_request: bool, name: str, missing: int) -> Ints:
        key = (is_request, name, missing)
        if key not in self._fields:
            frames, rows = (self.frames.requests, self.request), (self.frames.responses, self.response)
            of, which = frames if is_request else rows
            self._fields[key] = read_only(pick(of[name], which, missing))
        return self._fields[key]

    def of_api(self, key: int) -> Ints:
        """Indices of the exchanges of one API."""
        return np.flatnonzero(self.api_key == key)


def exchanges_of(frames: Frames, capture_id: str, names: Names) -> Exchanges:
    """The exchanges that a chunk made complete, orphaned responses behind the requests of their connection."""
    closed = np.flatnonzero(frames.requests["is_open"] == 0)
    orphans = np.flatnonzero(frames.responses["partner"] == UNKNOWN)
    request = np.concatenate([closed, np.full(len(orphans), UNKNOWN)])
    response = np.concatenate([frames.requests["partner"][closed], orphans])
    connection = np.concatenate([frames.requests["connection"][closed], frames.responses["connection"][orphans]])
    order = np.argsort(connection, kind="stable")
    request, response, connection = request[order], response[order], connection[order]
    request_number = pick(frames.requests["number"], request, 0)
    number = np.where(request != UNKNOWN, request_number, pick(frames.responses["number"], response, 0))
    server, client = endpoint_texts(frames)
    starts, lengths = (pick(frames.requests[f"client_id_{of}"], request, -1) for of in ("start", "length"))
    n = len(request)
    return Exchanges(
        frames=frames, capture_id=capture_id, names=names,
        request=request, response=response, connection=connection, number=number,
        connection_id=connection_ids(frames)[connection],
        server=server, client_address=addresses(client),
        client_id=names.texts_of(names.learn(frames.arena, starts, lengths)),
        api_key=pick(frames.requests["api_key"], request, -1),
        api_version=pick(frames.requests["api_version"], request, -1),
        error=np.full(n, UNKNOWN), throttle=np.full(n, UNKNOWN), fetch_max_bytes=np.full(n, UNKNOWN),
        fetch_session_id=np.full(n, UNKNOWN), fetch_session_epoch=np.full(n, UNKNOWN),
        session_known=np.full(n, UNKNOWN), fault=np.zeros(n, np.int64),
        software=(np.zeros(n, np.int64), np.zeros(n, np.int64)),
        member=(np.zeros(n, np.int64), np.zeros(n, np.int64)),
    )  # fmt: skip


def connection_ids(frames: Frames) -> Ints:
    """Ids by connection: a hash of its endpoints and incarnation, the same in every run over the same capture."""
    return ids_of(frames.endpoints, frames.connections["incarnation"])


def ids_of(endpoints: Sequence[bytes], incarnations: npt.NDArray[Any] | None = None) -> Ints:
    """Ids of connections between endpoints, of the first between them where no incarnations are given: int64[n]."""
    numbers = (np.zeros(len(endpoints)) if incarnations is None else incarnations).astype(">i8")
    keys = [key + number.tobytes() for key, number in zip(endpoints, numbers, strict=True)]
    lengths = np.array([len(key) for key in keys], np.int64)
    arena = np.frombuffer(b"".join(keys), np.uint8)
    return hash_spans(arena, np.cumsum(lengths) - lengths, lengths)


def endpoint_texts(frames: Frames) -> tuple[pa.Array[Any], pa.Array[Any]]:
    """(server, client) by connection as address:port; null where it is not known which side is which."""
    lower, higher = connection_endpoints(np.frombuffer(b"".join(frames.endpoints), np.uint8).reshape(-1, 36))
    client = frames.connections["client"]
    ends = pa.array([*lower, *higher, None], pa.string())
    n = len(client)
    row = np.arange(n)
    known = client >= 0
    return (
        ends.take(np.where(known, row + n * (1 - client), 2 * n)),
        ends.take(np.where(known, row + n * client, 2 * n)),
    )


def request_bodies(exchanges: Exchanges, which: Ints) -> tuple[Ints, Bodies]:
    """Of the exchanges `which`, those whose request is whole, and where its body is."""
    start, size = exchanges.of_request("start")[which], exchanges.of_request("size")[which]
    body = exchanges.of_request("body_start")[which]
    whole = (exchanges.of_request("missing")[which] == 0) & (body != UNKNOWN)
    found = which[whole]
    versions = exchanges.api_version[found].astype(np.int16)
    return found, Bodies(body[whole], (start + size)[whole], versions)


@kernel
def find_response_bodies(
    arena: Bytes, starts: Ints, ends: Ints, keys: Ints, versions: Ints, apis: Shorts,
    bodies: Ints, body_versions: Shorts,
) -> None:  # fmt: skip
    """Write body start and version of whole response frames; the start is -1 where the header cannot be read."""
    for i in range(len(starts)):
        fault, _, body = response_body_start(arena, starts[i], ends[i], keys[i], versions[i], apis)
        bodies[i] = body if fault == 0 else -1
        body_versions[i] = response_version(arena, bodies[i], ends[i], keys[i], versions[i])


def response_bodies(exchanges: Exchanges, which: Ints) -> tuple[Ints, Bodies]:
    """Of the exchanges `which`, those whose response is whole, and where its body is."""
    answered = exchanges.response[which] != UNKNOWN
    whole = answered & (exchanges.of_response("missing")[which] == 0) & (exchanges.request[which] != UNKNOWN)
    found = which[whole]
    start = exchanges.of_response("start")[found]
    end = start + exchanges.of_response("size")[found]
    bodies, versions = np.empty(len(found), np.int64), np.empty(len(found), np.int16)
    find_response_bodies(
        exchanges.frames.arena, start, end, exchanges.api_key[found], exchanges.api_version[found], API_TABLE,
        bodies, versions,
    )  # fmt: skip
    read = bodies >= 0
    exchanges.fault[found[~read]] = int(DecodeFault.TRUNCATED)
    return found[read], Bodies(bodies[read], end[read], versions[read])


def note_faults(exchanges: Exchanges, which: Ints, faults: Codes) -> Bools:
    """Keep the faults of decoded bodies with their exchanges; which bodies have none."""
    exchanges.fault[which] = np.where(faults != 0, faults, exchanges.fault[which])
    fine: Bools = faults == 0
    return fine


def addresses(endpoints: pa.Array[Any]) -> pa.Array[Any]:
    """The address of each address:port."""
    return pc.replace_substring_regex(endpoints, r":\d+$", "")


def shared_columns(exchanges: Exchanges, rows: Ints) -> dict[str, pa.Array[Any] | Ints]:
    """What rows of any table say of their exchange; rows: int64[n], the exchange of each row."""
    request_time, response_time = exchanges.of_request("last_time")[rows], exchanges.of_response("last_time")[rows]
    connection = exchanges.connection[rows]
    return {
        EXCHANGES.capture_id: repeated(exchanges.capture_id, len(rows)),
        EXCHANGES.connection_id: exchanges.connection_id[rows],
        EXCHANGES.exchange_no: exchanges.number[rows],
        EXCHANGES.broker: coded(exchanges.server, connection),
        EXCHANGES.client_address: coded(exchanges.client_address, connection),
        EXCHANGES.client_id: exchanges.client_id.take(rows),
        EXCHANGES.request_time: timestamps(request_time, request_time != UNKNOWN),
        EXCHANGES.response_time: timestamps(response_time, response_time != UNKNOWN),
    }


ANSWERED, NO_RESPONSE, UNANSWERED, ORPHAN_RESPONSE = range(4)
STATUSES = pa.array(["answered", "no_response", "unanswered", "orphan_response"])
"""By status code."""


def status_codes(exchanges: Exchanges) -> Ints:
    """How each exchange ended: int64[n]."""
    awaits = exchanges.of_request("awaits_response", 1)
    ends = [exchanges.request == UNKNOWN, exchanges.response != UNKNOWN, awaits == 0]
    return np.select(ends, [ORPHAN_RESPONSE, ANSWERED, NO_RESPONSE], default=UNANSWERED)


def missing_bytes(exchanges: Exchanges) -> Ints:
    """Bytes of both frames that the capture does not have."""
    return exchanges.of_request("missing", 0) + exchanges.of_response("missing", 0)


FAULT_NAMES = pa.array([None if fault == DecodeFault.OK else fault.name.lower() for fault in DecodeFault], pa.string())
"""By DecodeFault code, null for none."""


def present_bytes(size: Ints, missing: Ints) -> Ints:
    """Bytes of a frame that the capture has, its size included; 0 where there is no frame (UNKNOWN)."""
    present: Ints = np.where(size == UNKNOWN, 0, size + SIZE_BYTES - missing)
    return present


def known(values: Ints) -> pa.Array[Any]:
    """The values, null where they are UNKNOWN."""
    return array_of(values, values != UNKNOWN)


def exchange_rows(exchanges: Exchanges, of_log: Mapping[str, pa.Array[Any]] | None = None) -> pa.RecordBatch:
    """The rows of the table `exchanges`; of_log: the columns OF_LOG, which are null without it."""
    if of_log is None:
        of_log = nulls_besides(EXCHANGES, set(EXCHANGES.columns) - set(OF_LOG), len(exchanges))
    keys, versions = exchanges.api_key, exchanges.api_version
    is_request = exchanges.request != UNKNOWN
    correlation = np.where(is_request, exchanges.of_request("correlation_id"), exchanges.of_response("correlation_id"))
    request_missing, response_missing = exchanges.of_request("missing", 0), exchanges.of_response("missing", 0)
    first = exchanges.of_request("first_time"), exchanges.of_response("first_time")
    return rows_of(
        EXCHANGES,
        shared_columns(exchanges, np.arange(len(exchanges)))
        | {
            EXCHANGES.request_first_time: timestamps(first[0], first[0] != UNKNOWN),
            EXCHANGES.response_first_time: timestamps(first[1], first[1] != UNKNOWN),
            EXCHANGES.client_software_name: exchanges.names.texts_of(exchanges.software[0]),
            EXCHANGES.client_software_version: exchanges.names.texts_of(exchanges.software[1]),
            EXCHANGES.api_key: array_of(keys, is_request),
            EXCHANGES.api_name: coded(API_NAMES, api_codes(keys)),
            EXCHANGES.api_version: array_of(versions, is_request),
            EXCHANGES.correlation_id: correlation,
            EXCHANGES.request_packet: array_of(exchanges.of_request("last_packet"), is_request),
            EXCHANGES.response_packet: array_of(exchanges.of_response("last_packet"), exchanges.response != UNKNOWN),
            EXCHANGES.request_bytes: present_bytes(exchanges.of_request("size"), request_missing),
            EXCHANGES.response_bytes: present_bytes(exchanges.of_response("size"), response_missing),
            EXCHANGES.missing_bytes: missing_bytes(exchanges),
            EXCHANGES.status: coded(STATUSES, status_codes(exchanges)),
            EXCHANGES.error_code: known(exchanges.error),
            EXCHANGES.throttle_time_ms: known(exchanges.throttle),
            EXCHANGES.fetch_max_bytes: known(exchanges.fetch_max_bytes),
            EXCHANGES.fetch_session_id: known(exchanges.fetch_session_id),
            EXCHANGES.fetch_session_epoch: known(exchanges.fetch_session_epoch),
            EXCHANGES.group_id: exchanges.names.texts_of(exchanges.member[0]),
            EXCHANGES.member_id: exchanges.names.texts_of(exchanges.member[1]),
            EXCHANGES.decode_fault: coded(FAULT_NAMES, exchanges.fault),
        }
        | dict(of_log),
    )


def api_codes(keys: Ints) -> Ints:
    """Where in API_NAMES the names of API keys are."""
    unknown = len(API_NAMES) - 1
    return np.where((keys >= 0) & (keys < unknown), keys, unknown)
