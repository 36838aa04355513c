"""Have every kernel of this replay compiled."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from schemas.tables.event_kinds import LogEvent
from schemas.tables.steps import LOG_EVENTS
from udfs.kernels.blank_rows import blank_rows
from udfs.replay.fetch_max_bytes.client_pace import as_captured_clients
from udfs.replay.fetch_max_bytes.fetch_lanes import FetchLanes
from udfs.replay.fetch_max_bytes.fetch_read import Lanes
from udfs.replay.fetch_max_bytes.fetch_replay import replay_fetches
from udfs.replay.fetch_max_bytes.log_reads import reads
from udfs.replay.fetch_max_bytes.timeline import halve, new_timeline
from udfs.replay.shared.lanes import AS_CAPTURED


def warm_up() -> None:
    """A batch, a witness and a read of one partition, in two lanes."""
    for _ in replay_fetches(reads([log_and_read()], 1 << 20), two_fetch_lanes(), ""):
        pass
    halve(new_timeline(1, 1, np.zeros(1, np.int64), np.ones(1, np.int64)), 0)  # as for lanes that end at other times


def log_and_read() -> pa.RecordBatch:
    """A batch, a witness and a read of one partition."""
    return blank_rows(LOG_EVENTS, 3, kind=np.array([*LogEvent]), size_bytes=np.full(3, 100))


def two_fetch_lanes() -> FetchLanes:
    """The captured limits and others."""
    limits = np.array([AS_CAPTURED, 1 << 20])
    lanes = Lanes(limits, limits, np.full(2, 1 << 20), np.zeros(2, np.int64))
    clients = as_captured_clients(2)
    return FetchLanes(("captured", "other"), lanes, lanes, clients, clients)
