"""Compiles every kernel of this replay."""

from __future__ import annotations

import numpy as np

from schemas.tables.steps import SESSION_EVENTS, SHARE_EVENTS
from udfs.kernels.blank_rows import blank_rows
from udfs.replay.session_cache.broker import make_headroom, new_broker
from udfs.replay.session_cache.replay import replay_sessions
from udfs.replay.session_cache.settings import CURRENT, SessionLanes, ShareLanes, cache_settings
from udfs.replay.session_cache.share_sessions.replay import replay_share_sessions
from udfs.replay.session_cache.share_sessions.state import REQUEST, SHARE_SETTINGS
from udfs.replay.shared.int_map import new_map, with_room_for


def warm_up() -> None:
    """Run a full fetch of one partition, and one of a share group."""
    events = blank_rows(SESSION_EVENTS, 2, position=np.array([-1, 0]))
    lanes = SessionLanes(("captured",), cache_settings(1, 1, 1, CURRENT))
    for _ in replay_sessions([events], lanes, "", ""):
        pass
    make_headroom(new_broker("", lanes, ""), 1)  # as for a broker with more sessions
    known = new_map()
    with_room_for(known, len(known.keys))  # the same
    shared = blank_rows(SHARE_EVENTS, 1, kind=np.array([REQUEST]))
    for _ in replay_share_sessions([shared], ShareLanes(("captured",), np.zeros(1, SHARE_SETTINGS)), ""):
        pass
