"""The settings of producers and brokers that decide about batches and splits, in each lane."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np

from udfs.columns.arrays import Ints, Records
from udfs.columns.records import new_records
from udfs.columns.time_units import US_PER_MS
from udfs.facts.record_sampling import SAMPLE_EVERY
from udfs.replay.shared.lanes import KAFKA_RELEASE, PROPOSAL, LaneSettings, Value, stated_release_numbers
from udfs.replay.shared.window import WHOLE, Window
from udfs.wire.compressed_sizes import CODEC_NAMES, CODEC_NUMBERS, DEFAULT_LEVELS

BATCH_SIZE, LINGER, CODEC = "producer.batch.size", "producer.linger.ms", "producer.compression.type"
TOPIC_LIMIT, BROKER_LIMIT = "topic.max.message.bytes", "broker.message.max.bytes"
PROFILE, SIZES, RECOMPRESS = "split.profile", "recut.sizes", "recompress"
CONSTANTS = ("improving.step", "deteriorate.step", "estimation.factor")
"""The constants of the estimate: each is a setting whose name begins with `compression.ratio.`."""
EXACT, FITTED = "exact", "fitted"
"""Values of SIZES: batches are compressed anew to get their sizes, or sizes come from the fitted lines only."""
HALVES_SINCE = (4, 2)
"""The first release that splits a part of a split batch in halves if brokers refuse that part, too."""

TODAY, KIP_TEXT, DAMPED, UNCOMPRESSED, SPLIT_AT_BATCH_SIZE = range(5)
PROFILES = ("today", "kip", "damped", "uncompressed", "split_at_batch_size")
"""The values of PROFILE: Kafka's code; the text of KIP-126, where the estimate moves by single steps, and a split sets
it to 1.0 and makes two batches; Kafka before KIP-126, with one estimate for all topics and without splits; and the two
designs that the KIP rejects."""

NOT_STATED = -1
"""Stands for a value that neither a lane sets nor anybody states. The value then comes from elsewhere: batch.size from
the producer's batches; the rule of HALVES_SINCE and the default of linger.ms from the client's release; a topic's limit
from its creation or brokers' responses, otherwise from Kafka's default."""

SPLIT_SETTINGS = np.dtype(
    [
        ("batch_size", np.int64),  # bytes, or NOT_STATED
        ("linger_us", np.int64),  # us, or NOT_STATED
        ("codec", np.int64),  # its index in CODEC_NAMES, or AS_CAPTURED
        ("profile", np.int64),  # its index in PROFILES
        ("halves", np.int64),  # 1: a part of a split batch that is refused again is split in halves; or NOT_STATED
        ("is_fitted", np.int64),  # 1: compressed sizes come from the fitted lines only
        ("measured_every", np.int64),  # one batch in this many is compressed anew to get its size; 0: none
        ("improving_step", np.float32),
        ("deteriorate_step", np.float32),
        ("estimation_factor", np.float32),
    ],
    align=True,
)
"""A producer's settings in a lane. The constants of the estimate are floats, as in Kafka."""


@dataclass(frozen=True)
class TopicLimits:
    """max.message.bytes as lanes set it and people state it, in bytes.

    by_name: for each lane, the limits of single topics by name. all_topics: int64[lanes], the limit of every topic, or
    NOT_STATED. brokers: int64[lanes], message.max.bytes of brokers, or NOT_STATED. default: Kafka's message.max.bytes.
    """

    by_name: tuple[Mapping[str, int], ...]
    all_topics: Ints
    brokers: Ints
    default: int

    def by_topic(self, topics: Collection[str], created: Mapping[str, int], inferred: Mapping[str, int]) -> Ints:
        """The limit of each topic in each lane: int64[lanes, topics].

        A lane's limit overrides the limit with which a topic was created, and a topic's limit overrides that of the
        brokers. created: the limits with which topics were created, if the capture shows them. inferred: the limits
        that brokers' responses show, if Kafka's default does not explain the responses.
        """
        numbers = {topic: number for number, topic in enumerate(topics)}
        limits = np.full((len(self.brokers), len(numbers)), self.default)
        _set_topics(limits, numbers, inferred)
        _set_lanes(limits, self.brokers)
        _set_topics(limits, numbers, created)
        _set_lanes(limits, self.all_topics)
        for lane_limits, by_name in zip(limits, self.by_name, strict=True):
            _set_topics(lane_limits, numbers, by_name)
        return limits


def _set_topics(limits: Ints, numbers: Mapping[str, int], by_name: Mapping[str, int]) -> None:
    """Set the limits of single topics. limits: int64[..., topics]."""
    for topic in by_name.keys() & numbers.keys():
        limits[..., numbers[topic]] = by_name[topic]


