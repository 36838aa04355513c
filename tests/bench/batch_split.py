"""KIP-126 on one core: from step rows of producers' batches to packed gold rows, with one lane and with many."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.tables.steps import SENT
from schemas.wire.errors import MESSAGE_TOO_LARGE
from tests.bench.table import timed
from tests.unit.replay.batch_split.producers import Producer, lanes_of
from udfs.columns.arrays import Ints
from udfs.columns.time_units import US_PER_MS
from udfs.facts.arrow_tables import arrow_schema
from udfs.facts.record_sampling import SAMPLE_EVERY
from udfs.replay.batch_split.replay import replay_splits
from udfs.replay.batch_split.settings import SplitLanes
from udfs.wire.compressed_sizes import COMPRESSING, part_ends
from udfs.wire.record_batches import RECORD_BATCH_OVERHEAD

BATCH_SIZE, LIMIT = 16_384, 20_000
"""batch.size and max.message.bytes, bytes."""
LINGER_MS, GAP_US, ROUND_TRIP_US, CONNECTIONS = 20, 100, 3_000, 3
CONTENT, MOST_RECORDS = (200, 1_000), 200
"""The range of a record's bytes, and a number of records that is more than fits in a batch."""
RATIO, UNLIKE_RATIO, UNLIKE_EVERY = 0.5, 0.95, 400
"""The compression ratio of batches. One of UNLIKE_EVERY batches hardly compresses, is refused as too large, and is
split.
"""
DOWN, UP, FACTOR = 0.005, 0.05, 1.05
"""The estimate's steps down and up, and the factor by which a batch is assumed to be larger
(CompressionRatioEstimator).
"""

Row = dict[str, Any]


@dataclass
class BusyProducer:
    """A producer that fills one batch after the other, each for the next topic and partition.

    estimates: by topic. closed: what the estimates do not include yet, (us, whether a batch was split, topic, ratio).
    requested: us, the last request. rows: of SENT, what was sent.
    """

    client_id: str
    topics: int
    partitions: int
    rng: np.random.Generator
    estimates: list[float]
    closed: list[tuple[int, bool, int, float]] = field(default_factory=list)
    sequences: dict[tuple[int, int], int] = field(default_factory=dict)
    requested: int = 0
    rows: list[Row] = field(default_factory=list)

    def fill(self, number: int, now: int) -> int:
        """Fill a batch with as many records as the estimate allows, and send it. Returns when it is full (us)."""
        topic, partition = number % self.topics, number // self.topics % self.partitions
        self.follow(now)
        content = self.rng.integers(*CONTENT, MOST_RECORDS)
        made = (now + GAP_US * np.arange(MOST_RECORDS)) // US_PER_MS
        sizes = record_sizes(content, made)
        estimated = ((np.cumsum(sizes) - sizes) * self.estimates[topic] * FACTOR).astype(np.int64)
        count = int(np.argmax(RECORD_BATCH_OVERHEAD + estimated + sizes > BATCH_SIZE))
        ratio = RATIO + float(0.05 * np.sin(number / 50) + self.rng.uniform(-0.02, 0.02))
        ratio = UNLIKE_RATIO if number % UNLIKE_EVERY == UNLIKE_EVERY - 1 else ratio
        full = now + GAP_US * count
        self.requested = max(self.requested + 1, full + int(self.rng.integers(0, 2_000)))
        self.send(topic, partition, content[:count], made[:count], ratio)
        return full

    def follow(self, now: int) -> None:
        """Update the estimates with the batches that were closed and split before `now`."""
        for _, is_split, topic, ratio in sorted(entry for entry in self.closed if entry[0] < now):
            estimate = self.estimates[topic]
            followed = max(ratio, estimate + UP if ratio > estimate else estimate - DOWN)
            self.estimates[topic] = 1.0 if is_split else followed
        self.closed = [entry for entry in self.closed if entry[0] >= now]

    def send(self, topic: int, partition: int, content: Ints, made: Ints, ratio: float) -> None:
        """Send a batch. If it is too large, send its halves after the response."""
        first, half = self.sequences.get((topic, partition), 0), len(content) // 2
        self.sequences[topic, partition] = first + len(content)
        self.rows.append(self.sent(topic, partition, content, made, ratio, first))
        if self.rows[-1][SENT.size_bytes] > LIMIT:
            self.rows[-1][SENT.error_code] = MESSAGE_TOO_LARGE
            self.closed.append((self.requested + ROUND_TRIP_US, True, topic, ratio))
            for part in (slice(0, half), slice(half, len(content))):
                self.requested += ROUND_TRIP_US + 200
                sequence = first + part.start
                self.rows.append(self.sent(topic, partition, content[part], made[part], ratio, sequence))

    def sent(self, topic: int, partition: int, content: Ints, made: Ints, ratio: float, sequence: int) -> Row:
        """Close a batch; returns its row of SENT. One of SAMPLE_EVERY batches was compressed again."""
        self.closed.append((self.requested, False, topic, ratio))
        sizes, is_sampled = record_sizes(content, made), len(self.rows) % SAMPLE_EVERY == 0
        parts = np.cumsum(sizes)[part_ends(len(content)) - 1]
        anew = [20 + (parts * ratio * (0.9 + 0.1 * codec)).astype(np.int64) for codec in range(len(COMPRESSING))]
        empty = {str(c): {"string": "", "boolean": True}.get(c.type, 0) for c in SENT.columns}
        return empty | {
            SENT.client_id: self.client_id, SENT.topic: f"t{topic}", SENT.partition: partition, SENT.codec: "gzip",
            SENT.append_from: int(made[0]) * US_PER_MS, SENT.request_time: self.requested,
            SENT.response_time: self.requested + ROUND_TRIP_US, SENT.connection_id: partition % CONNECTIONS,
            SENT.exchange_no: len(self.rows), SENT.base_sequence: sequence, SENT.began_before: False,
            SENT.size_bytes: RECORD_BATCH_OVERHEAD + int(ratio * int(sizes.sum())), SENT.max_message_bytes: None,
            SENT.uncompressed_bytes: int(sizes.sum()), SENT.record_sizes: content, SENT.create_times: made,
            SENT.recompressed_bytes: np.concatenate(anew) if is_sampled else np.zeros(0, np.int64),
        }  # fmt: skip


