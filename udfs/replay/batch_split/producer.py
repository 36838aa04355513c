"""The producer that is being replayed: what is known about it, and its lanes' outcomes, from stretch to stretch."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.tables.steps import SENT
from udfs.columns.arrays import Array, Ints, Records, Singles
from udfs.columns.time_units import NEVER, US_PER_MS
from udfs.replay.batch_split.drawn_pace import replication_count
from udfs.replay.batch_split.events import Sent, Sequences, read_sent
from udfs.replay.batch_split.fidelity import ProducerFidelity
from udfs.replay.batch_split.inferred import Answers
from udfs.replay.batch_split.possible_estimates.batch_size import inferred_batch_size
from udfs.replay.batch_split.possible_estimates.events import groups_of_sendings
from udfs.replay.batch_split.settings import NOT_STATED, SplitLanes
from udfs.replay.batch_split.state import AS_PRODUCED, initial_estimates, no_outcomes
from udfs.replay.shared.lanes import CAPTURED
from udfs.wire.compressed_sizes import CODEC_NAMES, CODEC_NUMBERS


def with_replications(by_lane: Array, count: int) -> Array:
    """An array by lane, with the lanes that are replayed in addition to the scenario's: first the captured lane with
    batches that close at the earliest possible time; then all lanes `count` times, with pace drawn anew.
    """
    added = np.concatenate([np.full(1, CAPTURED), np.tile(np.arange(len(by_lane)), count)])
    return np.append(by_lane, by_lane[added], axis=0)


@dataclass
class Producer:
    """A producer in the lanes of the scenario and those that `with_replications` adds.

    is_told_apart: it is known which of the processes with its client.id and address sent its batches. halves: its
    release splits a batch that came from a split in halves. default_linger_us: the default of linger.ms in
    its release, in us. topics: their numbers, in the order in which they first came. created: the max.message.bytes
    with which topics were created, if the capture shows it. stored: the codec in which brokers store each topic's
    batches. answers, answers_in_window: brokers' responses of the whole capture, and of the window that is counted.
    inferred_size: batch.size in bytes, as the batches show it; None as long as there were none. estimates:
    float32[lanes, topics, codecs]. outcomes: SPLIT_OUTCOME[lanes, topics]. spans: the full spans of the timelines.
    last_codec: the codec in which each topic was last sent, by number. sent_from, sent_until: when the first and the
    last request were sent (us). stretches: how many were read. replications: how many there are.
    """

    client_id: str
    client_address: str
    lanes: SplitLanes
    fidelity: ProducerFidelity
    is_java: bool = True
    is_told_apart: bool = True
    halves: bool = True
    default_linger_us: int = 0
    topics: dict[str, int] = field(default_factory=dict)
    created: dict[str, int] = field(default_factory=dict)
    stored: dict[str, str] = field(default_factory=dict)
    answers: Answers = field(default_factory=Answers)
    answers_in_window: Answers = field(init=False)
    inferred_size: int | None = None
    sequences: Sequences = field(default_factory=dict)
    estimates: Singles = field(default_factory=lambda: np.ones((0, 0, len(CODEC_NAMES)), np.float32))
    outcomes: Records = field(default_factory=lambda: no_outcomes(0, 0))
    spans: list[Records] = field(default_factory=list)
    last_codec: dict[int, int] = field(default_factory=dict)
    sent_from: int = NEVER
    sent_until: int = 0
    stretches: int = 0
    replications: int = 0

    def __post_init__(self) -> None:
        self.answers_in_window = Answers(window=self.lanes.window)

    @property
    def at_once(self) -> int:
        """The number of the lane, after the scenario's, in which batches close at the earliest possible time."""
        return len(self.lanes.names)

    @property
    def replicated(self) -> Records:
        """The outcomes of lanes with pace drawn anew: SPLIT_OUTCOME[replications, lanes, topics]."""
        outcomes = self.outcomes[self.at_once + 1 :]
        return outcomes.reshape(self.replications, self.at_once, outcomes.shape[1])

    def lanes_of(self, replication: int) -> range:
        """The numbers of the lanes of a replication."""
        first = self.at_once + 1 + replication * self.at_once
        return range(first, first + self.at_once)

    def draws(self, replication: int) -> np.random.Generator:
        """The random draws of pace for the current stretch, the same for equal client ids at different addresses."""
        return np.random.default_rng([zlib.crc32(self.client_id.encode()), self.stretches, replication])

    @property
    def max_message_bytes(self) -> Ints:
        """The largest batch that brokers take: int64[lanes, topics].

        A limit that changed is taken from responses in the window, because it may be the same in all of the window. The
        limit with which a topic was created counts as changed if responses in the window contradict it.
        """
        limits = self.lanes.limits
        within, over_all = (
            answers.limits(self.topics, limits.default) for answers in (self.answers_in_window, self.answers)
        )
        created = {
            topic: limit
            for topic, limit in self.created.items()
            if self.answers_in_window.allow(self.topics[topic], limit)
        }
        return limits.by_topic(self.topics, created, within | over_all)

    @property
    def stored_codecs(self) -> Ints:
        """The codec in which brokers store each topic's batches, or AS_PRODUCED: int64[topics]."""
        stored = (CODEC_NUMBERS.get(self.stored.get(topic, ""), AS_PRODUCED) for topic in self.topics)
        return np.fromiter(stored, np.int64, len(self.topics))

    @property
    def batch_size(self) -> Ints:
        """batch.size as stated, or as the batches show it: int64[lanes], bytes."""
        stated = self.lanes.settings["batch_size"]
        inferred = self.lanes.default_batch_size if self.inferred_size is None else self.inferred_size
        return np.where(stated == NOT_STATED, inferred, stated)

    def read(self, rows: pa.RecordBatch) -> Sent:
        """A stretch of what it sent, from rows of SENT."""
        self.is_java = self.is_java and bool(rows[SENT.is_java][0].as_py())
        self.is_told_apart = self.is_told_apart and bool(rows[SENT.is_told_apart][0].as_py())
        self.halves = bool(rows[SENT.halves][0].as_py())
        self.default_linger_us = int(rows[SENT.linger_ms][0].as_py()) * US_PER_MS
        sent = read_sent(rows, self.topics, self.sequences)
        self.created |= known_by_topic(rows, SENT.max_message_bytes)
        self.stored |= known_by_topic(rows, SENT.stored_codec)
        for answers in (self.answers, self.answers_in_window):
            answers.add(sent, self.stored_codecs)
        if not self.stretches:
            self.replications = replication_count(len(sent.capture.records), self.at_once)
        self.stretches += 1
        return sent

    def settings(self, sent: Sent) -> Records:
        """The lanes' settings, from `with_replications`: SPLIT_SETTINGS[lanes].

        A setting that nobody states is as the stretch shows it, or as in the client's release. Only lanes at captured
        pace compress batches anew to get their sizes.
        """
        settings = self.lanes.settings.copy()
        for name, of_release in (("halves", self.halves), ("linger_us", self.default_linger_us)):
            settings[name] = np.where(settings[name] == NOT_STATED, of_release, settings[name])
        is_stated = (settings["batch_size"] != NOT_STATED).all()
        if not is_stated and self.inferred_size is None and self.is_java and len(sent.capture.batches):
            groups = groups_of_sendings(sent, int(settings["linger_us"][CAPTURED]), self.fidelity.estimates)
            self.inferred_size = inferred_batch_size(
                groups, sent.capture.records, settings, self.fidelity.memory, self.lanes.default_batch_size
            )
        settings["batch_size"] = self.batch_size
        settings = with_replications(settings, self.replications)
        settings["measured_every"][self.at_once + 1 :] = 0
        return settings

    def make_room(self, settings: Records) -> None:
        """Make room for the estimates and outcomes of new topics. settings: SPLIT_SETTINGS[lanes]."""
        lanes, topics, known = len(settings), len(self.topics), self.outcomes.shape[1]
        estimates, outcomes = initial_estimates(settings, topics), no_outcomes(lanes, topics)
        if known:
            estimates[:, :known], outcomes[:, :known] = self.estimates, self.outcomes
        self.estimates, self.outcomes = estimates, outcomes

    def note_sent(self, sent: Sent) -> None:
        """Note the codec in which each topic was last sent, and when the first and the last request were sent."""
        first = sent.first_sendings
        self.last_codec |= dict(zip(first["topic"].tolist(), first["codec"].tolist(), strict=True))
        self.sent_from = min(self.sent_from, int(sent.sendings["request_time"].min()))
        self.sent_until = max(self.sent_until, int(sent.sendings["request_time"].max()))


def known_by_topic(rows: pa.RecordBatch, column: str) -> dict[str, Any]:
    """The value of a column of SENT for each topic, without the topics for which it is null."""
    values = rows[column]
    if values.null_count == len(values):
        return {}
    known = pa.Table.from_batches([rows.filter(values.is_valid())]).select([SENT.topic, column])
    return dict(zip(*(column.to_pylist() for column in known.columns), strict=True))
