"""Turns rows of LOG_EVENTS into records: the batches of a partition that a capture shows, and the reads of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from schemas.tables.event_kinds import LogEvent
from schemas.tables.steps import LOG_EVENTS
from schemas.tables.values import FOLLOWER
from udfs.columns.arrays import Bools, Records
from udfs.columns.arrow_columns import compute
from udfs.columns.records import Kind
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import ALWAYS, NEVER
from udfs.replay.fetch_max_bytes.state import CARRIED
from udfs.replay.shared.columns import int_column

NO_BOUND = NONE
"""Stands for the offset up to which a read could go: the log end."""
EPOCH_UNKNOWN = NONE
"""The epoch of a produced batch, because the broker sets it on the append, and of batches of formats 0 and 1."""

PASSED_ON = tuple(name for name in CARRIED.names or () if name in LOG_EVENTS.columns)
"""The fields of a read in READS that its row of LOG_EVENTS already has."""
LOG_EVENT: Kind = np.dtype(
    [
        *((name, CARRIED[name]) for name in PASSED_ON),
        ("kind", np.int8),  # LogEvent
        ("position", np.int64),  # a batch's base offset, a transaction's first offset, or the time of the request (us)
        ("last_offset", np.int64),
        ("size_bytes", np.int64),
        ("append_after", np.int64),  # us, or ALWAYS if no produce request shows it
        ("append_before", np.int64),  # us, or NEVER
        ("is_old_format", np.bool_),  # a message or wrapper of format 0 or 1
        ("is_sparse", np.bool_),  # a batch has fewer records than offsets
        ("records", np.int64),  # of a batch: how many a consumer can be given, or NONE
        ("producer_id", np.int64),  # of an aborted transaction, or of a batch that is part of one; else NONE
        ("is_control", np.bool_),  # a batch is a transaction's end marker
        ("reads_committed", np.bool_),  # a read leaves out aborted transactions
        ("leader_epoch", np.int64),  # or EPOCH_UNKNOWN
        ("bound_low", np.int64),  # the lowest offset that a read's bound can be, or NO_BOUND
        ("bound_high", np.int64),  # the highest offset that it can be
        ("response_record_bytes", np.int64),  # of all partitions
        ("request_time", np.int64),  # us
        ("connection_id", np.int64),
        ("exchange_no", np.int64),
        ("is_follower", np.bool_),  # a follower's read
        ("found_nothing", np.bool_),  # its fetch was parked: no partition had records when the fetch came
    ],
    align=True,
)
"""A batch, or a read, or the same read as a witness of where the log and its segments end."""
MISSING: Mapping[str, int] = {"response_time": NEVER, "append_after": ALWAYS, "append_before": NEVER}
"""The values that stand for null in fields where it is neither NONE nor False."""


class Stretch(NamedTuple):
    """Successive events of one kind of one partition: the row of the first, and the row behind the last."""

    topic_key: str
    partition: int
    kind: LogEvent
    first: int
    end: int


def log_events(batch: pa.RecordBatch) -> Records:
    """The rows of LOG_EVENTS as LOG_EVENT[rows]."""
    events = np.zeros(batch.num_rows, LOG_EVENT)
    for name in LOG_EVENT.names or ():
        if name in LOG_EVENTS.columns:
            missing = 0 if LOG_EVENT[name] == np.bool_ else MISSING.get(name, NONE)
            events[name] = int_column(batch, name, missing)
    events["is_follower"] = is_follower(batch[LOG_EVENTS.reader])
    return events


def is_follower(reader: pa.Array[Any]) -> Bools:
    """Which rows have a follower as their reader: bool[rows]."""
    return compute.equal(reader, FOLLOWER).fill_null(False).to_numpy(zero_copy_only=False)


def stretches_of_events(batch: pa.RecordBatch) -> Iterator[Stretch]:
    """The stretches of rows of LOG_EVENTS, which are sorted by partition and kind."""
    keys, partitions = batch[LOG_EVENTS.topic_key], batch[LOG_EVENTS.partition].to_numpy()
    kinds, codes = batch[LOG_EVENTS.kind].to_numpy(), keys.dictionary_encode().indices.to_numpy()
    changes = (np.diff(codes) != 0) | (np.diff(partitions) != 0) | (np.diff(kinds) != 0)
    for first, end in pairwise([0, *(np.flatnonzero(changes) + 1).tolist(), batch.num_rows]):
        if first < end:
            yield Stretch(keys[first].as_py(), int(partitions[first]), LogEvent(kinds[first]), first, end)
