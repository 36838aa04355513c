"""The pass over producers: what each sent, put together, judged, and sent again in every lane."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.tables.steps import SENT
from udfs.columns.arrays import Ints, Singles
from udfs.columns.arrow_columns import concatenated
from udfs.facts.arrow_tables import pack
from udfs.replay.batch_split.estimate import BY_CLIENT, DAMPED, Producers
from udfs.replay.batch_split.events import Sent, Sequences, read_sent
from udfs.replay.batch_split.fidelity import NearLimit, judge_sent, near_limit
from udfs.replay.batch_split.held_records import HeldRecords, recompressed
from udfs.replay.batch_split.inferred import AnswersSeen
from udfs.replay.batch_split.lane import Measure, not_measured, run
from udfs.replay.batch_split.outcomes import Sums, Timeline, last_spans, no_sums, no_timeline
from udfs.replay.batch_split.possible_estimates.batch_size import told_batch_size
from udfs.replay.batch_split.possible_estimates.events import groups_of
from udfs.replay.batch_split.possible_estimates.order import Times, times_in
from udfs.replay.batch_split.sender import working_memory
from udfs.replay.batch_split.settings import TopicLimits
from udfs.replay.batch_split.size_errors import Sized, sized
from udfs.replay.batch_split.timing import batches_of, soonest, timed_log
from udfs.replay.shared.rows_by_key import by_key
from udfs.wire.compressed_sizes import CODEC_NAMES

CLIENT = (SENT.client_id, SENT.client_address)
STRETCH_RECORDS = 1 << 18
"""A client's records that are in memory at a time. Between stretches its estimates stay, and what is being filled is
sent: one batch of a partition in a stretch ends before its time."""
DAMPED_INITIAL = 0.5
"""Of every codec but none (CompressionType of Kafka 0.10)."""


@dataclass(frozen=True)
class SplitLanes:
    """The lanes of a replay: names and settings; lane 0 is the captured one. What brokers take follows from `limits`,
    by topic: `producers` has it once the topics of a producer are known. default_batch_size: Kafka's, bytes.
    """

    names: tuple[str, ...]
    producers: Producers
    limits: TopicLimits
    default_batch_size: int


@dataclass
class Client:
    """The producer at hand, with its estimates, outcomes and verdicts; topics are numbered as they come.

    created: max.message.bytes that its topics were created with, as far as the capture tells. told_size: batch.size in
    bytes, as its batches tell it; None as long as none was seen.
    """

    client_id: str
    client_address: str
    lanes: SplitLanes
    is_java: bool = True
    topics: dict[str, int] = field(default_factory=dict)
    created: dict[str, int] = field(default_factory=dict)
    answers: AnswersSeen = field(default_factory=AnswersSeen)
    told_size: int | None = None
    expected: Sequences = field(default_factory=dict)
    estimates: Singles = field(default_factory=lambda: np.ones((0, 0, 0), np.float32))
    last_codec: dict[int, int] = field(default_factory=dict)
    judged: dict[tuple[int, int], float] = field(default_factory=dict)
    sums: Sums = field(default_factory=lambda: no_sums(0, 0))
    line: Timeline = field(default_factory=lambda: no_timeline(0, 0))
    spans: list[tuple[int, Ints]] = field(default_factory=list)
    verdicts: Counter[tuple[str, int]] = field(default_factory=Counter)
    near_limit: NearLimit = field(default_factory=NearLimit)
    sent_until: int = 0  # us
    sized: dict[str, list[Sized]] = field(default_factory=dict)

    @property
    def max_message_bytes(self) -> Ints:
        """int64[lanes, topics], the largest batch that brokers take."""
        limits = self.lanes.limits
        return limits.of(self.topics, self.created, self.answers.limits(self.topics, limits.default))

    @property
    def batch_size(self) -> Ints:
        """int64[lanes], bytes."""
        said, told = self.lanes.producers.batch_size, self.told_size
        return np.where(said == BY_CLIENT, self.lanes.default_batch_size if told is None else told, said)


def stretches(parts: Iterable[pa.RecordBatch], most: int) -> Iterator[pa.RecordBatch]:
    """A client's rows in stretches of at least `most` records, but for the last, however they were cut."""
    held: list[pa.RecordBatch] = []
    for part in parts:
        rows = concatenated([*held, part])
        while (cut := cut_at(rows, most)) < rows.num_rows:
            yield rows.slice(0, cut)
            rows = rows.slice(cut)
        held = [rows]
    yield from held


def cut_at(rows: pa.RecordBatch, most: int) -> int:
    """Rows of the first stretch: all where they have fewer records than `most` and one row more."""
    sizes: Any = rows[SENT.record_sizes]  # a ListArray
    counts = np.diff(sizes.offsets.to_numpy().astype(np.int64))
    return min(int(np.searchsorted(np.cumsum(counts), most)) + 1, rows.num_rows)


