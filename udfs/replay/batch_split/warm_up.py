"""Compiles every kernel of this replay."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from schemas.tables.steps import SENT
from udfs.columns.arrays import read_only
from udfs.facts.arrow_tables import TYPES
from udfs.kernels.blank_rows import blank_rows
from udfs.replay.batch_split.replay import replay_splits
from udfs.replay.batch_split.settings import NOT_STATED, SPLIT_SETTINGS, SplitLanes, TopicLimits
from udfs.wire.compressed_sizes import MovedRecords, encode_records
from udfs.wire.records import record_sizes


def warm_up() -> None:
    """Replay a batch of one record, in two lanes, and walk over a record."""
    settings = np.ones(2, SPLIT_SETTINGS)
    settings["batch_size"] = NOT_STATED
    limits = TopicLimits(({}, {}), np.ones(2, np.int64), np.ones(2, np.int64), 1)
    sizes = {
        SENT.record_sizes: pa.array([[100]], TYPES["array<int>"]),
        SENT.create_times: pa.array([[0]], TYPES["array<bigint>"]),
        SENT.recompressed_bytes: pa.array([[]], TYPES["array<int>"]),
        SENT.codec: pa.array(["gzip"], pa.string()),
    }
    record = bytes([12, 0, 0, 0, 1, 1, 0])
    ends, content = (read_only(values) for values in (record_sizes(record, 1).ends, np.full(1, 3)))
    moved = MovedRecords(
        data=read_only(np.frombuffer(record, np.uint8)),
        ends=ends,
        content=content,
        timestamp_deltas=ends,
        offset_delta=0,
    )
    encode_records(moved, np.zeros(64, np.uint8), 0)
    for _ in replay_splits([blank_rows(SENT, 1, **sizes)], SplitLanes(("captured", "other"), settings, limits, 1), ""):
        pass
