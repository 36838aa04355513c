"""Reads a range of a request log: each line becomes a row with the request that it reports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from udfs.capture.endpoints import logged_connection
from udfs.capture.json_lines import parse_json_lines
from udfs.capture.line_blocks import LineBlock, line_blocks
from udfs.capture.log_lines import FINE, NO_JSON, lines_of_block
from udfs.capture.packet_ranges import PacketRange
from udfs.capture.packets import open_range
from udfs.capture.request_log_head import UTC
from udfs.capture.storage import open_stored
from udfs.columns.arrays import Bools, Ints
from udfs.columns.arrow_columns import arrow_array, bool_values, is_not_null
from udfs.columns.arrow_columns import compute as pc
from udfs.columns.time_units import NS_PER_MS

MOST_TAKEN_MS = 1e12

_REQUEST: list[tuple[str, pa.DataType]] = [
    ("connection", pa.string()),
    ("file_no", pa.int32()),
    ("line_no", pa.int64()),
    ("size", pa.int32()),
    ("fault", pa.int8()),
    ("completed", pa.int64()),
    ("taken", pa.int64()),
    ("api_key", pa.int16()),
    ("api_version", pa.int16()),
    ("correlation_id", pa.int32()),
    ("client_id", pa.string()),
    ("software_name", pa.string()),
    ("software_version", pa.string()),
    ("answered", pa.bool_()),
    ("error_code", pa.int16()),
    ("throttle_time_ms", pa.int32()),
    ("json", pa.string()),
    ("listener", pa.string()),
    ("security_protocol", pa.string()),
    ("principal", pa.string()),
    ("request_queue_time_ms", pa.float64()),
    ("local_time_ms", pa.float64()),
    ("remote_time_ms", pa.float64()),
    ("api_throttle_time_ms", pa.float64()),
    ("response_queue_time_ms", pa.float64()),
    ("send_time_ms", pa.float64()),
    ("total_time_ms", pa.float64()),
]
LOGGED_REQUESTS = pa.schema(_REQUEST)
"""One line of a request log.

connection:       its name in the log, unique among a broker's connections; empty if the line cannot be read
file_no:          place of the file in the set, by the time of its first line, so that rotated files follow each other
line_no, size:    place in the file from 0, bytes as stored
fault:            FINE, or why the line cannot be read; then the columns below are 0 or null
completed, taken: ns: when the response had been sent (since 1970), and the time from the request's arrival until then
answered:         false for a produce request with acks=0
error_code, throttle_time_ms: of the response, null if it has none at its top level
json:             the line's object, for the APIs whose bodies are read
listener, security_protocol, principal, ..._time_ms: as in the line, null if it lacks them
"""


TIMES = {
    "request_queue_time_ms": "requestQueueTimeMs",
    "local_time_ms": "localTimeMs",
    "remote_time_ms": "remoteTimeMs",
    "api_throttle_time_ms": "throttleTimeMs",
    "response_queue_time_ms": "responseQueueTimeMs",
    "send_time_ms": "sendTimeMs",
    "total_time_ms": "totalTimeMs",
}
SECURITY = {"listener": "listener", "security_protocol": "securityProtocol", "principal": "principal"}
"""The keys of these columns at the top level of a line's object (kafka.network.RequestConvertToJson)."""


def _struct(**fields: pa.DataType) -> pa.StructType:
    return pa.struct(list(fields.items()))


_ENVELOPE: list[tuple[str, pa.DataType]] = [
    (
        "requestHeader",
        _struct(requestApiKey=pa.int16(), requestApiVersion=pa.int16(), correlationId=pa.int32(), clientId=pa.string()),
    ),
    ("request", _struct(clientSoftwareName=pa.string(), clientSoftwareVersion=pa.string())),
    ("response", _struct(errorCode=pa.int16(), throttleTimeMs=pa.int32())),
    ("connection", pa.string()),
    *((name, pa.float64()) for name in TIMES.values()),
    *((name, pa.string()) for name in SECURITY.values()),
    ("clientInformation", _struct(softwareName=pa.string(), softwareVersion=pa.string())),
]
ENVELOPE = pa.schema(_ENVELOPE)
FIELDS_OF_COLUMNS = {
    "api_key": ("requestHeader", "requestApiKey"),
    "api_version": ("requestHeader", "requestApiVersion"),
    "correlation_id": ("requestHeader", "correlationId"),
    "client_id": ("requestHeader", "clientId"),
    "error_code": ("response", "errorCode"),
    "throttle_time_ms": ("response", "throttleTimeMs"),
}
SOFTWARE = {
    "software_name": (("request", "clientSoftwareName"), ("clientInformation", "softwareName")),
    "software_version": (("request", "clientSoftwareVersion"), ("clientInformation", "softwareVersion")),
}
"""The client's software in a line: it is in an ApiVersions request (KIP-511), and after that in all lines of the
connection."""

