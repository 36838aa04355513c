"""A producer whose Sender is slow: the sizes of later batches show which of several batches was closed first."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from schemas.tables.gold import FIDELITY
from schemas.tables.gold_splits import BATCH_SPLIT
from schemas.tables.steps import SENT
from tests.unit.replay.batch_split.producers import Producer, Row, gold_rows, lanes_of, sent, settings_of
from udfs.replay.batch_split.estimate import (
    compression_ratio,
    estimated_bytes,
    has_room,
    record_bytes,
    updated_estimate,
)

SETTINGS = Producer(1024, 1 << 20, linger=100_000)
CONTENT = 104
PARTITIONS = 3


@dataclass
class Filled:
    """A batch of a partition: the ms at which its records were made, and the estimate with which it was created."""

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


def produced(seed: int) -> list[Row]:
    """Rows of SENT from a plain RecordAccumulator and a Sender. The Sender closes full batches some time later, in any
    order, and sends them some time after that.
    """
    rng, (settings,) = np.random.default_rng(seed), settings_of(SETTINGS)
    estimate, batches = np.float32(1), list[Filled]()
    filling: dict[int, Filled] = {}
    waiting: list[tuple[int, int, Filled]] = []
    last_request = dict.fromkeys(range(PARTITIONS), 0)
    sizes: dict[int, int] = {}
    rows: list[Row] = []
    for at in range(1500):
        partition = at // 5 % PARTITIONS
        for closed, request, batch in [
            entry for entry in sorted(waiting, key=lambda entry: entry[0]) if entry[0] < at * 1000
        ]:
            size = 61 + int(batch.uncompressed * rng.uniform(0.3, 1.0))
            estimate = np.float32(updated_estimate(settings, estimate, compression_ratio(size, batch.uncompressed)))
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
    found = gold_rows(rows, lanes_of(SETTINGS, names=["captured"]))
    f, g = FIDELITY, BATCH_SPLIT
    verdicts = {row[f.metric]: (row[f.checked], row[f.agreed], row[f.unknown]) for row in found[f.name]}
    assert verdicts["batches_in_one_order"] == (len(rows), len(rows), 0)
    assert verdicts["batches"][0] == verdicts["batches"][1] < len(rows), "over all orders, some are unknown"
    (lane,) = found[g.name]
    assert (lane[g.batches], lane[g.bytes_sent]) == (len(rows), sum(row[SENT.size_bytes] for row in rows))
