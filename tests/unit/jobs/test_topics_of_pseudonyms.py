"""A run on pseudonymised captures names no topic, for the table of runs has its settings."""

from __future__ import annotations

import pytest

from jobs.lake.capture_sets import check_topic_names
from jobs.scenarios.scenario_file import resolve_scenario
from jobs.version import decoder_version
from udfs.errors import ArgumentError
from udfs.facts.pseudonyms import Pseudonyms

KEY = Pseudonyms(b"a secret key of ours")
CALLED = KEY.of("topic", "orders")


@pytest.mark.parametrize(
    "flags", [(["topic.orders.max.message.bytes=1MiB"], []), ([], ["topic.orders.max.message.bytes=1MiB"])]
)
def test_a_topic_that_a_setting_names_is_refused_where_the_lake_has_pseudonyms(
    flags: tuple[list[str], list[str]],
) -> None:
    scenario = resolve_scenario(None, *flags)
    with pytest.raises(ArgumentError, match=r"^/lake has pseudonyms, .* name orders\. Name them by their pseud"):
        check_topic_names("/lake", decoder_version(KEY), scenario)
    check_topic_names("/lake", decoder_version(None), scenario)


@pytest.mark.parametrize("topic", [CALLED, "__consumer_offsets"])
def test_a_pseudonym_and_a_name_that_all_know_are_taken(topic: str) -> None:
    check_topic_names("/lake", decoder_version(KEY), resolve_scenario(None, [f"topic.{topic}.max.message.bytes=1MiB"]))
