"""A producer for the replay of KIP-126: its settings, its records and what came of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from jobs.scenarios.settings import settings
from udfs.columns.time_units import NEVER
from udfs.replay.batch_split.estimate import TODAY, Producers
from udfs.replay.batch_split.lane import Measure, not_measured, run
from udfs.replay.batch_split.outcomes import Sums, no_sums, no_timeline
from udfs.replay.batch_split.sender import working_memory
from udfs.replay.batch_split.settings import TopicLimits
from udfs.replay.batch_split.state import Batches, Log, Sizes, Topics
from udfs.wire.compressed_sizes import CODEC_NAMES

Ints = npt.NDArray[np.int64]
CODECS = len(CODEC_NAMES)
CONSTANTS = [
    float(str(settings()[f"compression.ratio.{name}"].default))
    for name in ("improving.step", "deteriorate.step", "estimation.factor")
]
"""Of the estimate, as Kafka has them."""
KAFKA_SIZE, KAFKA_LIMIT = 16384, 1048588
"""Kafka's batch.size and message.max.bytes where nobody says others."""


@dataclass(frozen=True)
class Producer:
    """Settings of one lane; a batch that is ready is sent at once, and refused at once."""

    batch_size: int
    limit: int
    linger: int = 0
    codec: str = "gzip"
    halves: bool = True
    profile: int = TODAY
    measured_every: int = 0

    @property
    def codec_number(self) -> int:
        return CODEC_NAMES.index(self.codec)


@dataclass(frozen=True)
class Outcome:
    """What came of a producer's records: by topic, and the estimate of its codec."""

    sums: Sums
    estimates: npt.NDArray[np.float32]

    def of(self, name: str) -> int:
        """An outcome, over all topics."""
        column: Ints = getattr(self.sums, name)
        return int(column.sum())


@dataclass(frozen=True)
class Records:
    """Records to send: ms, bytes of the value, partition; partitions are topics of their own unless told.

    retries: how often the first record's batch was sent again as it was. has_sequence: of an idempotent producer.
    round_trip: ms to each answer.
    """

    ms: Sequence[int]
    values: Sequence[int]
    partition: Sequence[int] = ()
    topic: Sequence[int] = (0,)
    is_sticky: bool = False
    retries: int = 0
    has_sequence: bool = False
    round_trip: int = 0
    initial: Sequence[float] = field(default_factory=tuple)


def limits_of(*producers: Producer) -> TopicLimits:
    """... and what brokers take of it, of all topics."""
    limits = np.array([producer.limit for producer in producers])
    return TopicLimits(tuple({} for _ in producers), limits, limits, KAFKA_LIMIT)


def lanes_of(*producers: Producer, topics: int = 1) -> Producers:
    """A lane a producer, which sends to so many topics."""

    def whole(values: list[int]) -> Ints:
        return np.array(values, np.int64)

    def single(value: float) -> npt.NDArray[np.float32]:
        return np.full(len(producers), value, np.float32)

    return Producers(
        whole([p.batch_size for p in producers]),
        np.repeat(whole([p.limit for p in producers])[:, None], topics, axis=1),
        whole([p.linger * 1000 for p in producers]), whole([p.codec_number for p in producers]),
        whole([p.profile for p in producers]), whole([p.halves for p in producers]), whole([0 for _ in producers]),
        whole([p.measured_every for p in producers]),
        *map(single, CONSTANTS),
    )  # fmt: skip


def content_of(values: Sequence[int]) -> Ints:
    """What records with values of these sizes take in any batch: no key, no headers."""
    return np.array([1 + varint(size) + size + 1 for size in values], np.int64)


def varint(value: int) -> int:
    """Bytes of a zig-zag varint of a value that is not negative."""
    return max(1, -(-(2 * value).bit_length() // 7))


def even_sizes(records: Records, ratio: Sequence[float], fixed: float = 0) -> Sizes:
    """Sizes of batches whose records compress to a ratio of their own, in partition order as in the log."""
    order = np.argsort(np.array(records.partition or [0] * len(records.ms)), kind="stable")
    inside = np.array([size * of for size, of in zip(records.values, ratio, strict=True)])[order]
    cost = np.concatenate([np.zeros(1), np.cumsum(inside)])
    return Sizes(np.full((CODECS, len(inside)), float(fixed)), np.broadcast_to(cost, (CODECS, len(cost))).copy())


def replayed(producer: Producer, records: Records, sizes: Sizes, measure: Measure = not_measured) -> Outcome:
    """The records, each in a captured batch of its partition that was sent when it was ready."""
    n, topics = len(records.ms), max(records.topic) + 1
    partition = np.array(records.partition or [0] * n, np.int64)
    by_partition = np.argsort(partition, kind="stable")
    order = np.argsort(by_partition, kind="stable")
    ms = np.array(records.ms, np.int64)[by_partition]
    partition = partition[by_partition]
    resent_at, resent_end, resent_size, resent_answered = (np.full(n, NEVER) for _ in range(4))
    log = Log(
        ms * 1000,
        ms,
        content_of(records.values)[by_partition],
        partition,
        partition,
        resent_at,
        resent_end,
        resent_size,
        resent_answered,
        order,
    )
    places = len(records.topic)
    none, never = np.zeros(places, np.int64), np.full(places, NEVER)
    retries = np.full(places, records.retries, np.int64)
    batches = Batches(
        np.ones(places, np.int64), none, none, never, none, np.full(places, records.round_trip * 1000), retries, never,
        np.full(places, records.has_sequence), np.full(places, False),
    )  # fmt: skip
    of = Topics(np.array(records.topic, np.int64), np.full(topics, int(records.is_sticky), np.int64))
    estimates = np.ones((1, topics, CODECS), np.float32)
    for topic, ratio in enumerate(records.initial):
        estimates[0, topic] = ratio
    sums = no_sums(1, topics)
    memory = working_memory(n, places, topics)
    line = no_timeline(1, topics)
    run(memory, log, batches, of, sizes, estimates, lanes_of(producer, topics=topics), 0, sums, line, measure)
    return Outcome(sums, estimates[0, :, producer.codec_number])
