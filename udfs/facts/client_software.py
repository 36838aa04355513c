"""The software of clients, which they report in ApiVersions requests (KIP-511)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from schemas.wire.api_versions import API_VERSIONS_REQUEST
from udfs.capture.packet_chunks import Frames
from udfs.columns.arrays import Bools, Ints
from udfs.columns.sentinels import UNKNOWN
from udfs.facts.exchanges import Exchanges
from udfs.facts.hashed_names import ABSENT
from udfs.facts.message_bodies import Bodies
from udfs.kernels.kernel import kernel
from udfs.wire.messages import decode_bodies

FIELDS = ("client_software_name", "client_software_version")
NONE_EARLIER: Mapping[int, Ints] = MappingProxyType({})


@dataclass
class ClientSoftware:
    """What the client of the unfinished connection has reported: hashes of name and version, int64[2].

    It comes from the last of its requests that no longer waits for a response. Requests that still wait are in the next
    chunk again.
    """

    hashes: Ints = field(default_factory=lambda: np.full(2, ABSENT))


class Reports(NamedTuple):
    """What requests report about the client's software, by connection and in order.

    request: int64[n], row of the chunk's requests. The first report is the one of earlier chunks for connection 0; its
    request is UNKNOWN. connection: int64[n]. is_open: bool[n], whether the request waits for a response. hashes:
    int64[2, n], of name and version.
    """

    request: Ints
    connection: Ints
    is_open: Bools
    hashes: Ints

    def of_connections(self, report: Ints, connection: Ints) -> Ints:
        """For each connection, the hashes of a report, ABSENT if the report is another connection's: int64[2, n]."""
        return np.where(self.connection[report] == connection, self.hashes[:, report], ABSENT)


def learn_software(exchanges: Exchanges, carried: ClientSoftware, earlier: Mapping[int, Ints] = NONE_EARLIER) -> Ints:
    """Fill in the client software of all exchanges that have a request: the last report up to that request.

    earlier: what a client had reported before the capture, int64[2], by connection of the chunk.
    Updates `carried`. Returns the last report on each connection: hashes of name and version, int64[2, connections].
    """
    reports = with_earlier(reported_software(exchanges, carried), exchanges.frames.requests["connection"], earlier)
    _fill_software(exchanges.request, exchanges.connection, reports, *exchanges.software)
    connections = np.arange(len(exchanges.frames.connections))
    last_closed = np.flatnonzero(~reports.is_open)[-1:]
    carried.hashes = reports.of_connections(last_closed, np.full(1, len(connections) - 1))[:, 0]
    return reports.of_connections(np.searchsorted(reports.connection, connections, "right") - 1, connections)


def with_earlier(reports: Reports, requests: Ints, earlier: Mapping[int, Ints]) -> Reports:
    """The reports with those from before the capture. Each of these comes first in its connection, as if the first
    request had it. requests: int64[n], the connection of each request of the chunk.
    """
    if not earlier:
        return reports
    connection = np.array(sorted(earlier), np.int64)
    place = np.searchsorted(reports.connection[1:], connection) + 1  # the first report is that of earlier chunks
    return Reports(
        request=np.insert(reports.request, place, np.searchsorted(requests, connection)),
        connection=np.insert(reports.connection, place, connection),
        is_open=np.insert(reports.is_open, place, False),
        hashes=np.insert(reports.hashes, place, np.stack([earlier[c] for c in connection.tolist()], axis=1), axis=1),
    )


@kernel
def _fill_software(request: Ints, connection: Ints, reports: Reports, name: Ints, version: Ints) -> None:
    """Write the hashes of each exchange's software; request, connection: int64[n], of the exchanges.

    The requests are in ascending order, except that UNKNOWN, for responses without a request, may be between them.
    """
    report = 0
    for exchange in range(len(request)):
        name[exchange] = version[exchange] = ABSENT
        while report + 1 < len(reports.request) and reports.request[report + 1] <= request[exchange]:
            report += 1
        if request[exchange] != UNKNOWN and reports.connection[report] == connection[exchange]:
            name[exchange], version[exchange] = reports.hashes[0, report], reports.hashes[1, report]


def logged_software(exchanges: Exchanges, carried: ClientSoftware) -> Ints:
    """The software of each connection's client, from exchanges that already have it, as those of request logs.

    Updates `carried`. Returns hashes of name and version, int64[2, connections].
    """
    by_connection = np.full((2, len(exchanges.frames.connections)), ABSENT)
    by_connection[:, :1] = carried.hashes.reshape(2, 1)
    hashes = np.stack(exchanges.software)
    reporting = np.flatnonzero(hashes[0] != ABSENT)
    by_connection[:, exchanges.connection[reporting]] = hashes[:, reporting]
    carried.hashes = by_connection[:, -1] if by_connection.size else carried.hashes
    return by_connection


def reported_software(exchanges: Exchanges, carried: ClientSoftware) -> Reports:
    """What the chunk's ApiVersions requests report, including those that wait for a response."""
    arena, requests = exchanges.frames.arena, exchanges.frames.requests
    rows, bodies = whole_requests(exchanges.frames)
    top = decode_bodies(API_VERSIONS_REQUEST, arena, *bodies).levels[""]
    reporting = np.flatnonzero(top.span(FIELDS[0])[1] > 0)
    spans = [(starts[reporting], lengths[reporting]) for starts, lengths in map(top.span, FIELDS)]
    hashes = np.stack([exchanges.names.learn(arena, *span) for span in spans])
    frames = requests[rows[reporting]]
    return Reports(
        request=np.append(UNKNOWN, rows[reporting]),
        connection=np.append(0, frames["connection"]),
        is_open=np.append(0, frames["is_open"]) == 1,
        hashes=np.column_stack((carried.hashes, hashes)),
    )


def whole_requests(frames: Frames) -> tuple[Ints, Bodies]:
    """(rows of the chunk's ApiVersions requests that were captured whole, int64[n]; their bodies)."""
    rows = np.flatnonzero(frames.requests["api_key"] == API_VERSIONS_REQUEST.api_key)
    requests = frames.requests[rows]
    is_whole = (requests["missing"] + requests["unsent"] == 0) & (requests["body_start"] != UNKNOWN)
    whole = requests[is_whole]
    bodies = Bodies(whole["body_start"], whole["start"] + whole["size"], whole["api_version"].astype(np.int16))
    return rows[is_whole], bodies
