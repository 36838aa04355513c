"""A producer for the replay of KIP-126: its settings, its records, rows of what it sent, and what comes of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from jobs.scenarios.settings import settings
from schemas.tables.steps import SENT
from udfs.columns.arrays import Ints, Records
from udfs.columns.records import new_records
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import NEVER, US_PER_MS
from udfs.facts.arrow_tables import arrow_schema, unpack_rows
from udfs.replay.batch_split.estimate import record_bytes
from udfs.replay.batch_split.lanes import Measure, not_measured, replay_stretch
from udfs.replay.batch_split.replay import replay_splits
from udfs.replay.batch_split.settings import SPLIT_SETTINGS, TODAY, SplitLanes, TopicLimits
from udfs.replay.batch_split.state import (
    AS_PRODUCED,
    BATCH,
    PART,
    RECORD,
    SENT_PARTITION,
    Capture,
    SizeModel,
    TopicRules,
    new_sim,
    no_outcomes,
)
from udfs.wire.compressed_sizes import CODEC_NAMES

CODECS = len(CODEC_NAMES)
KAFKA_SIZE, KAFKA_LIMIT = 16384, 1048588
"""Kafka's batch.size and message.max.bytes where nobody states others."""

Row = dict[str, Any]


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
    """What came of a producer's records: SPLIT_OUTCOME[topics], and the estimates of its codec, float32[topics]."""

    outcomes: Records
    estimates: npt.NDArray[np.float32]

    def of(self, name: str) -> int:
        """An outcome, over all topics."""
        return int(self.outcomes[name].sum())


@dataclass(frozen=True)
class Produced:
    """Records to send: ms, bytes of the value, partition; partitions are topics of their own unless stated.

    retries: how often the first record's batch was sent again as it was. has_sequence: of an idempotent producer.
    round_trip: ms to each response. initial: the estimates by topic.
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
    """The limits of the producers' lanes: of all topics."""
    limits = np.array([producer.limit for producer in producers])
    return TopicLimits(tuple({} for _ in producers), limits, limits, KAFKA_LIMIT)


def settings_of(*producers: Producer) -> Records:
    """A lane for each producer: SPLIT_SETTINGS[lanes]."""
    constants = {
        name.replace(".", "_"): float(str(settings()[f"compression.ratio.{name}"].default))
        for name in ("improving.step", "deteriorate.step", "estimation.factor")
    }
    return new_records(
        SPLIT_SETTINGS,
        len(producers),
        batch_size=[p.batch_size for p in producers],
        linger_us=[p.linger * US_PER_MS for p in producers],
        codec=[p.codec_number for p in producers],
        profile=[p.profile for p in producers],
        halves=[p.halves for p in producers],
        measured_every=[p.measured_every for p in producers],
        **constants,
    )


def lanes_of(*producers: Producer, names: Sequence[str] = ()) -> SplitLanes:
    """The producers as lanes of a replay, the first of them the captured one."""
    called = tuple(names or map(str, range(len(producers))))
    return SplitLanes(called, settings_of(*producers), limits_of(*producers), KAFKA_SIZE)


def content_of(values: Sequence[int]) -> Ints:
    """What records with values of these sizes take in any batch: no key, no headers."""
    return np.array([1 + varint(size) + size + 1 for size in values], np.int64)


