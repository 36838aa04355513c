"""Helpers for the tests of KIP-126's replay: a producer's settings and records, rows of SENT, and replays' results."""

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
"""Kafka's defaults of batch.size and message.max.bytes."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Producer:
    """The settings of one lane."""

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
    """The result of a replay: SPLIT_OUTCOME[topics], and the last estimates of the lane's codec, float32[topics]."""

    outcomes: Records
    estimates: npt.NDArray[np.float32]

    def of(self, name: str) -> int:
        """The sum of an outcome over all topics."""
        return int(self.outcomes[name].sum())


@dataclass(frozen=True)
class Produced:
    """Records to send: the ms of each, the bytes of its value, and its partition. topic: the topic of each partition.

    retries: how often each captured batch was sent again unchanged. has_sequence: whether the producer is idempotent.
    round_trip: ms to each response. initial: the first estimates, by topic.
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
    """The limits of the producers' lanes, the same for all topics."""
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
    """Bytes of key, value and headers of records with values of these sizes, and without keys and headers."""
    return np.array([1 + varint(size) + size + 1 for size in values], np.int64)


def varint(value: int) -> int:
    """Bytes of a zig-zag varint of a value that is not negative."""
    return max(1, -(-(2 * value).bit_length() // 7))


def even_sizes(produced: Produced, ratio: Sequence[float], fixed: float = 0) -> SizeModel:
    """The sizes of batches whose records each compress to their own ratio. fixed: bytes that every batch also takes."""
    order = np.argsort(np.array(produced.partition or [0] * len(produced.ms)), kind="stable")
    inside = np.array([size * of for size, of in zip(produced.values, ratio, strict=True)])[order]
    cost = np.concatenate([np.zeros(1), np.cumsum(inside)])
    return SizeModel(np.full((CODECS, len(inside)), float(fixed)), np.broadcast_to(cost, (2, CODECS, len(cost))).copy())


def captured(produced: Produced, sizes: SizeModel) -> Capture:
    """A capture of these records: one batch for each partition, sent as soon as it was ready."""
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
    """The rules of one lane: topics have this max.message.bytes, and brokers store their batches as produced."""
    return TopicRules(np.full((1, topics), limit), np.full(topics, AS_PRODUCED))


def replayed(producer: Producer, produced: Produced, sizes: SizeModel, measure: Measure = not_measured) -> Outcome:
    """The result of replaying the records in the producer's lane."""
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
    """A row of SENT: a batch of `n` records of 100 bytes, one created in each ms from `first` on. request: ms."""
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
    """Rows of SENT as an Arrow batch."""
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
    """The gold rows, by table, of a replay of these rows of SENT."""
    return unpacked(replay_splits([sent_batch(rows)], lanes, "run"))