def replay_splits(
    batches: Iterable[pa.RecordBatch], lanes: SplitLanes, run_id: str, most: int = STRETCH_RECORDS,
    held: HeldRecords | None = None,
) -> Iterator[pa.RecordBatch]:  # fmt: skip
    """Packed rows of gold tables from rows of SENT, sorted by client and by append_from.

    held: the records of the one client that the rows are of; without them sizes come from the model in every lane.
    """
    from udfs.replay.batch_split.rows import client_rows  # the report knows what a client is

    for (client_id, client_address), parts in by_key(batches, CLIENT):
        now = Client(client_id, client_address, lanes)
        for rows in stretches(parts, most):
            replay_stretch(now, rows, held)
        end_spans(now)
        for table, found in client_rows(now, run_id):
            yield from pack(table, found)


def end_spans(now: Client) -> None:
    """Hand out the spans that have begun."""
    for lane in range(min(len(now.lanes.names), len(now.line.closed))):  # none of a client that is not replayed
        now.spans.append((lane, last_spans(now.line, lane, now.sent_until)))


def replay_stretch(now: Client, rows: pa.RecordBatch, held: HeldRecords | None) -> None:
    """Judge a stretch of what the client sent, and send it in every lane."""
    now.is_java = now.is_java and bool(rows[SENT.is_java][0].as_py())
    sent = read_sent(rows, now.topics, now.expected)
    now.created |= created_with(rows)
    now.answers.add(sent)
    settings = with_at_once(own_settings(now, sent, rows))
    order = judge_sent(sent, rows, settings, now.is_java, now.judged, now.verdicts)
    if not now.is_java or len(sent.first) == 0:
        return
    near = near_limit(sent, settings)
    now.near_limit = NearLimit(*(before + more for before, more in zip(now.near_limit, near, strict=True)))
    grow(now, settings)
    now.sent_until = max(now.sent_until, int(sent.rows.request_time.max()))
    measure = None if held is None else recompressed(held, rows, sent.first, sent.begin, sent.log).size
    for metric, found in sized(sent, measure):
        now.sized.setdefault(metric, []).append(found)
    for topic, codec in zip(sent.topic[sent.first].tolist(), sent.rows.codec[sent.first].tolist(), strict=True):
        now.last_codec[topic] = codec
    run_lanes(now, sent, times_in(order, sent), settings, measure or not_measured)


def own_settings(now: Client, sent: Sent, rows: pa.RecordBatch) -> Producers:
    """The lanes' settings, with what the client's release does and what its batches and their answers tell."""
    told, halves = now.lanes.producers, int(rows[SENT.halves][0].as_py())
    told = told._replace(halves=np.where(told.halves == BY_CLIENT, halves, told.halves))
    is_asked = bool((told.batch_size == BY_CLIENT).any())
    if is_asked and now.told_size is None and now.is_java and len(sent.first):
        groups = groups_of(sent, rows, int(told.linger_us[0]), now.judged)
        now.told_size = told_batch_size(sent, groups, told, now.lanes.default_batch_size)
    return told._replace(batch_size=now.batch_size, max_message_bytes=now.max_message_bytes)


def created_with(rows: pa.RecordBatch) -> dict[str, int]:
    """max.message.bytes by topic, of the topics of which the capture tells what they were created with."""
    told = pa.Table.from_batches([rows.filter(rows[SENT.max_message_bytes].is_valid())])
    topics = told.group_by([SENT.topic, SENT.max_message_bytes], use_threads=False).aggregate([])
    return dict(zip(*(topics[name].to_pylist() for name in (SENT.topic, SENT.max_message_bytes)), strict=True))


def with_at_once(lanes: Producers) -> Producers:
    """The lanes, and behind them the captured one again, whose batches are closed as soon as they may have been."""
    columns: Iterator[Any] = (np.append(column, column[:1], axis=0) for column in lanes)
    return Producers(*columns)


def run_lanes(now: Client, sent: Sent, times: Times, settings: Producers, measure: Measure) -> None:
    """Send what was sent, in every lane."""
    linger_us, log = int(settings.linger_us[0]), timed_log(sent, times)
    batches, at_once_batches = (
        batches_of(sent, told, linger_us) for told in (times, soonest(sent, times, linger_us))
    )  # fmt: skip
    memory = working_memory(len(sent.log.time), len(sent.places.topic), len(now.topics))
    at_once = len(now.lanes.names)
    for lane in range(at_once + 1):
        sizes = sent.fitted if settings.is_fitted[lane] else sent.sizes
        closed = at_once_batches if lane == at_once else batches
        spans = run(
            memory, log, closed, sent.places, sizes, now.estimates, settings, lane, now.sums, now.line, measure
        )  # fmt: skip
        if lane < at_once:
            now.spans.append((lane, spans))


def grow(now: Client, settings: Producers) -> None:
    """Make place for topics that came up."""
    lanes, topics, codecs = len(settings.batch_size), len(now.topics), len(CODEC_NAMES)
    estimates = np.ones((lanes, topics, codecs), np.float32)
    estimates[settings.profile == DAMPED, :, 1:] = DAMPED_INITIAL
    known = now.estimates.shape[1]
    sums, line = no_sums(lanes, topics), no_timeline(lanes, topics)
    if known:
        estimates[:, :known] = now.estimates
        for new, old in zip((*sums, *line), (*now.sums, *now.line), strict=True):
            new[:, :known] = old
    now.estimates, now.sums, now.line = estimates, sums, line
