"""Fetch requests that are cut in the capture: of what session they are, where that is there."""

from __future__ import annotations

import numpy as np

from schemas.wire.fetch import FETCH_REQUEST_START
from udfs.columns.arrays import Ints
from udfs.facts.exchanges import Exchanges
from udfs.facts.message_bodies import request_body_starts
from udfs.wire.encoding import least_bytes
from udfs.wire.layout import newest_version
from udfs.wire.messages import decode

_NEWEST = newest_version(FETCH_REQUEST_START.versions)
START_BYTES = np.array([least_bytes(FETCH_REQUEST_START.fields, version, False) for version in range(_NEWEST + 1)])
"""By version, bytes of a body up to its topics: int64[versions]."""


def note_cut_sessions(exchanges: Exchanges, which: Ints) -> None:
    """Keep session and epoch of the cut requests among the Fetch exchanges `which`; a version that is not known tells
    none.
    """
    cut, bodies = request_body_starts(exchanges, which)
    ends = bodies.starts + START_BYTES[np.clip(bodies.versions, 0, _NEWEST)]
    is_there = ends <= bodies.ends
    if not is_there.any():  # as nearly always: the reader need not be made
        return
    start = decode(
        FETCH_REQUEST_START, exchanges.frames.arena, bodies.starts[is_there], ends[is_there], bodies.versions[is_there]
    )
    fine, top = start.fault == 0, start.levels[""]
    told = cut[is_there][fine]
    exchanges.fetch_session_id[told] = top.column("session_id")[fine]
    exchanges.fetch_session_epoch[told] = top.column("session_epoch")[fine]
