"""How the replay of KIP-126 takes a scenario's settings."""

from __future__ import annotations

import numpy as np
import pytest

from jobs.replays.batch_split.job import lanes_for_splits
from jobs.scenarios.scenario_file import resolve_scenario
from jobs.scenarios.settings import settings
from tests.unit.replay.batch_split.producers import KAFKA_LIMIT, sent, sent_batch
from udfs.columns.time_units import US_PER_MS
from udfs.errors import ScenarioError
from udfs.replay.batch_split.fidelity import ProducerFidelity
from udfs.replay.batch_split.possible_estimates.state import new_memory
from udfs.replay.batch_split.producer import Producer
from udfs.replay.batch_split.settings import (
    CODEC,
    EXACT,
    FITTED,
    NOT_STATED,
    PROFILE,
    PROFILES,
    SIZES,
    TopicLimits,
)
from udfs.wire.compressed_sizes import CODEC_NAMES

TOPICS = ["orders", "max.message.bytes", "clicks"]
CREATED = {"clicks": 5000}


def limits(sets: list[str], stated: list[str]) -> dict[str, list[int]]:
    """max.message.bytes of TOPICS by lane. `clicks` was created with its own."""
    lanes = lanes_for_splits(resolve_scenario(None, [*sets, "batch.size=16384"], stated))
    return dict(zip(lanes.names, lanes.limits.by_topic(TOPICS, CREATED, {}).tolist(), strict=True))


def test_a_topic_has_its_own_limit_or_the_brokers() -> None:
    assert limits([], [])["captured"] == [1048588, 1048588, 5000]
    assert limits([], ["message.max.bytes=2MB"])["captured"] == [2_000_000, 2_000_000, 5000]


def test_a_limit_stated_for_one_topic_goes_before_one_stated_for_all_and_that_before_the_captured_one() -> None:
    own = ["topic.orders.max.message.bytes=40000", "topic.max.message.bytes.max.message.bytes=30000"]
    assert limits([], own)["captured"] == [40000, 30000, 5000]
    assert limits([], ["max.message.bytes=1MB", *own])["captured"] == [40000, 30000, 1_000_000]


def test_a_lanes_limit_for_all_topics_goes_before_one_stated_for_one_topic() -> None:
    stated, lane = ["topic.orders.max.message.bytes=40000"], "producer.batch.size=16KiB,topic"
    found = limits(["max.message.bytes=1MB", "topic.clicks.max.message.bytes=2MB"], stated)
    assert found["captured"] == [40000, 1048588, 5000]
    assert found[f"{lane}.max.message.bytes=1MB,topic.clicks.max.message.bytes=2MB"] == [10**6, 10**6, 2 * 10**6]
    found = limits(["topic.clicks.max.message.bytes=2MB,3MB"], stated)
    assert found[f"{lane}.clicks.max.message.bytes=3MB"] == [40000, 1048588, 3 * 10**6]


def test_levels_of_compression_are_those_that_are_stated() -> None:
    of = {CODEC_NAMES.index(codec): level for codec, level in (("gzip", -1), ("lz4", 12), ("zstd", -7))}
    stated = ["compression.gzip.level=-1", "producer.compression.lz4.level=12", "compression.zstd.level=-7"]
    assert lanes_for_splits(resolve_scenario(None, ["batch.size=16384"], stated)).levels == of
    assert lanes_for_splits(resolve_scenario(None, ["batch.size=16384"], [])).levels == {}


def test_no_lane_takes_a_level_of_compression_and_kafkas_bounds_hold() -> None:
    with pytest.raises(ScenarioError, match=r"compression\.zstd\.level"):
        resolve_scenario(None, ["producer.compression.zstd.level=1"], [])
    for stated in ("compression.zstd.level=23", "compression.lz4.level=0", "compression.gzip.level=10"):
        with pytest.raises(ScenarioError, match="level"):
            resolve_scenario(None, ["batch.size=16384"], [stated])


def test_every_release_from_4_2_on_halves_a_split_batch_that_is_refused_again() -> None:
    releases = [release for release in settings()["kafka"].choices if release != "kip"]
    lanes = lanes_for_splits(resolve_scenario(None, [f"kafka={','.join(releases)}", "batch.size=16384"], []))
    halved = dict(zip(releases, lanes.settings["halves"][1:].tolist(), strict=True))
    assert [release for release, halves in halved.items() if halves] == ["4.4", "4.3", "4.2"]
    assert lanes.settings["halves"][0] == NOT_STATED, "the client shows its release"


def test_another_message_max_bytes_applies_to_topics_without_a_limit_of_their_own() -> None:
    found = limits(["message.max.bytes=3MB"], ["topic.orders.max.message.bytes=40000"])
    assert found["producer.batch.size=16KiB,broker.message.max.bytes=3MB"] == [40000, 3 * 10**6, 5000]


def test_a_lanes_limit_for_a_topic_overrides_its_limit_for_all_which_overrides_the_created_one() -> None:
    limits = TopicLimits(({}, {}, {"a": 1}), np.array([NOT_STATED, 2, 2]), np.full(3, 4), KAFKA_LIMIT)
    assert limits.by_topic(["a", "b", "c"], {"a": 3, "b": 3}, {}).tolist() == [[3, 3, 4], [2, 2, 2], [1, 2, 2]]


@pytest.mark.parametrize(("stated", "batch_size"), [([], NOT_STATED), (["batch.size=16384"], 16384)])
def test_kafkas_default_does_not_count_as_stated(stated: list[str], batch_size: int) -> None:
    """A batch.size that nobody states is inferred from the producer's batches. Stating the default prevents that."""
    lanes = lanes_for_splits(resolve_scenario(None, ["batch.size=32KiB", "message.max.bytes=3MB"], stated))
    assert lanes.settings["batch_size"].tolist() == [batch_size, 32768]
    assert lanes.limits.brokers.tolist() == [NOT_STATED, 3 * 10**6]
    assert (lanes.default_batch_size, lanes.limits.default) == (16384, KAFKA_LIMIT)


def test_the_choices_of_settings_are_those_that_the_replay_knows() -> None:
    choices = {key: settings()[key].choices for key in (PROFILE, CODEC, SIZES)}
    assert (choices[PROFILE], choices[CODEC]) == (PROFILES, CODEC_NAMES)
    assert {EXACT, FITTED} < set(choices[SIZES])


@pytest.mark.parametrize(("stated", "linger_ms"), [([], 7), (["producer.linger.ms=20"], 20)])
def test_a_producer_lingers_as_its_release_does_unless_linger_ms_is_stated(stated: list[str], linger_ms: int) -> None:
    lanes = lanes_for_splits(resolve_scenario(None, ["producer.batch.size=16KiB"], stated))
    producer = Producer("c", "10.0.0.1", lanes, ProducerFidelity(new_memory()), inferred_size=16384)
    shown = producer.read(sent_batch([sent(0, 8, 800, 9, 0, linger_ms=7)]))
    assert set(producer.settings(shown)["linger_us"].tolist()) == {linger_ms * US_PER_MS}
