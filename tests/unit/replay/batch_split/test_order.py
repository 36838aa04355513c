"""A producer whose Sender is slow: which of several batches was closed first is told by what later ones hold."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from schemas.tables.gold import FIDELITY
from schemas.tables.gold_splits import BATCH_SPLIT
from schemas.tables.steps import SENT
from tests.unit.replay.batch_split.producers import KAFKA_SIZE, Producer, lanes_of, limits_of
from tests.unit.replay.batch_split.test_replay import sent
from udfs.facts.arrow_tables import arrow_schema
from udfs.replay.batch_split.estimate import estimated_bytes, has_room, ratio_of, record_bytes, updated
from udfs.replay.batch_split.replay import SplitLanes, replay_splits

SETTINGS = Producer(1024, 1 << 20, linger=100_000)
CONTENT = 104
PARTITIONS = 3


@dataclass
class Filled:
    """A batch of a partition: when its records were made, in ms, and the estimate that it was made with."""

    partition: int
    estimate: np.float32
    made: list[int] = field(default_factory=list)
    closed: int = 0  # us

    def size(self, at: int) -> int:
        """Bytes of a record made at this ms."""
        return record_bytes(CONTENT, len(self.made), at - self.made[0] if self.made else 0)

    @property
    def uncompressed(self) -> int:
        return sum(record_bytes(CONTENT, number, at - self.made[0]) for number, at in enumerate(self.made))


def produced(seed: int) -> list[dict[str, Any]]:
    """Rows of SENT: a plain RecordAccumulator, and a Sender that closes what is full some time later, in any order, and
    sends it some time after that."""
    rng, lanes = np.random.default_rng(seed), lanes_of(SETTINGS)
    estimate, batches = np.float32(1), list[Filled]()
    filling: dict[int, Filled] = {}
    waiting: list[tuple[int, int, Filled]] = []
    last_request = dict.fromkeys(range(PARTITIONS), 0)
    sizes: dict[int, int] = {}
    rows: list[dict[str, Any]] = []
    for at in range(1500):
        partition = at // 5 % PARTITIONS
        for closed, request, batch in [
            entry for entry in sorted(waiting, key=lambda entry: entry[0]) if entry[0] < at * 1000
        ]:
            size = 61 + int(batch.uncompressed * rng.uniform(0.3, 1.0))
            estimate = np.float32(updated(0, estimate, ratio_of(size, batch.uncompressed), lanes, 0))
            waiting.remove((closed, request, batch))
            first = sizes.setdefault(batch.partition, 0)
            sizes[batch.partition] += len(batch.made)
            rows.append(
                sent(0, len(batch.made), size, 0, 0, partition=batch.partition, connection_id=batch.partition,
                     base_sequence=first, append_from=batch.made[0] * 1000, request_time=request, exchange_no=request,
                     response_time=request + 300, record_sizes=[CONTENT] * len(batch.made), create_times=batch.made,
                     uncompressed_bytes=batch.uncompressed)
            )  # fmt: skip
        full = filling.get(partition)
        if full is not None:
            estimated = estimated_bytes(full.uncompressed, full.estimate, np.float32(1.05), True)
            if not has_room(len(full.made), estimated, SETTINGS.batch_size, full.size(at)):
                closed = max(at * 1000 + 1, last_request[partition] + 1) + int(rng.integers(0, 20_000))
                last_request[partition] = closed + int(rng.integers(0, 20_000))
                waiting.append((closed, last_request[partition], full))
                del filling[partition]
        if partition not in filling:
            filling[partition] = Filled(partition, estimate)
            batches.append(filling[partition])
        filling[partition].made.append(at)
    return sorted(rows, key=lambda row: (row[SENT.append_from], row[SENT.request_time]))


@pytest.mark.parametrize("seed", range(6))
def test_the_captured_lane_sends_the_captured_batches_whenever_they_were_closed(seed: int) -> None:
    rows = produced(seed)
    found: dict[str, list[dict[str, Any]]] = {}
    lanes = SplitLanes(("captured",), lanes_of(SETTINGS), limits_of(SETTINGS), KAFKA_SIZE)
    for packed in replay_splits([pa.RecordBatch.from_pylist(rows, schema=arrow_schema(SENT))], lanes, "run"):
        for name, content in zip(packed["table"].to_pylist(), packed["rows"], strict=True):
            for batch in pa.ipc.open_stream(content.as_buffer()):
                found.setdefault(str(name), []).extend(batch.to_pylist())
    f, g = FIDELITY, BATCH_SPLIT
    told = {row[f.metric]: (row[f.checked], row[f.agreed], row[f.unknown]) for row in found[f.name]}
    assert told["batches_in_one_order"] == (len(rows), len(rows), 0)
    assert told["batches"][0] == told["batches"][1] < len(rows), "each for itself leaves some open"
    (lane,) = found[g.name]
    assert (lane[g.batches], lane[g.bytes_sent]) == (len(rows), sum(row[SENT.size_bytes] for row in rows))
