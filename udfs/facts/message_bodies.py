"""Where the bodies of a chunk's requests and responses are, and the faults in reading them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Bools, Bytes, Codes, Ints, Shorts
from udfs.columns.sentinels import UNKNOWN
from udfs.facts.exchanges import LACKING, Exchanges
from udfs.kernels.kernel import kernel
from udfs.wire.faults import DecodeFault
from udfs.wire.header import API_TABLE, response_body_start, response_version


class Bodies(NamedTuple):
    """Bodies of messages: where each is in the arena, int64[n], and its version, int16[n]."""

    starts: Ints
    ends: Ints
    versions: Shorts


def request_bodies(exchanges: Exchanges, which: Ints) -> tuple[Ints, Bodies]:
    """(which of these exchanges have a whole request, int64[m]; the bodies of these requests). which: int64[n]."""
    start, size = exchanges.request_fields["start"][which], exchanges.request_fields["size"][which]
    body = exchanges.request_fields["body_start"][which]
    whole = (exchanges.request_fields[LACKING][which] == 0) & (body != UNKNOWN)
    exchange = which[whole]
    versions = exchanges.api_version[exchange].astype(np.int16)
    return exchange, Bodies(body[whole], (start + size)[whole], versions)


def request_body_starts(exchanges: Exchanges, which: Ints) -> tuple[Ints, Bodies]:
    """(which of these exchanges have a request that was sent whole but is cut in the capture; its body up to the cut).

    which: int64[n]. The exchanges are int64[m].
    """
    body = exchanges.request_fields["body_start"][which]
    is_cut = (exchanges.request_fields["missing"][which] > 0) & (exchanges.request_fields["unsent"][which] == 0)
    is_there = is_cut & (body != UNKNOWN)
    exchange = which[is_there]
    there = exchanges.frames.requests["prefix"][exchanges.request[exchange]]
    ends = exchanges.request_fields["start"][exchange] + there
    return exchange, Bodies(body[is_there], ends, exchanges.api_version[exchange].astype(np.int16))


class ResponseFrames(NamedTuple):
    """Whole response frames in the arena, and key and version of the requests that they answer; int64[n] each."""

    starts: Ints
    ends: Ints
    api_keys: Ints
    api_versions: Ints


@kernel
def find_response_bodies(arena: Bytes, frames: ResponseFrames, apis: Shorts, bodies: Ints, versions: Shorts) -> None:
    """Write where each response's body begins, -1 if its header cannot be read, and the body's version.

    arena: uint8. apis: API_TABLE. bodies: int64[n], versions: int16[n], both overwritten.
    """
    for i in range(len(frames.starts)):
        start, end, key, version = frames.starts[i], frames.ends[i], frames.api_keys[i], frames.api_versions[i]
        fault, _, body = response_body_start(arena, start, end, key, version, apis)
        bodies[i] = body if fault == 0 else -1
        versions[i] = response_version(arena, bodies[i], end, key, version)


def response_bodies(exchanges: Exchanges, which: Ints) -> tuple[Ints, Bodies]:
    """(which of these exchanges have a whole response, int64[m]; the bodies of these responses). which: int64[n]."""
    answered = exchanges.response[which] != UNKNOWN
    whole = answered & (exchanges.response_fields[LACKING][which] == 0) & (exchanges.request[which] != UNKNOWN)
    exchange = which[whole]
    return response_bodies_of(exchanges, exchange, exchanges.api_key[exchange], exchanges.api_version[exchange])


def response_bodies_of(exchanges: Exchanges, which: Ints, keys: Ints, versions: Ints) -> tuple[Ints, Bodies]:
    """(which of these exchanges have a response whose header can be read; the bodies). All must have a whole response.

    which: int64[n]. keys, versions: int64[n], of the requests that they answer.
    """
    start = exchanges.response_fields["start"][which]
    end = start + exchanges.response_fields["size"][which]
    bodies, body_versions = np.empty(len(which), np.int64), np.empty(len(which), np.int16)
    frames = ResponseFrames(start, end, keys, versions)
    find_response_bodies(exchanges.frames.arena, frames, API_TABLE, bodies, body_versions)
    is_read = bodies >= 0
    exchanges.fault[which[~is_read]] = int(DecodeFault.TRUNCATED)
    return which[is_read], Bodies(bodies[is_read], end[is_read], body_versions[is_read])


def note_faults(exchanges: Exchanges, which: Ints, faults: Codes) -> Bools:
    """Note the faults of decoded bodies with their exchanges. Returns which bodies have no fault: bool[n]."""
    exchanges.fault[which] = np.where(faults != 0, faults, exchanges.fault[which])
    return faults == 0
