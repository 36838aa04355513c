"""The marks that show a broker's release, beside the versions that Kafka's own releases offer."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from schemas.wire.apis import API_KEYS
from schemas.wire.fetch import FETCH_REQUEST
from schemas.wire.releases import BOTH_CONTROLLERS, BROKERS_ONLY, FETCHES, MARKS, ZOOKEEPER_ONLY, Mark
from schemas.wire.vendors import ALWAYS_OFFERED, NEWEST_VERSIONS
from tests.oracle.conftest import Jars, RunJava
from udfs.replay.shared.client_software import API_VERSIONS, NEWEST_PRODUCE, PRODUCE

PATCHES = {
    "0.9": "0.9.0.1", "0.10.0": "0.10.0.1", "0.10.1": "0.10.1.1", "0.10.2": "0.10.2.2", "0.11": "0.11.0.3",
    "1.0": "1.0.2", "1.1": "1.1.1", "2.0": "2.0.1", "2.1": "2.1.1", "2.2": "2.2.2", "2.3": "2.3.1", "2.4": "2.4.1",
    "2.5": "2.5.1", "2.6": "2.6.3", "2.7": "2.7.2", "2.8": "2.8.2", "3.0": "3.0.2", "3.1": "3.1.2", "3.2": "3.2.3",
    "3.3": "3.3.2", "3.4": "3.4.1", "3.5": "3.5.2", "3.6": "3.6.2", "3.7": "3.7.2", "3.8": "3.8.1", "3.9": "3.9.1",
    "4.0": "4.0.0", "4.1": "4.1.1", "4.2": "4.2.0", "4.3": "4.3.1", "4.4": "4.4.0",
}  # fmt: skip
NONE = -1
FETCH = FETCH_REQUEST.api_key

Offered = Mapping[int, tuple[int, int]]
"""By API key: the newest version that a broker offers, and the newest one that it can be made to offer."""


@pytest.fixture(scope="module")
def offered(jars: Jars, run_java: RunJava) -> Mapping[str, Offered]:
    """The versions that each release offers."""
    clients = jars(*(f"org.apache.kafka:kafka-clients:{patch}" for patch in PATCHES.values()))
    printed = run_java("OfferedVersions.java", arguments=list(map(str, clients))).splitlines()
    found = {}
    for release, line in zip(PATCHES, printed, strict=True):
        numbers = [tuple(map(int, word.split(":"))) for word in line.split()]
        found[release] = {key: (stable, newest) for key, stable, newest in numbers}
    return found


@pytest.mark.parametrize("mark", MARKS, ids=lambda mark: mark.release)
def test_a_release_bears_its_mark_and_the_one_before_does_not(mark: Mark, offered: Mapping[str, Offered]) -> None:
    releases = list(PATCHES)
    before = releases[releases.index(mark.release) - 1]
    assert offered[mark.release][mark.api_key][0] >= mark.version
    assert offered[before].get(mark.api_key, (NONE, NONE))[1] < mark.version


@pytest.mark.parametrize("release", PATCHES)
def test_a_release_bears_the_marks_of_all_before_it(release: str, offered: Mapping[str, Offered]) -> None:
    order = list(PATCHES)
    borne = [mark.release for mark in MARKS if offered[release].get(mark.api_key, (NONE, NONE))[0] >= mark.version]
    assert borne == [mark.release for mark in MARKS if order.index(mark.release) <= order.index(release)]
    assert BROKERS_ONLY in offered[release]


def test_only_what_a_mark_says_has_no_mark_of_its_own() -> None:
    without = [mark.last for mark in MARKS if mark.last != mark.release]
    assert [release for release in PATCHES if release not in {mark.release for mark in MARKS}] == ["0.9", *without]


@pytest.mark.parametrize("mark", FETCHES, ids=lambda mark: mark.release)
def test_a_version_of_fetch_tells_the_first_release_that_has_it(mark: Mark, offered: Mapping[str, Offered]) -> None:
    releases = list(PATCHES)
    before = releases[releases.index(mark.release) - 1]
    assert offered[before][FETCH][0] < mark.version <= offered[mark.release][FETCH][0]


def test_the_versions_by_which_apache_kafka_is_known_are_those_that_its_releases_offer(
    offered: Mapping[str, Offered],
) -> None:
    """A release that is made to offer unstable versions offers nothing newer than the next release."""
    order = list(PATCHES)[1:]
    assert list(NEWEST_VERSIONS) == order
    for before, behind in zip(order, [*order[1:], order[-1]], strict=True):
        of = {api: offered[before][API_KEYS[api]] for api in ALWAYS_OFFERED}
        assert NEWEST_VERSIONS[before] == tuple(stable for stable, _ in of.values())
        assert all(newest <= offered[behind][API_KEYS[api]][0] for api, (_, newest) in of.items())


def test_no_release_that_asks_for_versions_without_its_name_produces_in_a_newer_version(
    offered: Mapping[str, Offered],
) -> None:
    """A client first asks in the newest version that it has."""
    asks, produces = (
        {release: of[key][0] for release, of in offered.items() if key in of} for key in (API_VERSIONS, PRODUCE)
    )
    nameless = [release for release in list(PATCHES)[: list(PATCHES).index("2.4")] if release in asks]
    assert {asks[release] for release in nameless} == {*NEWEST_PRODUCE}
    for version, newest in NEWEST_PRODUCE.items():
        assert newest == max(produces[release] for release in nameless if asks[release] == version)


def test_every_broker_offers_what_is_always_offered(jars: Jars, run_java: RunJava) -> None:
    """Since 3.3 this holds for brokers with either kind of controller."""
    releases = [PATCHES[release] for release in list(PATCHES)[list(PATCHES).index("3.3") :]]
    clients = jars(*(f"org.apache.kafka:kafka-clients:{patch}" for patch in releases))
    for line in run_java("ListenerApis.java", arguments=list(map(str, clients))).splitlines():
        offered = {kind: keys.split(",") for kind, _, keys in (part.partition(":") for part in line.split())}
        for kind in {"BROKER", "ZK_BROKER"} & offered.keys():
            assert {str(API_KEYS[api]) for api in ALWAYS_OFFERED} <= set(offered[kind])


def test_only_a_broker_with_zookeeper_offers_what_tells_its_controller(jars: Jars, run_java: RunJava) -> None:
    order = list(PATCHES)
    first, last = map(order.index, BOTH_CONTROLLERS)
    both = [PATCHES[release] for release in order[first : last + 1]]
    clients = jars(*(f"org.apache.kafka:kafka-clients:{patch}" for patch in both))
    for line in run_java("ListenerApis.java", arguments=list(map(str, clients))).splitlines():
        offered = {kind: keys.split(",") for kind, _, keys in (part.partition(":") for part in line.split())}
        assert str(ZOOKEEPER_ONLY) in offered["ZK_BROKER"]
        assert str(ZOOKEEPER_ONLY) not in offered["BROKER"]
