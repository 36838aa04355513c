"""Changes to a cluster's topics under limits of KIP-578 (a proposal)."""

from __future__ import annotations

import pytest

from schemas.tables.gold_limits import PARTITION_LIMIT_REFUSALS as R
from schemas.tables.gold_limits import PARTITIONS_PER_BROKER
from tests.unit.replay.partition_limits.clusters import (
    BROKER_LIMIT,
    BROKERS,
    CLUSTER_LIMIT,
    IN_FORCE,
    MUTATION_RATE,
    changing,
    created,
    grown,
    on_brokers,
    refusals,
    replay,
    requested,
    shown,
)


def test_a_topic_that_does_not_fit_in_the_cluster_is_refused_with_its_numbers() -> None:
    rows = [created(1, "a", 3, 2), created(2, "b", 2, 2), created(3, "c", 1, 1)]
    (row,) = replay(rows, {"eight": {CLUSTER_LIMIT: 8}})[R]
    assert (row["topic"], row["error_code"], row["limit_value"], row["present"], row["asked"]) == ("b", 44, 8, 6, 4)
    assert row["message"] == (
        "Cannot satisfy request without exceeding the limit max.partitions (KIP-578, a proposal): limit 8, present 6, "
        "asked 4"
    )


def test_brokers_are_filled_up_to_the_limit_and_no_further() -> None:
    rows = [created(time, f"t{time}", 1, 1) for time in range(1, 9)]
    found = replay(rows, {"two": {BROKER_LIMIT: 2}})
    assert [row["topic"] for row in found[R]] == ["t7", "t8"]
    assert {row["message"].rpartition(": ")[2] for row in found[R]} == {"limit 2, present 6, asked 1 on all brokers"}
    last = [row["partitions"] for row in found[PARTITIONS_PER_BROKER] if row["scenario"] == "two"][-3:]
    assert last == [2, 2, 2]


def test_the_more_restrictive_limit_applies() -> None:
    rows = [created(1, "a", 3, 1), created(2, "b", 3, 1)]
    assert refusals(rows, {BROKER_LIMIT: 1, CLUSTER_LIMIT: 100}) == [("b", 44, "max.broker.partitions")]
    assert refusals(rows, {BROKER_LIMIT: 100, CLUSTER_LIMIT: 5}) == [("b", 44, "max.partitions")]


def test_a_limit_changes_when_its_time_has_come() -> None:
    rows = [created(1, "a", 3), created(10, "b", 3), created(20, "c", 3)]
    assert refusals(rows, {CLUSTER_LIMIT: changing(2, (10, 6), (20, 4))}) == [
        ("a", 44, "max.partitions"), ("c", 44, "max.partitions"),
    ]  # fmt: skip


def test_limits_of_brokers_and_of_the_cluster_change_each_at_its_own_times() -> None:
    rows = [created(time, f"t{time}", 3) for time in (1, 10, 20, 30)]
    limits = {BROKER_LIMIT: changing(0x7FFF, (20, 2)), CLUSTER_LIMIT: changing(2, (10, 100))}
    assert refusals(rows, limits) == [("t1", 44, "max.partitions"), ("t30", 44, "max.broker.partitions")]


def test_existing_topics_stay_and_only_new_ones_are_refused() -> None:
    there = shown("old", [[1], [1], [1], [2]])
    rows = [*there, created(1, "a", 1), requested(2, "delete_topic", "old"), created(3, "b", 1)]
    assert refusals(rows, {CLUSTER_LIMIT: 2}) == [("a", 44, "max.partitions")]


def test_internal_topics_are_neither_refused_nor_counted() -> None:
    rows = [created(1, "__consumer_offsets", 50, 3), created(2, "a", 3)]
    found = replay(rows, {"x": {BROKER_LIMIT: 1, CLUSTER_LIMIT: 3}})
    assert found[R] == []
    assert max(row["partitions"] for row in found[PARTITIONS_PER_BROKER] if row["scenario"] == "x") == 1


def test_a_topic_grows_onto_the_brokers_that_the_request_names_for_its_new_partitions() -> None:
    """CreatePartitions states how many partitions the topic is to have, and assigns only those that it lacks."""
    rows = [created(1, "a", -1, -1, assignments=["0:1,2", "1:1,3"]), grown(2, "a", 4, assignments=["2:3,2", "3:3,1"])]
    assert on_brokers(rows) == [3, 2, 3]
    assert refusals(rows, {BROKER_LIMIT: 2}) == [("a", 44, "max.broker.partitions")]


