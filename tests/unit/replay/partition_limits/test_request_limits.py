"""Changes to a cluster's topics under the limits that Kafka has."""

from __future__ import annotations

import pytest

from schemas.tables.gold import FIDELITY
from schemas.tables.gold_limits import PARTITIONS_PER_BROKER
from tests.unit.replay.partition_limits.clusters import (
    MUTATION_RATE,
    Row,
    created,
    grown,
    refusals,
    replay,
    requested,
    shown,
)

TWO_A_SECOND = {MUTATION_RATE: 2.0}


@pytest.mark.parametrize(
    ("release", "change", "refused"),
    [
        ("4.3", created(2, "b", 10_001), ("b", 44, "partitions per request")),
        ("4.3", created(2, "b", 10_000), ("b", 44, "records per request")),
        ("4.3", created(2, "b", 9_999), None),
        ("4.3", created(2, "b", 9_999, configs=1), ("b", 44, "records per request")),
        ("4.3", created(2, "b", 9_998, configs=1), None),
        ("4.3", grown(2, "a", 10_012), ("a", -1, "records per request")),
        ("4.4", grown(2, "a", 10_012), ("a", 44, "partitions per request")),
        ("4.4", grown(2, "a", 10_001), None),
        ("3.7", created(2, "b", 10_001), ("b", 44, "partitions per request")),
        ("2.4", created(2, "b", 10_001), None),
        ("2.4", grown(2, "a", 10_012), None),
        ("kip", created(2, "b", 10_001), None),
        ("kip", grown(2, "a", 10_012), None),
    ],
)
def test_a_request_is_limited_as_in_its_release_of_kafka(
    release: str, change: Row, refused: tuple[str, int, str] | None
) -> None:
    """ReplicationControlManager.createTopics and createPartitions: for 4.3 as a broker of 4.3.1 answered, for 4.4 as
    the code says. ZkAdminManager, which 2.4 calls AdminManager, has no such limits.
    """
    assert refusals([created(1, "a", 1), change], {"kafka": release}) == ([refused] if refused else [])


def test_up_to_4_3_a_growth_that_is_refused_for_its_records_still_adds_the_partitions_before() -> None:
    """A broker of 4.3.1 that shall raise 1 to 10,012 answers UNKNOWN_SERVER_ERROR, and the topic then has 10,001."""
    rows = [created(1, "a", 1), grown(2, "a", 10_012, error=-1), grown(3, "a", 10_002)]
    found = replay(rows)
    assert sum(row["partitions"] for row in found[PARTITIONS_PER_BROKER][-3:]) == 10_002
    assert {row["metric"]: (row["checked"], row["agreed"]) for row in found[FIDELITY]}["create_partitions"] == (2, 2)


def test_topics_of_one_request_share_its_records() -> None:
    both = [created(1, "a", 5000), created(1, "b", 5000, position=1), created(2, "c", 5000)]
    assert refusals(both, {}) == [("a", 44, "records per request"), ("b", 44, "records per request")]


def test_a_controller_mutation_quota_refuses_once_it_is_overdrawn() -> None:
    """KIP-599: a full bucket has 11 s of the rate; one request may overdraw it, and old versions are never refused."""
    rows = [
        created(1, "a", 30), created(2, "b", 1), created(3, "c", 1, api_version=5),
        created(4, "d", 1, client_id="other"), created(5_000_000 + 2, "e", 1),
    ]  # fmt: skip
    assert refusals(rows, TWO_A_SECOND) == [("b", 89, "controller_mutation_rate")]


def test_a_connection_is_not_read_while_its_quota_is_overdrawn() -> None:
    """RequestHandlerHelper.throttle: a bucket 8 below 0 has recovered in 4 s; then the next request is read."""
    rows = [
        created(1, "a", 30), created(2, "b", 1), created(1_000_000, "c", 5),
        created(1_000_001, "d", 1, connection_id=2), created(1_000_002, "e", 1),
    ]  # fmt: skip
    assert [topic for topic, *_ in refusals(rows, TWO_A_SECOND)] == ["b", "d", "e"]


@pytest.mark.parametrize("rate", [2.0, 3.0, 7.0, 11.0])
def test_a_request_that_waited_for_the_quota_finds_it_recovered(rate: float) -> None:
    """However little was missing, the next request arrives at the controller only after the quota has recovered."""
    rows = [created(1, "a", int(rate) * 11 + 1), *(created(time, f"t{time}", 1) for time in range(90_003, 90_700, 7))]
    refused = [topic for topic, *_ in refusals(rows, {MUTATION_RATE: rate})]
    tried = [row["topic"] for row in rows[1:]]
    assert refused == tried[::2]


def test_an_old_version_is_throttled_where_a_new_one_is_refused() -> None:
    rows = [created(1, "a", 30, api_version=5), created(2, "b", 1), created(3, "c", 1, connection_id=2)]
    assert [topic for topic, *_ in refusals(rows, TWO_A_SECOND)] == ["c"]


def test_topics_of_one_request_are_judged_by_the_same_bucket() -> None:
    rows = [created(1, "a", 30), created(2, "b", 1), created(2, "c", 1, position=1)]
    assert [topic for topic, *_ in refusals(rows, TWO_A_SECOND)] == ["b", "c"]


def test_a_topic_made_by_a_metadata_request_is_refused_for_its_quota_in_every_version() -> None:
    """The broker requests it from the controller in the client's name and newest version (AutoTopicCreationManager)."""
    auto = requested(2, "auto_create", "auto", error=3, api_version=4)
    rows = [created(1, "a", 30), *shown("auto", [[1]], time=5), auto]
    assert refusals(rows, TWO_A_SECOND) == [("auto", 89, "controller_mutation_rate")]
