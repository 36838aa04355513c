"""Kafka's own checks of a request, its limits on a whole request, and the controller mutation quota, one by one."""

from __future__ import annotations

import numpy as np
import pytest

from schemas.tables.event_kinds import TopicEvent
from tests.unit.replay.partition_limits.clusters import (
    IN_FORCE,
    MUTATION_RATE,
    Row,
    Settings,
    created,
    event_table,
    grown,
    requested,
    settings_of,
    shown,
)
from udfs.columns.sentinels import NONE
from udfs.replay.partition_limits.events import read_topic_events
from udfs.replay.partition_limits.history.changes import history_of
from udfs.replay.partition_limits.request_limits import (
    MAX_PER_REQUEST,
    TO_CONTROLLER_US,
    check_request,
    count_new_partitions,
    error_of_checks,
    is_within_quota,
    partitions_allowed,
)
from udfs.replay.partition_limits.state import NO_LIMIT, REQUEST_PARTITIONS, REQUEST_RECORDS, ClusterSim, new_sim

SECOND = 1_000_000
MOST = MAX_PER_REQUEST


def cluster(*rows: Row, settings: Settings | None = None, present: int = 0, brokers: int = 3) -> ClusterSim:
    """A cluster before these changes. present: the partitions of every topic. Topics that are to grow were created at
    time 0, in requests that `own` leaves out.
    """
    nodes = [{"entry": TopicEvent.BROKER, "node_id": node} for node in range(brokers)]
    there = [created(0, row["topic"], 1, connection_id=5) for row in rows if row.get("kind") == "create_partitions"]
    limits = settings_of({}, {**IN_FORCE, **(settings or {})})
    events = read_topic_events(event_table([*nodes, *there, *rows]).to_batches())
    sim = new_sim(history_of(events, limits, 1), limits)
    sim.topics["partitions"] = present
    return sim


def own(sim: ClusterSim) -> list[int]:
    """The numbers of the changes."""
    return np.flatnonzero(sim.changes["time"] > 0).tolist()


@pytest.mark.parametrize(
    ("change", "present", "error"),
    [
        (created(1, "a", 1), 0, 0),
        (created(1, "a", 1), 1, 36),
        (created(1, "a", 1, factor=0), 0, 38),
        (created(1, "a", 1, factor=3), 0, 0),
        (created(1, "a", 1, factor=4), 0, 38),
        (created(1, "a", 0), 0, 37),
        (grown(1, "a", 4), 0, 3),
        (grown(1, "a", 4), 3, 0),
        (grown(1, "a", 4), 4, 37),
        (grown(1, "a", 4), 5, 37),
    ],
)
def test_kafka_checks_a_topic_that_is_created_or_grown(change: Row, present: int, error: int) -> None:
    sim = cluster(change, present=present)
    assert error_of_checks(sim, own(sim)[0]) == error


def test_if_metadata_lists_no_brokers_there_may_be_more_than_a_topic_needs() -> None:
    assert error_of_checks(cluster(created(1, "a", 1, factor=4), brokers=0), 0) == 0


def test_a_growth_adds_the_difference_and_a_creation_all_partitions() -> None:
    sim = cluster(created(1, "a", 5), grown(2, "b", 5), grown(3, "c", 2), present=3)
    assert [count_new_partitions(sim, change) for change in own(sim)] == [5, 2, 0]


AUTO_CREATED = requested(SECOND, "auto_create", "a", error=3, api_version=4)


def both(one: Row, other: Row) -> tuple[Row, Row]:
    return one, other | {"exchange_no": one["exchange_no"], "position": 1}


@pytest.mark.parametrize(
    ("release", "changes", "present", "refused"),
    [
        ("4.3", [created(1, "a", MOST)], 0, (REQUEST_RECORDS, MOST + 1)),
        ("4.3", [created(1, "a", MOST - 1)], 0, (NO_LIMIT, 0)),
        ("4.3", [created(1, "a", MOST - 2, configs=2)], 0, (REQUEST_RECORDS, MOST + 1)),
        ("4.3", [created(1, "a", MOST + 1)], 0, (REQUEST_PARTITIONS, MOST + 1)),
        ("4.3", both(created(1, "a", 6000), created(1, "b", 4001)), 0, (REQUEST_PARTITIONS, 10_001)),
        ("4.3", both(created(1, "a", 6000), created(1, "b", 3999)), 0, (REQUEST_RECORDS, 10_001)),
        ("4.3", both(created(1, "a", 6000), created(1, "b", 3998)), 0, (NO_LIMIT, 0)),
        ("4.3", both(created(1, "a", 6000), created(1, "b", 4001, factor=9)), 0, (REQUEST_PARTITIONS, 10_001)),
        ("4.3", both(created(1, "a", 6000), created(1, "b", 4000, factor=9)), 0, (NO_LIMIT, 0)),
        ("4.3", both(created(1, "a", 6000), created(1, "b", 4000, error=29)), 0, (NO_LIMIT, 0)),
        ("4.3", [created(1, "a", 6000), created(2, "b", 6000)], 0, (NO_LIMIT, 0)),
        ("4.3", [grown(1, "a", 20_000)], 5, (NO_LIMIT, 0)),
        ("4.4", [grown(1, "a", MOST + 5)], 5, (NO_LIMIT, 0)),
        ("4.4", [grown(1, "a", MOST + 6)], 5, (REQUEST_PARTITIONS, MOST + 1)),
        ("4.4", both(grown(1, "a", 6005), grown(1, "b", 4006)), 5, (REQUEST_PARTITIONS, 10_001)),
        ("4.4", both(grown(1, "a", 6005), grown(1, "b", 4006, error=29)), 5, (NO_LIMIT, 0)),
        ("2.4", [created(1, "a", MOST + 1)], 0, (NO_LIMIT, 0)),
    ],
)
def test_a_request_is_refused_as_a_whole_for_its_partitions_or_records(
    release: str, changes: list[Row], present: int, refused: tuple[int, int]
) -> None:
    """A new topic takes a record for itself, for each partition and for each configuration."""
    sim = cluster(*changes, settings={"kafka": release}, present=present)
    check_request(sim, 0, own(sim)[0])
    assert sim.cluster[["request_refused_by", "request_records"]][0].tolist() == refused


