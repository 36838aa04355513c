"""Which topics have tiered storage: what the capture shows, and what is stated."""

from __future__ import annotations

import pytest

from jobs.replays.fetch_max_bytes.tiered import known_topics
from jobs.scenarios.scenario_file import resolve_scenario
from udfs.replay.fetch_max_bytes.silver_events import TieredTopics

OF_ALL, OF_A = "topic.remote.storage.enable", "topic.a.remote.storage.enable"


@pytest.mark.parametrize(
    ("stated", "others", "names"),
    [
        ([], False, {"a", "b"}),
        ([f"{OF_A}=false"], False, {"b"}),
        ([f"{OF_A}=true"], False, {"a", "b"}),
        (["topic.c.d.remote.storage.enable=true"], False, {"a", "b", "c.d"}),
        ([f"{OF_ALL}=true"], True, set()),
        ([f"{OF_ALL}=true", f"{OF_A}=false"], True, {"a"}),
        ([f"{OF_ALL}=false"], False, set()),
        ([f"{OF_ALL}=false", f"{OF_A}=true"], False, {"a"}),
    ],
)
def test_a_stated_value_overrides_what_the_capture_shows(stated: list[str], others: bool, names: set[str]) -> None:
    scenario = resolve_scenario(None, ["consumer.fetch.max.bytes=1MiB"], stated)
    assert known_topics({"a", "b"}, scenario) == TieredTopics(others, frozenset(names))
