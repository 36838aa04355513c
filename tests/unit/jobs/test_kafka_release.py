"""Which profile replays what brokers show of their release."""

from __future__ import annotations

import pytest
from pyspark.sql import Row

from jobs.captures.kafka_release import BY_APIS, SeenRelease, oldest_and_newest, releases
from schemas.wire.releases import MARKS


@pytest.mark.parametrize(
    ("release", "profile"),
    [("4.4", "4.4"), ("4.3", "4.3"), ("3.7", "3.7"), ("2.5", "3.7"), ("2.4", "2.4"), ("1.1", "2.4"), ("9.9", "4.4")],
)
def test_a_profile_stands_for_the_releases_since_the_one_before(release: str, profile: str) -> None:
    assert SeenRelease(release, release, BY_APIS).profile == profile


def test_every_profile_begins_with_a_mark() -> None:
    assert {SeenRelease(mark.release, mark.release, BY_APIS).profile for mark in MARKS} == set(releases())


def test_brokers_of_two_releases_count_as_the_older_one() -> None:
    rows = [Row("1", "3.9"), Row("1", "4.3"), Row("2", "3.10"), Row("3", "4.3")]
    seen = oldest_and_newest(rows)
    assert seen == ("3.10", "4.3")
    assert SeenRelease(*seen, BY_APIS).told == "4.0, from the versions of APIs that brokers offer (some are of 4.3)"


def test_nothing_seen_is_nothing_assumed() -> None:
    assert oldest_and_newest([]) is None
