"""The fetch sessions of Fetch requests that are cut in the capture, read from what was captured of them."""

from __future__ import annotations

import numpy as np

from schemas.wire.fetch import FETCH_REQUEST_START
from udfs.columns.arrays import Ints
from udfs.facts.exchanges import Exchanges
from udfs.facts.message_bodies import request_body_starts
from udfs.wire.encoding import least_bytes
from udfs.wire.layout import newest_version
from udfs.wire.messages import decode_bodies

_NEWEST = newest_version(FETCH_REQUEST_START.versions)
START_BYTES = np.array([least_bytes(FETCH_REQUEST_START.fields, version, False) for version in range(_NEWEST + 1)])
"""Bytes of a body up to its topics, by version: int64[versions]."""


def note_cut_sessions(exchanges: Exchanges, which: Ints) -> None:
    """Note the session ids and epochs of cut requests in the Fetch exchanges `which`, unless a version is unknown."""
    cut, bodies = request_body_starts(exchanges, which)
    ends = bodies.starts + START_BYTES[np.clip(bodies.versions, 0, _NEWEST)]
    is_there = ends <= bodies.ends
    if not is_there.any():  # as nearly always: the reader need not be made
        return
    start = decode_bodies(
        FETCH_REQUEST_START, exchanges.frames.arena, bodies.starts[is_there], ends[is_there], bodies.versions[is_there]
    )
    fine, top = start.fault == 0, start.levels[""]
    exchange = cut[is_there][fine]
    exchanges.fetch_session_id[exchange] = top.column("session_id")[fine]
    exchanges.fetch_session_epoch[exchange] = top.column("session_epoch")[fine]