def varint(value: int) -> int:
    """Bytes of a zig-zag varint of a value that is not negative."""
    return max(1, -(-(2 * value).bit_length() // 7))


def even_sizes(produced: Produced, ratio: Sequence[float], fixed: float = 0) -> SizeModel:
    """Sizes of batches whose records compress to a ratio of their own, in the order of partitions."""
    order = np.argsort(np.array(produced.partition or [0] * len(produced.ms)), kind="stable")
    inside = np.array([size * of for size, of in zip(produced.values, ratio, strict=True)])[order]
    cost = np.concatenate([np.zeros(1), np.cumsum(inside)])
    return SizeModel(np.full((CODECS, len(inside)), float(fixed)), np.broadcast_to(cost, (2, CODECS, len(cost))).copy())


def captured(produced: Produced, sizes: SizeModel) -> Capture:
    """The records, each in a captured batch of its partition that was sent when it was ready."""
    n, places = len(produced.ms), len(produced.topic)
    partition = np.array(produced.partition or [0] * n, np.int64)
    by_partition = np.argsort(partition, kind="stable")
    partition, ms = partition[by_partition], np.array(produced.ms, np.int64)[by_partition]
    records = new_records(
        RECORD,
        n,
        time=ms * US_PER_MS,
        timestamp=ms,
        content=content_of(produced.values)[by_partition],
        partition=partition,
        batch=partition,
        part=NONE,
    )
    batches = new_records(
        BATCH,
        places,
        first=np.searchsorted(partition, np.arange(places)),
        end=np.searchsorted(partition, np.arange(places), side="right"),
        codec=1,
        has_sequence=produced.has_sequence,
        early=NEVER,
        queued_by=NONE,
        round_trip=produced.round_trip * US_PER_MS,
        retries=produced.retries,
        retry_at=NEVER,
    )
    partitions = new_records(SENT_PARTITION, places, topic=list(produced.topic), is_sticky=produced.is_sticky)
    return Capture(records, np.argsort(by_partition, kind="stable"), batches, np.zeros(0, PART), partitions, sizes)


def as_produced(limit: int, topics: int = 1) -> TopicRules:
    """The rules of one lane for topics with this max.message.bytes, of which brokers store the batches as produced."""
    return TopicRules(np.full((1, topics), limit), np.full(topics, AS_PRODUCED))


def replayed(producer: Producer, produced: Produced, sizes: SizeModel, measure: Measure = not_measured) -> Outcome:
    """What comes of the records in the producer's lane."""
    topics = max(produced.topic) + 1
    estimates = np.ones((1, topics, CODECS), np.float32)
    for topic, ratio in enumerate(produced.initial):
        estimates[0, topic] = ratio
    outcomes, rules = no_outcomes(1, topics), as_produced(producer.limit, topics)
    replay_stretch(
        new_sim(captured(produced, sizes), settings_of(producer), rules, estimates, outcomes), range(1), measure
    )
    return Outcome(outcomes[0], estimates[0, :, producer.codec_number])


def sent(first: int, n: int, size: int, request: int, error: int, **more: Any) -> Row:
    """A row of SENT: a batch of `n` records with 100 bytes each, one made in each ms from `first` on; times in ms."""
    row = {str(c): {"string": "", "boolean": True}.get(c.type, 0) for c in SENT.columns}
    return row | {
        SENT.client_id: "c", SENT.topic: "t", SENT.codec: "gzip", SENT.base_sequence: first, SENT.began_before: False,
        SENT.append_from: first * 1000, SENT.request_time: request * 1000, SENT.response_time: request * 1000 + 500,
        SENT.error_code: error, SENT.size_bytes: size, SENT.keyless_records: 0, SENT.exchange_no: request,
        SENT.uncompressed_bytes: sum(record_bytes(104, at, at) for at in range(n)), SENT.record_sizes: [104] * n,
        SENT.create_times: list(range(first, first + n)), SENT.recompressed_bytes: [],
        SENT.max_message_bytes: None, SENT.stored_codec: None, **more,
    }  # fmt: skip


def sent_batch(rows: Sequence[Row]) -> pa.RecordBatch:
    """Rows of SENT."""
    return pa.RecordBatch.from_pylist(list(rows), schema=arrow_schema(SENT))


def unpacked(packed: Iterable[pa.RecordBatch]) -> dict[str, list[Row]]:
    """Rows of gold tables by the table's name."""
    found: dict[str, list[Row]] = {}
    for batch in packed:
        for name, content in zip(batch["table"].to_pylist(), batch["rows"], strict=True):
            for rows in unpack_rows(content):
                found.setdefault(str(name), []).extend(rows.to_pylist())
    return found


def gold_rows(rows: Sequence[Row], lanes: SplitLanes) -> dict[str, list[Row]]:
    """The gold rows by table of what was sent."""
    return unpacked(replay_splits([sent_batch(rows)], lanes, "run"))
