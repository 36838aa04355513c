"""The catalogue of settings, conf/settings.yaml."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jobs.scenarios.settings import did_you_mean, find_setting, setting_of, settings
from udfs.errors import SettingError


def test_settings_have_kafkas_defaults_and_bounds() -> None:
    """ConsumerConfig, ProducerConfig, TopicConfig, ReplicationConfigs and ServerConfigs of Kafka 4.3."""
    table = {key: (s.default_value, s.minimum, s.captured) for key, s in settings().items()}
    assert table == {
        "consumer.fetch.max.bytes": (52428800, 0, False),
        "consumer.max.partition.fetch.bytes": (1048576, 0, False),
        "replica.fetch.response.max.bytes": (10485760, 0, False),
        "replica.fetch.max.bytes": (1048576, 0, False),
        "num.replica.fetchers": (1, 1, False),
        "broker.fetch.max.bytes": (57671680, 1024, True),
        "consumer_byte_rate": ("none", 1, True),
        "user.client.consumer_byte_rate": ("none", 1, True),
        "user.consumer_byte_rate": ("none", 1, True),
        "producer_byte_rate": ("none", 1, True),
        "user.client.producer_byte_rate": ("none", 1, True),
        "user.producer_byte_rate": ("none", 1, True),
        "broker.quota.window.num": (11, 1, True),
        "broker.quota.window.size.seconds": (1, 1, True),
        "kafka": (None, None, True),
        "max.broker.partitions": ("none", None, False),
        "max.partitions": ("none", None, False),
        "controller_mutation_rate": ("none", 0.01, True),
        "controller": ("kraft", None, True),
        "broker.num.partitions": (None, 1, True),
        "broker.default.replication.factor": (None, 1, True),
        "broker.max.incremental.fetch.session.cache.slots": (1000, 0, True),
        "broker.group.share.max.share.sessions": (2000, 1, True),
        "broker.min.incremental.fetch.session.eviction.ms": (120000, 0, True),
        "broker.NumFetchSessionCacheShards": (None, 1, True),
        "consumer.fetch.min.bytes": (1, 0, False),
        "consumer.fetch.max.wait.ms": (500, 0, False),
        "consumer.queued.max.messages.kbytes": (65536, 1, True),
        "consumer.queued.min.messages": (100000, 1, True),
        "consumer.fetch.queue.backoff.ms": (1000, 0, True),
        "consumer.max.poll.records": (500, 1, True),
        "replica.fetch.min.bytes": (1, None, False),
        "replica.fetch.wait.max.ms": (500, None, False),
        "traffic.speed": (1.0, 0.01, False),
        "traffic.consumers": (1, 1, False),
        "processing.us.per.record": (None, 0, False),
        "profile": (None, None, False),
        "order": (None, None, False),
        "consumer.buffer.memory": ("none", 1, False),
        "memory.pool": ("non_strict", None, False),
        "memory.variant": ("memory_pool", None, False),
        "broker.queued.max.request.bytes": ("none", 1, True),
        "broker.num.network.threads": (3, 1, True),
        "broker.socket.request.max.bytes": (104857600, 1, True),
        "producer.buffer.memory": (33554432, 0, True),
        "producer.batch.size": (16384, 0, True),
        "producer.max.block.ms": (60000, 0, True),
        "sending.threads": (1, 1, True),
        "producer.linger.ms": (5, 0, True),
        "producer.compression.type": (None, None, False),
        "producer.compression.gzip.level": (None, -1, True),
        "producer.compression.lz4.level": (None, 1, True),
        "producer.compression.zstd.level": (None, -131072, True),
        "broker.message.max.bytes": (1048588, 0, True),
        "topic.max.message.bytes": (None, 0, True),
        "topic.remote.storage.enable": (None, None, True),
        "consumer.client.rack": (None, None, True),
        "broker.rack": (None, None, True),
        "compression.ratio.improving.step": (0.005, 0, False),
        "compression.ratio.deteriorate.step": (0.05, 0, False),
        "compression.ratio.estimation.factor": (1.05, 0, False),
        "split.profile": ("today", None, False),
        "recut.sizes": ("recompressed", None, True),
        "recompress": ("sampled", None, True),
        "producer.process": ("client", None, True),
    }


def test_a_bare_name_means_the_consumers_setting_among_lanes_and_the_brokers_among_captured() -> None:
    everything = settings().values()
    assert find_setting("fetch.max.bytes", everything).key == "consumer.fetch.max.bytes"
    captured = [setting for setting in everything if setting.captured]
    assert find_setting("fetch.max.bytes", captured).key == "broker.fetch.max.bytes"


@pytest.mark.parametrize(
    ("spelt", "for_all"),
    [
        ("client.app.consumer_byte_rate", "consumer_byte_rate"),
        ("user.ann@x.y.consumer_byte_rate", "user.consumer_byte_rate"),
        ("user.ann.client.consumer_byte_rate", "user.client.consumer_byte_rate"),
        ("user.client.my.app.consumer_byte_rate", "user.client.consumer_byte_rate"),
        ("user.ann.client.my.app.consumer_byte_rate", "user.client.consumer_byte_rate"),
        ("topic.orders.max.message.bytes", "topic.max.message.bytes"),
        ("broker.2.fetch.max.bytes", "broker.fetch.max.bytes"),
        ("broker.12.queued.max.request.bytes", "broker.queued.max.request.bytes"),
    ],
)
def test_a_setting_for_one_is_the_setting_for_all_with_a_name(spelt: str, for_all: str) -> None:
    setting = setting_of(spelt)
    assert setting.key == spelt
    assert setting.model_copy(update={"one": None}).key == for_all
    assert setting.parse("1MiB") == 1 << 20


@pytest.mark.parametrize(
    ("spelt", "for_all"),
    [
        ("client.my.app.client.rack", "consumer.client.rack"),
        ("address.10.0.0.1.client.rack", "consumer.client.rack"),
        ("address.2001:db8::/32.client.rack", "consumer.client.rack"),
        ("broker.12.broker.rack", "broker.rack"),
    ],
)
def test_a_rack_can_be_that_of_a_client_an_address_a_subnet_or_a_broker(spelt: str, for_all: str) -> None:
    setting = setting_of(spelt)
    assert (setting.key, setting.model_copy(update={"one": None}).key) == (spelt, for_all)
    assert setting.parse("eu-1a") == "eu-1a"


def test_the_message_names_an_invalid_subnet_or_rack() -> None:
    with pytest.raises(ValueError, match=r"^`10\.0\.300\.0/24` is neither an IP address nor a subnet, such as 10"):
        setting_of("address.10.0.300.0/24.client.rack").parse("eu-1a")
    with pytest.raises(ValueError, match=r"^`eu 1a` is no rack: expected 1 to 249 characters, without spaces"):
        setting_of("client.app.client.rack").parse("eu 1a")


@pytest.mark.parametrize("spelt", ["client.consumer_byte_rate", "user.a b.consumer_byte_rate", "topic.a.linger.ms"])
def test_a_name_is_refused_for_a_setting_that_holds_for_all(spelt: str) -> None:
    with pytest.raises(KeyError):
        setting_of(spelt)


def test_a_full_name_is_taken_as_it_is() -> None:
    assert find_setting("broker.fetch.max.bytes", settings().values()).set_on == "broker"


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("fetch.max.byte", "fetch.max.bytes"), ("consumer.fetch.max.byte", "consumer.fetch.max.bytes")],
)
def test_the_message_on_a_mistyped_name_has_the_nearest_name(typed: str, meant: str) -> None:
    with pytest.raises(KeyError, match=f"did you mean `{meant}`"):
        find_setting(typed, settings().values())


@pytest.mark.parametrize("spelt", ["request_percentage", "user.ann.request_percentage"])
def test_a_quota_that_no_replay_has_is_refused_with_the_reason(spelt: str) -> None:
    with pytest.raises(KeyError, match="packets do not show how long"):
        find_setting(spelt, settings().values())


def test_the_message_on_a_name_like_no_other_has_the_list() -> None:
    assert did_you_mean("zzz", ["lake", "replay"]) == "; known here: lake, replay"


@pytest.mark.parametrize("value", [1024, 8 * 1024 * 1024, 57671680, 57671681, 2147483647])
def test_a_value_reads_back_from_its_short_form(value: int) -> None:
    setting = settings()["broker.fetch.max.bytes"]
    assert setting.parse(setting.format(value)) == value


def test_no_bound_is_ordered_after_all_other_values_if_it_is_the_default() -> None:
    quota = settings()["controller_mutation_rate"]
    values = sorted(map(quota.parse, ("none", "10", "2.5")), key=quota.order)
    assert [quota.format(value) for value in values] == ["2.5", "10", "none"]


@pytest.mark.parametrize(
    ("key", "text", "told"),
    [
        ("broker.fetch.max.bytes", "1023", "below the minimum, 1024"),
        ("consumer.fetch.max.bytes", "2GiB", "above the maximum, 2147483647"),
        ("consumer.fetch.max.bytes", "none", "`none` is not a size in bytes"),
        ("controller_mutation_rate", "0", "below the minimum, 0.01"),
        ("kafka", "4.5", "none of 4.4, 4.3, 4.2, 4.1, 4.0, 3.9, 3.8, 3.7, 3.2, 2.7, 2.4, kip"),
    ],
)
def test_a_value_that_kafka_would_refuse_is_refused(key: str, text: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        settings()[key].parse(text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("3.5", ", kip; the rules of 3.5 are those of 3.7"),
        ("2.8.1", ", kip; the rules of 2.8.1 are those of 3.2"),
        ("2.0", ", kip; the rules of 2.0 are those of 2.4"),
        ("4.5", ", kip"),
        ("KIP", ", kip"),
    ],
)
def test_the_message_on_a_release_without_rules_of_its_own_names_the_release_whose_rules_it_has(
    text: str, told: str
) -> None:
    with pytest.raises(ValueError, match=rf"{re.escape(told)}$"):
        settings()["kafka"].parse(text)


def entry(**changed: str) -> str:
    fields = {"name": "a", "set_on": "broker", "type": "int", "unit": "n", "default": "1", "captured": "false"}
    fields |= {"algorithms": "[]", "kip": "null", "doc": "d"} | changed
    return f"- {{{', '.join(f'{key}: {value}' for key, value in fields.items())}}}\n"


def test_all_faults_of_a_catalogue_are_reported(tmp_path: Path) -> None:
    faulty = tmp_path / "faulty.yaml"
    faulty.write_text(entry(set_on="client") + entry(type="enum") + entry(default="1MiB") + entry(defualt="1"))
    with pytest.raises(SettingError) as raised:
        settings(faulty)
    assert [fault.partition(":")[0] for fault in raised.value.faults] == [
        "entry 0.set_on",
        "entry 1",
        "entry 2",
        "entry 3.defualt",
    ]


def test_a_catalogue_declares_a_setting_once(tmp_path: Path) -> None:
    twice = tmp_path / "twice.yaml"
    twice.write_text(entry() * 2)
    with pytest.raises(SettingError, match=r"broker\.a is declared twice"):
        settings(twice)


def test_a_part_of_a_name_finds_the_only_setting_with_that_part() -> None:
    captured = [setting for setting in settings().values() if setting.captured]
    assert find_setting("slots", captured).name == "max.incremental.fetch.session.cache.slots"
    with pytest.raises(KeyError):
        find_setting("bytes", captured)


def test_the_catalogue_says_which_settings_nobody_can_set_and_which_no_release_has() -> None:
    known = settings().values()
    assert {setting.key for setting in known if not setting.can_be_set} == {
        "broker.NumFetchSessionCacheShards", "broker.min.incremental.fetch.session.eviction.ms",
        "compression.ratio.deteriorate.step", "compression.ratio.estimation.factor", "compression.ratio.improving.step",
        "kafka", "memory.pool", "memory.variant", "order", "processing.us.per.record", "profile", "recut.sizes",
        "split.profile", "traffic.consumers", "traffic.speed",
    }  # fmt: skip
    assert {setting.key for setting in known if setting.can_be_set and not setting.is_in_production} == {
        "consumer.buffer.memory", "max.broker.partitions", "max.partitions",
    }  # fmt: skip
    assert setting_of("kafka").is_in_production
