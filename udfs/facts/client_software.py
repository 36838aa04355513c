"""What ApiVersions requests tell of a client's software (KIP-511)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from schemas.wire.api_versions import API_VERSIONS_REQUEST
from udfs.capture.chunks import Frames
from udfs.capture.segments import UNKNOWN
from udfs.facts.bodies import Bodies
from udfs.facts.exchanges import Exchanges
from udfs.facts.names import ABSENT
from udfs.wire.arrays import Ints
from udfs.wire.messages import decode

FIELDS = ("client_software_name", "client_software_version")


@dataclass
class ClientSoftware:
    """What the unfinished connection's client has said of itself: hashes of name and version, int64[2].

    By the last request of it that waits for no answer any more: those that wait come with the next chunk again.
    """

    hashes: Ints = field(default_factory=lambda: np.full(2, ABSENT))


def learn_software(exchanges: Exchanges, carried: ClientSoftware) -> Ints:
    """Fill in the client software of all exchanges: what the last request up to theirs told, and none of orphans.

    `carried` is brought up to date. Returns what each connection's last request told: hashes of name and version,
    int64[2, connections].
    """
    frames, own = exchanges.frames, np.arange(len(exchanges.frames.connections))
    rows, told = told_software(exchanges)
    request, connection = np.append(UNKNOWN, rows), np.append(0, frames.requests["connection"][rows])
    hashes = np.column_stack((carried.hashes, told))
    last = np.searchsorted(request, exchanges.request, "right") - 1
    is_told = (exchanges.request != UNKNOWN) & (connection[last] == exchanges.connection)
    for software, values in zip(exchanges.software, hashes, strict=True):
        software[:] = np.where(is_told, values[last], ABSENT)
    closed = np.flatnonzero(np.append(0, frames.requests["is_open"][rows]) == 0)[-1]
    carried.hashes = np.where(connection[closed] == len(own) - 1, hashes[:, closed], ABSENT)
    of_own = np.searchsorted(connection, own, "right") - 1
    return np.where(connection[of_own] == own, hashes[:, of_own], ABSENT)


def software_by_connection(exchanges: Exchanges, carried: ClientSoftware) -> Ints:
    """As `learn_software` returns it, of exchanges that have their software, as those of a log's lines do."""
    found = np.full((2, len(exchanges.frames.connections)), ABSENT)
    found[:, :1] = carried.hashes.reshape(2, 1)
    hashes = np.stack(exchanges.software)
    tells = np.flatnonzero(hashes[0] != ABSENT)
    found[:, exchanges.connection[tells]] = hashes[:, tells]
    carried.hashes = found[:, -1] if found.size else carried.hashes
    return found


def told_software(exchanges: Exchanges) -> tuple[Ints, Ints]:
    """Rows of the chunk's requests that tell the software, also of those that wait for an answer, and hashes of what
    they tell: int64[n], int64[2, n].
    """
    arena = exchanges.frames.arena
    rows, bodies = whole_requests(exchanges.frames)
    top = decode(API_VERSIONS_REQUEST, arena, *bodies).levels[""]
    tells = np.flatnonzero(top.span(FIELDS[0])[1] > 0)
    spans = [(starts[tells], lengths[tells]) for starts, lengths in map(top.span, FIELDS)]
    return rows[tells], np.stack([exchanges.names.learn(arena, *span) for span in spans])


def whole_requests(frames: Frames) -> tuple[Ints, Bodies]:
    """Rows of the chunk's ApiVersions requests that are there whole, and where their bodies are."""
    asks = np.flatnonzero(frames.requests["api_key"] == API_VERSIONS_REQUEST.api_key)
    found = frames.requests[asks]
    is_whole = (found["missing"] + found["unsent"] == 0) & (found["body_start"] != UNKNOWN)
    whole = found[is_whole]
    bodies = Bodies(whole["body_start"], whole["start"] + whole["size"], whole["api_version"].astype(np.int16))
    return asks[is_whole], bodies