def test_up_to_4_3_growths_share_the_records_of_a_request_and_the_last_gets_what_is_left() -> None:
    sim = cluster(*both(grown(1, "a", 6005), grown(1, "b", 4506)), grown(2, "c", 30_005), present=5)
    first, second, third = own(sim)
    check_request(sim, 0, first)
    assert [partitions_allowed(sim, 0, first, 6000), partitions_allowed(sim, 0, second, 4501)] == [6000, 4000]
    check_request(sim, 0, third)
    assert partitions_allowed(sim, 0, third, MOST) == MOST
    names = ["error", "decided_by", "limit", "present", "requested"]
    assert sim.outcomes[names][0, [first, second, third]].tolist() == [
        (0, 0, 0, 0, 0), (-1, REQUEST_RECORDS, MOST, 6000, 4501), (0, 0, 0, 0, 0),
    ]  # fmt: skip


def test_a_controller_with_zookeeper_grows_a_topic_by_any_number() -> None:
    sim = cluster(grown(1, "a", 30_005), settings={"kafka": "2.4"}, present=5)
    (change,) = own(sim)
    check_request(sim, 0, change)
    assert partitions_allowed(sim, 0, change, 30_000) == 30_000


def test_each_change_of_a_refused_request_is_refused() -> None:
    sim = cluster(*both(created(1, "a", 6000), created(1, "b", 4001)))
    check_request(sim, 0, 0)
    assert [partitions_allowed(sim, 0, change, 6000) for change in range(2)] == [NONE, NONE]
    names = ["error", "decided_by", "limit", "requested"]
    assert sim.outcomes[names][0].tolist() == [(44, REQUEST_PARTITIONS, MOST, 10_001)] * 2


def with_quota(*rows: Row, tokens: float = 0.0) -> ClusterSim:
    """A cluster with a quota of 2 partitions a second, whose full bucket has 22. tokens: at time 0, of each client."""
    sim = cluster(*rows, settings={MUTATION_RATE: 2.0})
    sim.clients["tokens"], sim.clients["token_time"] = tokens, 0
    sim.cluster["read_request"] = NONE
    return sim


@pytest.mark.parametrize(
    ("seconds", "tokens", "is_allowed", "left"),
    [(0, 0, True, -5), (0, -0.5, False, -0.5), (1, -2, True, -5), (1, -2.5, False, -0.5), (100, 3, True, 22 - 5)],
)
def test_a_request_is_refused_if_the_bucket_is_below_zero_and_fills_it_with_time(
    seconds: int, tokens: float, *, is_allowed: bool, left: float
) -> None:
    sim = with_quota(created(seconds * SECOND, "a", 5), tokens=tokens)
    assert is_within_quota(sim, 0, 0, 5) == is_allowed
    assert sim.clients[["tokens", "token_time"]][0].tolist() == (left, seconds * SECOND)


@pytest.mark.parametrize(
    ("change", "tokens", "muted_us"),
    [
        (created(SECOND, "a", 5), 0, 0),
        (created(SECOND, "a", 5), -6, SECOND + 2 * SECOND + TO_CONTROLLER_US),
        (created(SECOND, "a", 5, api_version=5), 0, SECOND + 3 * SECOND // 2 + TO_CONTROLLER_US),
        (created(SECOND, "a", 5, api_version=5), 3, 0),
        (AUTO_CREATED, -6, 0),
    ],
    ids=["it overdraws", "it finds it overdrawn", "an old version overdraws", "and does not", "Metadata"],
)  # fmt: skip
def test_a_connection_is_muted_until_the_bucket_would_be_at_zero(change: Row, tokens: float, muted_us: int) -> None:
    sim = with_quota(change, *shown("a", [[1]], time=9 * SECOND), tokens=tokens)
    is_within_quota(sim, 0, own(sim)[0], 5)
    assert sim.connections["muted_until"].max() == muted_us


def test_a_request_on_a_muted_connection_is_read_when_that_is_over() -> None:
    sim = with_quota(created(SECOND, "a", 5), tokens=-6)
    sim.connections["muted_until"] = 3 * SECOND
    assert is_within_quota(sim, 0, 0, 5)
    assert sim.clients[["tokens", "token_time"]][0].tolist() == (-5, 3 * SECOND)


def test_without_a_quota_nothing_is_charged() -> None:
    sim = cluster(created(1, "a", 5))
    assert is_within_quota(sim, 0, 0, 5)
    assert sim.clients["tokens"].tolist() == [0]
