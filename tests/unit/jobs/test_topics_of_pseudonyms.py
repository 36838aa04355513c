"""Settings of a run on pseudonymised captures name no topic, client or user, because the table `runs` has them."""

from __future__ import annotations

import pytest

from jobs.lake.capture_sets import check_topic_names
from jobs.scenarios.scenario import with_names
from jobs.scenarios.scenario_file import resolve_scenario
from jobs.scenarios.settings import key_with_names
from jobs.version import decoder_version
from udfs.errors import ArgumentError
from udfs.facts.pseudonyms import Pseudonyms

KEY = Pseudonyms(b"a secret key of ours")
CALLED = KEY.of("topic", "orders")


@pytest.mark.parametrize(
    "flags", [(["topic.orders.max.message.bytes=1MiB"], []), ([], ["topic.orders.max.message.bytes=1MiB"])]
)
def test_a_topic_that_a_setting_names_is_refused_if_the_lake_has_pseudonyms(
    flags: tuple[list[str], list[str]],
) -> None:
    scenario = resolve_scenario(None, *flags)
    with pytest.raises(ArgumentError, match=r"^/lake has pseudonyms, .* name orders\. Name them by their pseud"):
        check_topic_names("/lake", decoder_version(KEY), scenario)
    check_topic_names("/lake", decoder_version(None), scenario)


@pytest.mark.parametrize("topic", [CALLED, "__consumer_offsets"])
def test_pseudonyms_and_names_that_everybody_knows_are_accepted(topic: str) -> None:
    check_topic_names("/lake", decoder_version(KEY), resolve_scenario(None, [f"topic.{topic}.max.message.bytes=1MiB"]))


ANN, APP = KEY.of("principal", "User:ann"), KEY.of("client", "app")


@pytest.mark.parametrize(
    ("given", "called"),
    [
        ("user.ann.consumer_byte_rate", f"user.{ANN}.consumer_byte_rate"),
        ("client.app.consumer_byte_rate", f"client.{APP}.consumer_byte_rate"),
        ("user.ann.client.app.consumer_byte_rate", f"user.{ANN}.client.{APP}.consumer_byte_rate"),
        ("user.client.app.consumer_byte_rate", f"user.client.{APP}.consumer_byte_rate"),
        ("user.ann.client.consumer_byte_rate", f"user.{ANN}.client.consumer_byte_rate"),
        ("user.client.consumer_byte_rate", "user.client.consumer_byte_rate"),
        ("topic.orders.max.message.bytes", f"topic.{CALLED}.max.message.bytes"),
        ("user.ANONYMOUS.consumer_byte_rate", "user.ANONYMOUS.consumer_byte_rate"),
    ],
)
def test_settings_of_users_and_clients_are_accepted_by_pseudonym_and_refused_by_name(given: str, called: str) -> None:
    assert key_with_names(given, KEY.given) == called
    assert key_with_names(called, KEY.given) == called
    check_topic_names("/lake", decoder_version(KEY), resolve_scenario(None, [f"{called}=1MiB"]))
    if given != called:
        with pytest.raises(ArgumentError, match=r"^/lake has pseudonyms"):
            check_topic_names("/lake", decoder_version(KEY), resolve_scenario(None, [f"{given}=1MiB"]))


@pytest.mark.parametrize(
    ("given", "called"),
    [
        ("client.app.client.rack", f"client.{APP}.client.rack"),
        ("address.10.0.0.1.client.rack", f"address.{KEY.of('host', '10.0.0.1')}.client.rack"),
        ("broker.1.broker.rack", "broker.1.broker.rack"),
    ],
)
def test_racks_are_accepted_by_their_pseudonyms(given: str, called: str) -> None:
    rack = KEY.of("host", "eu-1a")
    for stated in (f"{given}=eu-1a", f"{called}={rack}"):
        assert with_names(resolve_scenario(None, [], [stated]), KEY.given).stated == {called: rack}
    check_topic_names("/lake", decoder_version(KEY), resolve_scenario(None, [], [f"{called}={rack}"]))
    with pytest.raises(ArgumentError, match=r"^/lake has pseudonyms, .* name .*eu-1a\. Name them by their pseud"):
        check_topic_names("/lake", decoder_version(KEY), resolve_scenario(None, [], [f"{given}=eu-1a"]))


def test_a_subnet_is_refused_if_addresses_are_pseudonyms() -> None:
    scenario = resolve_scenario(None, [], ["address.10.0.0.0/24.client.rack=eu-1a"])
    with pytest.raises(ArgumentError, match=r"^address\.10\.0\.0\.0/24: tables of pseudonyms do not show which addr"):
        with_names(scenario, KEY.given)
