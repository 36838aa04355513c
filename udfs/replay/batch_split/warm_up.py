"""Have every kernel of this replay compiled."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from schemas.tables.steps import SENT
from udfs.columns.arrays import read_only
from udfs.facts.arrow_tables import TYPES
from udfs.kernels.blank_rows import blank_rows
from udfs.replay.batch_split.estimate import BY_CLIENT, TODAY, Producers, after_split
from udfs.replay.batch_split.replay import SplitLanes, replay_splits
from udfs.replay.batch_split.settings import TopicLimits
from udfs.wire.compressed_sizes import encode_records
from udfs.wire.records import sizes_of


def warm_up() -> None:
    """A batch of one record, in two lanes, and the walk over a record."""
    two = np.ones(2, np.int64)
    ratio = np.ones(2, np.float32)
    of_topics = np.zeros((2, 0), np.int64)
    lanes = SplitLanes(
        ("captured", "other"), Producers(two * BY_CLIENT, of_topics, two, two, two, two, two, two, ratio, ratio, ratio),
        TopicLimits(({}, {}), two, two, 1), 1,
    )  # fmt: skip
    sizes = {
        SENT.record_sizes: pa.array([[100]], TYPES["array<int>"]),
        SENT.create_times: pa.array([[0]], TYPES["array<bigint>"]),
        SENT.recompressed_bytes: pa.array([[]], TYPES["array<int>"]),
        SENT.codec: pa.array(["gzip"], pa.string()),
    }
    record = bytes([12, 0, 0, 0, 1, 1, 0])
    ends, content = (read_only(values) for values in (sizes_of(record, 1).ends, np.full(1, 3)))
    encode_records(read_only(np.frombuffer(record, np.uint8)), ends, content, ends, 0, np.zeros(64, np.uint8), 0)
    for _ in replay_splits([blank_rows(SENT, 1, **sizes)], lanes, ""):
        pass
    after_split(TODAY, np.float32(1))