def test_brokers_that_a_refused_assignment_names_are_not_brokers_of_the_cluster() -> None:
    unknown = created(1, "a", -1, -1, error=39, assignments=["0:1,9"])
    p = PARTITIONS_PER_BROKER
    assert {row[p.broker] for row in replay([unknown, created(2, "b", 3)])[p]} == {1, 2, 3}


def test_an_assignment_is_refused_only_for_brokers_that_it_names() -> None:
    full = shown("old", [[1], [1], [1]])
    to_two = created(1, "a", -1, -1, assignments=["0:2,3", "1:3,2"])
    to_one = created(2, "b", -1, -1, assignments=["0:1"])
    (row,) = replay([*full, to_two, to_one], {"x": {BROKER_LIMIT: 2}})[R]
    assert (row["topic"], row["broker"], row["present"], row["asked"]) == ("b", 1, 3, 1)


def test_a_move_needs_room_only_for_new_replicas() -> None:
    there = shown("old", [[1, 2], [1, 2], [1, 2]])
    swap = requested(1, "reassign_partition", "old", partition=0, assignments=["0:2,1"])
    move = requested(2, "reassign_partition", "old", partition=1, assignments=["1:3,2"])
    again = requested(3, "reassign_partition", "old", partition=2, assignments=["2:3,2"])
    found = replay([*there, swap, move, again], {"x": {BROKER_LIMIT: 1}})
    assert [(row["exchange_no"], row["broker"]) for row in found[R]] == [(3, 3)]
    last = [row["partitions"] for row in found[PARTITIONS_PER_BROKER] if row["scenario"] == "x"][-3:]
    assert last == [2, 3, 1]


def test_later_requests_on_a_refused_topic_fail() -> None:
    rows = [
        created(1, "a", 9), grown(2, "a", 12), requested(3, "delete_topic", "a"),
        requested(4, "reassign_partition", "a", error=3, partition=0, assignments=["0:1"]),
    ]  # fmt: skip
    assert refusals(rows, {CLUSTER_LIMIT: 5}) == [
        ("a", 44, "max.partitions"), ("a", 3, "refused_before"), ("a", 3, "refused_before"), ("a", 3, "refused_before"),
    ]  # fmt: skip


def test_a_topic_that_is_only_validated_is_judged_and_not_made() -> None:
    rows = [created(1, "a", 3, validate_only=True), created(2, "a", 3), created(3, "b", 3, validate_only=True)]
    assert refusals(rows, {CLUSTER_LIMIT: 5}) == [("b", 44, "max.partitions")]


def test_a_growing_topic_needs_room_for_what_it_adds() -> None:
    rows = [created(1, "a", 4, 2), grown(2, "a", 6), grown(3, "a", 7)]
    (row,) = replay(rows, {"x": {CLUSTER_LIMIT: 12}})[R]
    assert (row["exchange_no"], row["present"], row["asked"]) == (3, 12, 2)


def test_a_topic_made_by_a_metadata_request_is_refused_like_any_other() -> None:
    rows = [*shown("auto", [[1], [2], [3]], time=5), requested(1, "auto_create", "auto", error=3)]
    found = replay(rows, {"x": {CLUSTER_LIMIT: 2}})
    assert [(row["kind"], row["asked"]) for row in found[R]] == [("auto_create", 3)]


@pytest.mark.parametrize("limit", [BROKER_LIMIT, CLUSTER_LIMIT])
def test_a_broker_before_2_8_makes_a_topic_itself_which_is_never_refused_but_counts(limit: str) -> None:
    """KIP-578 exempts such topics until KIP-590, and the mutation quota (KIP-599) holds only for the controller."""
    auto = [*shown("auto", [[1], [1], [1]], time=5), requested(1, "auto_create", "auto", error=3)]
    rows = [*auto, *shown("b", [[1]], time=15), created(10, "b", 1)]
    by_release = {
        release: [
            row["topic"]
            for row in replay(rows, {"x": {limit: 2}}, brokers=BROKERS[:1], in_force={**IN_FORCE, "kafka": release})[R]
            if row["scenario"] == "x"
        ]
        for release in ("2.7", "3.2")
    }
    assert by_release == {"2.7": ["b"], "3.2": ["auto"]}
    quota = {**IN_FORCE, "kafka": "2.7", MUTATION_RATE: 0.01}
    assert replay(auto, in_force=quota)[R] == []


def test_counts_that_no_cluster_can_have_are_refused_in_bounded_memory() -> None:
    huge = created(1, "a", (1 << 31) - 1, 1), created(2, "b", 3, (1 << 15) - 1), grown(4, "c", (1 << 31) - 1)
    refused = refusals([*huge, created(3, "c", 1)], {"kafka": "kip"})
    assert {topic for topic, *_ in refused} == {"a", "c"}
