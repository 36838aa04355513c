"""What ApiVersions requests tell of a client's software (KIP-511)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from schemas.wire.api_versions import API_VERSIONS_REQUEST
from udfs.capture.packet_chunks import Frames
from udfs.capture.segments import UNKNOWN
from udfs.columns.arrays import Bools, Ints
from udfs.facts.exchanges import Exchanges
from udfs.facts.hashed_names import ABSENT
from udfs.facts.message_bodies import Bodies
from udfs.kernels.kernel import kernel
from udfs.wire.messages import decode

FIELDS = ("client_software_name", "client_software_version")


@dataclass
class ClientSoftware:
    """What the unfinished connection's client has said of itself: hashes of name and version, int64[2].

    By the last request of it that waits for no answer any more: those that wait come with the next chunk again.
    """

    hashes: Ints = field(default_factory=lambda: np.full(2, ABSENT))


class Told(NamedTuple):
    """What requests tell of the software, by connection and in order; first what earlier chunks told of connection 0.

    request: int64[n], row of the chunk's requests, UNKNOWN for the first; connection: int64[n]; is_open: bool[n],
    whether the request waits for an answer; hashes: int64[2, n] of name and version.
    """

    request: Ints
    connection: Ints
    is_open: Bools
    hashes: Ints

    def of(self, entry: Ints, connection: Ints) -> Ints:
        """The hashes of entries, ABSENT where they are not of the connection that is asked for: int64[2, m]."""
        return np.where(self.connection[entry] == connection, self.hashes[:, entry], ABSENT)


def learn_software(exchanges: Exchanges, carried: ClientSoftware) -> Ints:
    """Fill in the client software of all exchanges: what the last request up to theirs told, and none of orphans.

    `carried` is brought up to date. Returns what each connection's last request told: hashes of name and version,
    int64[2, connections].
    """
    told = told_software(exchanges, carried)
    _fill(exchanges.request, exchanges.connection, told.request, told.connection, told.hashes, *exchanges.software)
    connections = np.arange(len(exchanges.frames.connections))
    last_closed = np.flatnonzero(~told.is_open)[-1:]
    carried.hashes = told.of(last_closed, np.full(1, len(connections) - 1))[:, 0]
    return told.of(np.searchsorted(told.connection, connections, "right") - 1, connections)


@kernel
def _fill(
    request: Ints, connection: Ints, told_request: Ints, told_connection: Ints, told: Ints, name: Ints, version: Ints
) -> None:
    """Write the hashes of `name` and `version` by exchange, whose requests are in order but for those of orphans."""
    entry = 0
    for exchange in range(len(request)):
        name[exchange] = version[exchange] = ABSENT
        while entry + 1 < len(told_request) and told_request[entry + 1] <= request[exchange]:
            entry += 1
        if request[exchange] != UNKNOWN and told_connection[entry] == connection[exchange]:
            name[exchange], version[exchange] = told[0, entry], told[1, entry]


def software_by_connection(exchanges: Exchanges, carried: ClientSoftware) -> Ints:
    """As `learn_software` returns it, of exchanges that have their software, as those of a log's lines do."""
    found = np.full((2, len(exchanges.frames.connections)), ABSENT)
    found[:, :1] = carried.hashes.reshape(2, 1)
    hashes = np.stack(exchanges.software)
    tells = np.flatnonzero(hashes[0] != ABSENT)
    found[:, exchanges.connection[tells]] = hashes[:, tells]
    carried.hashes = found[:, -1] if found.size else carried.hashes
    return found


def told_software(exchanges: Exchanges, carried: ClientSoftware) -> Told:
    """What the chunk's requests tell, those that wait for an answer included."""
    arena, requests = exchanges.frames.arena, exchanges.frames.requests
    rows, bodies = whole_requests(exchanges.frames)
    top = decode(API_VERSIONS_REQUEST, arena, *bodies).levels[""]
    tells = np.flatnonzero(top.span(FIELDS[0])[1] > 0)
    spans = [(starts[tells], lengths[tells]) for starts, lengths in map(top.span, FIELDS)]
    hashes = np.stack([exchanges.names.learn(arena, *span) for span in spans])
    telling = requests[rows[tells]]
    return Told(
        np.append(UNKNOWN, rows[tells]),
        np.append(0, telling["connection"]),
        np.append(0, telling["is_open"]) == 1,
        np.column_stack((carried.hashes, hashes)),
    )


def whole_requests(frames: Frames) -> tuple[Ints, Bodies]:
    """Rows of the chunk's ApiVersions requests that are there whole, and where their bodies are."""
    asks = np.flatnonzero(frames.requests["api_key"] == API_VERSIONS_REQUEST.api_key)
    found = frames.requests[asks]
    is_whole = (found["missing"] + found["unsent"] == 0) & (found["body_start"] != UNKNOWN)
    whole = found[is_whole]
    bodies = Bodies(whole["body_start"], whole["start"] + whole["size"], whole["api_version"].astype(np.int16))
    return asks[is_whole], bodies