def _set_lanes(limits: Ints, by_lane: Ints) -> None:
    """Set the limits of those lanes that state one. limits: int64[lanes, topics]."""
    is_stated = by_lane != NOT_STATED
    limits[is_stated] = by_lane[is_stated, None]


@dataclass(frozen=True)
class SplitLanes:
    """The lanes of a replay.

    settings: SPLIT_SETTINGS[lanes]. default_batch_size: Kafka's batch.size, bytes. window: the time that counts.
    levels: the stated level of compression (KIP-390), by the codec's index in CODEC_NAMES.
    """

    names: tuple[str, ...]
    settings: Records
    limits: TopicLimits
    default_batch_size: int
    window: Window = WHOLE
    levels: Mapping[int, int] = field(default_factory=dict)

    @property
    def measures(self) -> bool:
        """Whether any lane compresses batches anew, for which the records themselves are needed."""
        return bool(self.settings["measured_every"].any())


def split_lanes(lanes: LaneSettings, assumed: Collection[str]) -> SplitLanes:
    """The settings of a scenario's lanes.

    assumed: the settings that nobody states. `lanes.in_force` has Kafka's default for them, which counts as not stated.
    """
    releases, sizes, profile = lanes.values(KAFKA_RELEASE), lanes.values(SIZES), lanes.choices(PROFILE, PROFILES)
    by_text = (profile == TODAY) & np.array([release == PROPOSAL for release in releases])
    every = 1 if lanes.in_force.get(RECOMPRESS) == "all" else SAMPLE_EVERY
    linger_ms = _stated(lanes, LINGER, assumed)
    settings = new_records(
        SPLIT_SETTINGS,
        len(lanes.names),
        batch_size=_stated(lanes, BATCH_SIZE, assumed),
        linger_us=np.where(linger_ms == NOT_STATED, NOT_STATED, linger_ms * US_PER_MS),
        codec=lanes.choices(CODEC, CODEC_NAMES),
        profile=np.where(by_text, KIP_TEXT, profile),
        halves=[_halves(release) for release in releases],
        is_fitted=[mode == FITTED for mode in sizes],
        measured_every=[every if mode == EXACT else 0 for mode in sizes],
        **{name.replace(".", "_"): lanes.singles(f"compression.ratio.{name}") for name in CONSTANTS},
    )
    limits = _topic_limits(lanes, assumed)
    return SplitLanes(
        lanes.names, settings, limits, int(lanes.in_force[BATCH_SIZE]), levels=_stated_levels(lanes.in_force)
    )


def _stated_levels(in_force: Mapping[str, Value]) -> dict[int, int]:
    """The stated level of compression, by codec."""
    keys = {CODEC_NUMBERS[codec]: f"producer.compression.{codec}.level" for codec in DEFAULT_LEVELS}
    return {codec: int(in_force[key]) for codec, key in keys.items() if key in in_force}


def _topic_limits(lanes: LaneSettings, assumed: Collection[str]) -> TopicLimits:
    """max.message.bytes as lanes set it and people state it.

    A limit that a lane sets for all topics overrides the limits that are stated for single topics.
    """
    stated = _limits_by_name(lanes.in_force)
    return TopicLimits(
        tuple(({} if TOPIC_LIMIT in lane else stated) | _limits_by_name(lane) for lane in lanes.changed),
        all_topics=_stated(lanes, TOPIC_LIMIT, assumed),
        brokers=_stated(lanes, BROKER_LIMIT, assumed),
        default=int(lanes.in_force[BROKER_LIMIT]),
    )


def _stated(lanes: LaneSettings, key: str, assumed: Collection[str]) -> Ints:
    """The value of a setting in each lane: the lane's own, otherwise the stated one, otherwise NOT_STATED:
    int64[lanes].
    """
    return lanes.changed_ints(key, NOT_STATED) if key in assumed else lanes.ints(key, NOT_STATED)


def _halves(release: Value | None) -> int:
    """1 if a release, such as `4.3`, has the rule of HALVES_SINCE, otherwise 0; NOT_STATED if no release is stated."""
    numbers = stated_release_numbers(release)
    return NOT_STATED if numbers is None else int(numbers >= HALVES_SINCE)


def _limits_by_name(values: Mapping[str, Value]) -> dict[str, int]:
    """max.message.bytes by topic, from settings such as topic.orders.max.message.bytes."""
    scope, _, name = TOPIC_LIMIT.partition(".")
    prefix, suffix = f"{scope}.", f".{name}"
    return {
        key.removeprefix(prefix).removesuffix(suffix): int(value)
        for key, value in values.items()
        if key != TOPIC_LIMIT and key.startswith(prefix) and key.endswith(suffix)
    }
