"""How often the captured settings agree with the captured changes to topics and placements of replicas."""

from __future__ import annotations

import pytest

from schemas.tables.gold import FIDELITY
from schemas.tables.limit_reasons import CHANGES
from schemas.wire import errors
from tests.unit.replay.partition_limits.clusters import IN_FORCE, Rows, created, grown, replay, requested, shown

CANCELLED = requested(2, "reassign_partition", "a", errors.NO_REASSIGNMENT_IN_PROGRESS, partition=0)
ROWS_BY_REASON: dict[str, Rows] = {
    CHANGES.no_response: [created(1, "a", 3, error=None)],
    CHANGES.topic_not_seen: [grown(1, "a", 3)],
    CHANGES.authorization: [created(1, "a", 3, error=errors.TOPIC_AUTHORIZATION_FAILED)],
    CHANGES.request_invalid: [created(1, "a", 3, error=errors.INVALID_TOPIC_EXCEPTION)],
    CHANGES.configuration: [created(1, "a", 3, error=errors.INVALID_CONFIG)],
    CHANGES.controller_unavailable: [created(1, "a", 3, error=errors.NOT_CONTROLLER)],
    CHANGES.create_topic_policy: [created(1, "a", 3, error=errors.POLICY_VIOLATION)],
    CHANGES.quota_not_known: [created(1, "a", 3, error=errors.THROTTLING_QUOTA_EXCEEDED)],
    CHANGES.no_reassignment_in_progress: [created(1, "a", 1), CANCELLED],
    CHANGES.allowed_but_refused: [created(1, "a", 3, error=errors.INVALID_PARTITIONS)],
    CHANGES.refused_but_allowed: [created(1, "a", 10_001)],
    CHANGES.other_error: [created(1, "a", 3), created(2, "a", 3, error=errors.INVALID_PARTITIONS)],
    CHANGES.not_in_metadata: [created(1, "a", 3)],
    CHANGES.racks_or_fenced_brokers: [created(1, "a", 1), *shown("a", [[1]], 5), *shown("b", [[9]], 5)],
    CHANGES.placed_by_admin_utils: [created(1, "a", 3, 2), *shown("a", [[1, 2], [1, 2], [1, 2]], 5)],
    CHANGES.impossible_draw: [created(1, "a", 3, 2), *shown("a", [[1, 2], [1, 2], [1, 2]], 5)],
}
"""A history for each reason."""
RELEASE = {CHANGES.placed_by_admin_utils: "2.4"}
"""The release in force for reasons that are not given under the newest one."""


@pytest.mark.parametrize("reason", CHANGES.words)
def test_each_reason_is_given_where_its_declaration_says(reason: str) -> None:
    in_force = {**IN_FORCE, "kafka": RELEASE.get(reason, "4.3")}
    rows = replay(ROWS_BY_REASON[reason], in_force=in_force)[FIDELITY]
    (row,) = [row for row in rows if reason in dict(row["reasons"])]
    is_unknown = CHANGES.words[reason].counts == "unknown"
    assert dict(row["reasons"]) == {reason: 1}
    assert (row["unknown"], row["checked"] - row["agreed"]) == ((1, 0) if is_unknown else (0, 1))


def test_an_answer_that_differs_is_a_disagreement_and_one_that_cannot_be_derived_is_unknown() -> None:
    rows = [
        created(1, "a", 3), created(2, "a", 3, error=36), created(3, "b", 3, error=36), created(4, "c", 3, error=29),
        created(5, "d", 3, error=None), created(6, "e", 3, error=37), created(7, "f", 3, error=44),
    ]  # fmt: skip
    by_metric = {row["metric"]: row for row in replay(rows)[FIDELITY]}
    row = by_metric["create_topic"]
    assert (row["checked"], row["agreed"], row["unknown"]) == (3, 2, 4)
    assert dict(row["reasons"]) == {
        "topic_not_seen": 1, "authorization": 1, "no_response": 1, "create_topic_policy": 1, "allowed_but_refused": 1,
    }  # fmt: skip


def test_placements_that_metadata_shows_are_compared_with_those_that_the_placer_can_draw() -> None:
    ring, other = [[2, 3], [3, 1], [1, 2]], [[1, 2], [1, 3]]
    rows = [
        created(1, "a", 3, 2), *shown("a", ring, 5), created(2, "b", 2, 2), *shown("b", other, 5), created(3, "c", 1),
    ]  # fmt: skip
    row = {row["metric"]: row for row in replay(rows)[FIDELITY]}["placements"]
    assert (row["checked"], row["agreed"], row["unknown"]) == (2, 1, 1)
    assert dict(row["reasons"]) == {"impossible_draw": 1, "not_in_metadata": 1}


def test_a_placement_that_leaves_out_brokers_is_not_checked_if_they_may_have_been_down() -> None:
    """Broker 3 is listed at other times. Two brokers alone are drawn in turn, but not twice in a row."""
    listed = [created(1, "z", 3, 1), *shown("z", [[1], [2], [3]], 2)]
    for of_two, counts in (([[1], [2], [2], [1]], (1, 1, 1)), ([[1], [1], [2], [2]], (3, 2, 0))):
        rows = [*listed, created(3, "a", 4, 1), *shown("a", of_two, 5)]
        row = {row["metric"]: row for row in replay(rows)[FIDELITY]}["placements"]
        assert (row["checked"], row["agreed"], row["unknown"]) == counts
        reason = "racks_or_fenced_brokers" if row["unknown"] else "impossible_draw"
        assert dict(row["reasons"]) == {reason: 1}


def test_zookeepers_controller_refuses_no_request_for_its_size() -> None:
    """ZkAdminManager, up to 3.9, accepts a topic of 12,000 partitions, which KRaft's controller refuses."""
    for release, controller, agreed in (("2.4", "kraft", 1), ("3.9", "zookeeper", 1), ("3.9", "kraft", 0)):
        in_force = {**IN_FORCE, "kafka": release, "controller": controller}
        rows = replay([created(1, "a", 12_000)], in_force=in_force)[FIDELITY]
        assert [(row["checked"], row["agreed"]) for row in rows if row["metric"] == "create_topic"] == [(1, agreed)]


def test_if_metadata_lists_no_broker_nothing_is_refused_for_lack_of_brokers() -> None:
    named = created(1, "a", -1, -1, assignments=["0:1,2,3"])
    found = replay([named, created(2, "b", 2, 2), created(3, "c", 2, 4)], brokers=[])
    assert [(row["checked"], row["agreed"]) for row in found[FIDELITY] if row["metric"] == "create_topic"] == [(3, 3)]