def record_sizes(content: Ints, made: Ints) -> Ints:
    """Bytes of each record of a batch (DefaultRecord.sizeInBytes)."""
    body = 1 + varint_bytes(made - made[0]) + varint_bytes(np.arange(len(content))) + content
    return body + varint_bytes(body)


def varint_bytes(values: Ints) -> Ints:
    """Bytes of the zig-zag varints of values that are not negative."""
    return 1 + (values[:, None] >= 1 << np.array([6, 13, 20])).sum(axis=1)


def produced(producers: int, batches: int, topics: int, partitions: int) -> list[pa.RecordBatch]:
    """Rows of SENT: for this many producers, each with this many batches and the parts of split ones."""
    rng, rows = np.random.default_rng(126), list[Row]()
    for number in range(producers):
        producer, now = BusyProducer(f"c{number:05}", topics, partitions, rng, [1.0] * topics), 0
        for batch in range(batches):
            now = producer.fill(batch, now)
        rows += sorted(producer.rows, key=lambda row: (row[SENT.append_from], row[SENT.request_time]))
    schema = arrow_schema(SENT)
    columns = [pa.array([row[column.name] for row in rows], column.type) for column in schema]
    return pa.Table.from_arrays(columns, schema=schema).to_batches(max_chunksize=10_000)


def grid(count: int) -> SplitLanes:
    """The captured lane, and lanes with a quarter to four times its batch.size."""
    sizes = [BATCH_SIZE, *np.geomspace(BATCH_SIZE // 4, 4 * BATCH_SIZE, count - 1).astype(int).tolist()]
    return lanes_of(*(Producer(size, LIMIT, LINGER_MS) for size in sizes))


def compare_lanes(producers: int, batches: int, topics: int, partitions: int, count: int) -> str:
    """Compare many lanes with one."""
    rows = produced(producers, batches, topics, partitions)

    def replay(lanes: SplitLanes) -> None:
        for _ in replay_splits(rows, lanes, "bench"):
            pass

    one, many = (min(timed("", partial(replay, lanes), clock=process_time).seconds) for lanes in (grid(1), grid(count)))
    lines = [f"Batches of {producers:,} producers, {batches:,} of each, CPU time of the best round"]
    for lanes, seconds in ((1, one), (count, many)):
        rate = producers * batches * lanes / seconds
        lines.append(f"  {lanes:>3} lanes {seconds * 1000:>9,.1f} ms  {rate:>12,.0f} lane-batches/s")
    lines.append(f"  {count} lanes take {many / one:.2f} times what one takes")
    return "\n".join(lines)
