"""Which profile is replayed for the release that brokers show."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pyspark.sql import Row

from jobs.captures.kafka_release import (
    BY_APIS,
    BY_FETCHES,
    BY_FOLLOWERS,
    BrokerRelease,
    controller_in_rows,
    oldest_and_newest,
    releases,
)
from jobs.replay import with_release
from jobs.run import Run
from jobs.scenarios.scenario_file import resolve_scenario
from schemas.wire.releases import MARKS


@pytest.mark.parametrize(
    ("release", "profile"),
    [
        ("4.4", "4.4"), ("4.3", "4.3"), ("3.7", "3.7"), ("3.3", "3.7"), ("3.2", "3.2"), ("2.8", "3.2"), ("2.5", "2.7"),
        ("2.4", "2.4"), ("0.10.2", "2.4"),
        ("9.9", "4.4"),
    ],
)  # fmt: skip
def test_a_profile_is_used_for_all_releases_after_the_profile_before_it(release: str, profile: str) -> None:
    assert BrokerRelease(release, release, BY_APIS).profile == profile


def test_every_profile_begins_with_a_mark() -> None:
    assert {BrokerRelease(mark.release, mark.release, BY_APIS).profile for mark in MARKS} == set(releases())


@pytest.mark.parametrize(
    ("release", "by", "told"),
    [
        ("4.3", BY_APIS, "4.3, from the API versions that brokers offer"),
        ("2.8", BY_APIS, "3.2 for brokers of 2.8, from the API versions that brokers offer"),
        ("0.10.2", BY_APIS, "2.4 for brokers of 0.10.2, from the API versions that brokers offer"),
        ("3.3", BY_APIS, "3.7 for brokers of 3.3 or 3.4, from the API versions that brokers offer"),
        ("3.3", BY_FOLLOWERS, "3.7 for brokers of 3.3, from what followers say of themselves"),
        ("1.1", BY_FETCHES, "2.4 for brokers of 1.1 or later, from the Fetch versions that followers use"),
    ],
)
def test_the_text_names_the_brokers_release_and_the_profile_that_is_replayed(release: str, by: str, told: str) -> None:
    assert BrokerRelease(release, release, by).text == told


def test_brokers_of_two_releases_count_as_the_older_one() -> None:
    rows = [Row("1", "3.9"), Row("1", "4.3"), Row("2", "3.10"), Row("3", "4.3")]
    seen = oldest_and_newest(rows)
    assert seen == ("3.10", "4.3")
    assert BrokerRelease(*seen, BY_FOLLOWERS).text == (
        "4.0 for brokers of 3.10, from what followers say of themselves (some are of 4.3)"
    )


@pytest.mark.parametrize(
    ("shown", "controller", "text"),
    [
        (["kraft", "kraft"], "kraft", "3.9, from the API versions that brokers offer"),
        (["kraft", "zookeeper"], "zookeeper", "3.9 with ZooKeeper, from the API versions that brokers offer"),
        ([None], None, "3.9, from the API versions that brokers offer"),
    ],
)
def test_one_broker_with_zookeeper_is_a_cluster_with_zookeeper(
    shown: list[str | None], controller: str | None, text: str
) -> None:
    """A cluster that migrates to KRaft has ZooKeeper's rules until its last broker has left ZooKeeper."""
    rows = [Row(broker=str(number), release="3.9", controller=of) for number, of in enumerate(shown)]
    seen = BrokerRelease("3.9", "3.9", BY_APIS, controller_in_rows(rows))
    assert seen.controller == controller
    assert seen.text == text
    assert seen.settings == {"kafka": "3.9"} | ({"controller": controller} if controller else {})


def test_no_release_is_assumed_if_none_is_seen() -> None:
    assert oldest_and_newest([]) is None


@pytest.mark.parametrize(
    ("release", "stated", "limit"),
    [
        ("2.4", [], 1_000_012),
        ("2.5", [], 1_048_588),
        ("2.4", ["kafka=4.3"], 1_048_588),
        ("2.4", ["broker.message.max.bytes=2MB"], 2_000_000),
    ],
)
def test_brokers_have_the_defaults_of_the_release_that_is_seen_unless_something_else_is_stated(
    release: str, stated: list[str], limit: int
) -> None:
    scenario = resolve_scenario(None, ["producer.batch.size=16KiB"], stated)
    run = Run(scenario, (), "/lake", datetime(2026, 1, 31, tzinfo=UTC))
    seen = with_release(run, BrokerRelease(release, release, BY_APIS))
    assert seen.scenario.captured["broker.message.max.bytes"] == limit


def test_brokers_of_no_known_release_have_the_newest_defaults() -> None:
    run = Run(resolve_scenario(None, ["producer.batch.size=16KiB"], []), (), "/lake", datetime(2026, 1, 31, tzinfo=UTC))
    assert with_release(run, None).scenario == run.scenario