NEEDED = ("api_key", "api_version", "correlation_id", "connection")
NO_RESPONSE, NULL_RESPONSE = '"response":"",', '"response":null,'  # up to Kafka 4.3, and later


def read_requests(
    r: PacketRange, *, file_no: int, bodies_of: tuple[int, ...], block_bytes: int, zone: str = UTC
) -> Iterator[pa.RecordBatch]:
    """The requests of a range of a log, in file order, as batches of LOGGED_REQUESTS.

    bodies_of: keys of the APIs whose rows have the whole line. block_bytes: how much is read at once; it changes only
    where batches are cut, never the rows. zone: the zone of times that name none, as for `index_stored_log`. If one
    broker forwarded a request to another, the second line about it is left out. Raises CaptureError if the file cannot
    be read.
    """
    with open_stored(r.path) as stored:
        stream = open_range(stored, r)
        for block in line_blocks(
            stream, first_byte=r.first_byte, first_line=r.first_packet, length=r.length, block_bytes=block_bytes
        ):
            yield _requests_in_block(block, zone, file_no, bodies_of)


def _requests_in_block(block: LineBlock, zone: str, file_no: int, bodies_of: tuple[int, ...]) -> pa.RecordBatch:
    lines = lines_of_block(block.content, zone)
    lines = lines.take(np.flatnonzero(~lines.forwarded))
    readable = np.flatnonzero(lines.fault == FINE)
    json = pc.replace_substring(lines.json.take(arrow_array(readable)), NO_RESPONSE, NULL_RESPONSE)
    objects, is_read = parse_json_lines(json, ENVELOPE)
    columns, taken, is_whole = _request_columns(objects)
    whole = readable[is_read][is_whole]
    fault = lines.fault.copy()
    fault[np.setdiff1d(readable, whole)] = NO_JSON

    row = np.full(len(lines.number), -1)
    row[whole] = np.flatnonzero(is_whole)
    at = arrow_array(row, row >= 0)
    by_line = {name: values.take(at) for name, values in columns.items()}
    wanted = pc.is_in(by_line["api_key"], value_set=pa.array(bodies_of, pa.int16()))
    line_json = json.take(arrow_array(np.flatnonzero(is_read))).take(at)
    by_line |= {
        "connection": pc.fill_null(by_line["connection"], ""),
        "answered": pc.fill_null(by_line["answered"], False),
        "json": pc.if_else(wanted, line_json, None),
        "taken": pc.fill_null(arrow_array(taken).take(at), 0),
        "file_no": arrow_array(np.full(len(lines.number), file_no)),
        "line_no": arrow_array(lines.number + block.first_line),
        "size": arrow_array(lines.size),
        "fault": arrow_array(fault),
        "completed": arrow_array(lines.completed),
    }
    return pa.RecordBatch.from_arrays([by_line[f.name].cast(f.type) for f in LOGGED_REQUESTS], schema=LOGGED_REQUESTS)


def _request_columns(objects: pa.StructArray) -> tuple[dict[str, pa.Array[Any]], Ints, Bools]:
    """(columns of the requests, the time that they took in ns, which of them have all that a request must have)."""
    columns = {name: pc.struct_field(objects, list(path)) for name, path in FIELDS_OF_COLUMNS.items()}
    for name, paths in SOFTWARE.items():
        columns[name] = pc.coalesce(*(pc.struct_field(objects, list(path)) for path in paths))
    for name, key in {**TIMES, **SECURITY, "connection": "connection"}.items():
        columns[name] = pc.struct_field(objects, key)
    columns["answered"] = pc.struct_field(objects, "response").is_valid()
    ms = pc.fill_null(columns["total_time_ms"], -1.0).to_numpy(zero_copy_only=False)
    in_range = (ms >= 0) & (ms < MOST_TAKEN_MS)  # false for NaN
    whole = in_range & _are_connections(columns["connection"])
    for name in NEEDED:
        whole &= is_not_null(columns[name])
    taken = np.rint(np.where(in_range, ms, 0) * NS_PER_MS).astype(np.int64)
    return columns, taken, whole


def _are_connections(texts: pa.Array[Any]) -> Bools:
    """Which texts name a connection: bool[n]. Each distinct text is parsed once."""
    coded = texts.dictionary_encode()
    fine = pa.array([logged_connection(text) is not None for text in coded.dictionary.to_pylist()], pa.bool_())
    return bool_values(pc.fill_null(fine.take(coded.indices), False))
