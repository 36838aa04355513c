"""Where the bodies of a chunk's requests and responses lie, and what could not be read of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.capture.segments import UNKNOWN
from udfs.columns.arrays import Bools, Bytes, Codes, Ints, Shorts
from udfs.facts.exchanges import LACKING, Exchanges
from udfs.kernels.kernel import kernel
from udfs.wire.faults import DecodeFault
from udfs.wire.header import API_TABLE, response_body_start, response_version


class Bodies(NamedTuple):
    """Where messages' bodies lie in the arena and in which version they are written; int64[n], versions int16[n]."""

    starts: Ints
    ends: Ints
    versions: Shorts


def request_bodies(exchanges: Exchanges, which: Ints) -> tuple[Ints, Bodies]:
    """Of the exchanges `which`, those whose request is whole, and where its body is."""
    start, size = exchanges.request_fields["start"][which], exchanges.request_fields["size"][which]
    body = exchanges.request_fields["body_start"][which]
    whole = (exchanges.request_fields[LACKING][which] == 0) & (body != UNKNOWN)
    found = which[whole]
    versions = exchanges.api_version[found].astype(np.int16)
    return found, Bodies(body[whole], (start + size)[whole], versions)


def request_body_starts(exchanges: Exchanges, which: Ints) -> tuple[Ints, Bodies]:
    """Of the exchanges `which`, those whose request was sent whole and is cut in the capture, and what is there of its
    body up to the first gap.
    """
    body = exchanges.request_fields["body_start"][which]
    is_cut = (exchanges.request_fields["missing"][which] > 0) & (exchanges.request_fields["unsent"][which] == 0)
    is_there = is_cut & (body != UNKNOWN)
    found = which[is_there]
    there = exchanges.frames.requests["prefix"][exchanges.request[found]]
    ends = exchanges.request_fields["start"][found] + there
    return found, Bodies(body[is_there], ends, exchanges.api_version[found].astype(np.int16))


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
    whole = answered & (exchanges.response_fields[LACKING][which] == 0) & (exchanges.request[which] != UNKNOWN)
    found = which[whole]
    start = exchanges.response_fields["start"][found]
    end = start + exchanges.response_fields["size"][found]
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
    return faults == 0
