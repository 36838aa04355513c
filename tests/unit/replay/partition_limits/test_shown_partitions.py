"""Replicas are where Metadata shows them if a lane's limit allows it. Otherwise their places are drawn."""

from __future__ import annotations

import pytest

from schemas.tables.gold import FIDELITY
from schemas.tables.gold_limits import PARTITION_LIMIT_REFUSALS
from tests.unit.replay.partition_limits.clusters import (
    BROKER_LIMIT,
    created,
    grown,
    on_brokers,
    replay,
    requested,
    shown,
)


def test_a_topic_made_in_the_capture_lies_where_metadata_shows_it() -> None:
    rows = [created(1, "a", 5, 1), *shown("a", [[1], [1], [2], [1], [1]], 5)]
    assert on_brokers(rows) == [4, 1, 0]


def test_a_topic_made_by_a_metadata_request_lies_where_metadata_shows_it() -> None:
    rows = [requested(1, "auto_create", "a", error=3), *shown("a", [[3, 2], [3, 1], [3, 2]], 5)]
    assert on_brokers(rows) == [1, 2, 3]


@pytest.mark.parametrize("is_made", [True, False])
def test_partitions_that_are_added_lie_where_metadata_shows_them(is_made: bool) -> None:
    partitions = shown("a", [[2], [2], [3], [3], [3]], 5)
    rows = [*partitions[:2], grown(7, "a", 5), *({**row, "time": 9} for row in partitions[2:])]
    assert on_brokers([*([created(1, "a", 2, 1)] if is_made else []), *rows]) == [0, 2, 3]


def test_a_topic_made_with_the_brokers_own_number_of_partitions_has_those_that_metadata_shows() -> None:
    """A CreateTopics request may leave the number open (KIP-464)."""
    assert on_brokers([created(1, "a", -1, 1), *shown("a", [[1], [1], [2]], 5)]) == [2, 1, 0]


def test_a_partition_that_was_added_later_is_moved_from_where_it_lay() -> None:
    made = [created(1, "a", 2, 1), grown(2, "a", 4), *shown("a", [[1], [1], [2], [2]], 5)]
    assert on_brokers([*made, requested(7, "reassign_partition", "a", partition=3, assignments=["3:3"])]) == [2, 1, 1]


@pytest.mark.parametrize("release", ["4.3", "kip"])
def test_a_placement_within_the_limit_stays_where_metadata_shows_it(release: str) -> None:
    rows = [created(1, "a", 5, 1), *shown("a", [[1], [1], [2], [1], [1]], 5)]
    assert on_brokers(rows, {BROKER_LIMIT: 4, "kafka": release}) == [4, 1, 0]


def test_a_placement_above_the_limit_is_drawn() -> None:
    rows = [created(1, "a", 5, 1), *shown("a", [[1], [1], [2], [1], [1]], 5), created(7, "b", 2, 1), created(8, "c", 1)]
    replicas = on_brokers(rows[:-2], {BROKER_LIMIT: 3})
    assert max(replicas) <= 3
    assert sum(replicas) == 5
    r = PARTITION_LIMIT_REFUSALS
    assert [row[r.topic] for row in replay(rows, {"two": {BROKER_LIMIT: 2}})[r]] == ["b"]


def test_a_move_starts_from_what_metadata_showed_before_it() -> None:
    made = [created(1, "a", 3, 1), *shown("a", [[1], [1], [2]], 5)]
    assert on_brokers([*made, requested(7, "reassign_partition", "a", partition=0, assignments=["0:3"])]) == [1, 1, 1]


def test_a_partition_that_is_first_shown_after_a_move_does_not_show_where_kafka_had_put_it() -> None:
    """Partition 0 is on broker 3 because of the move. The placer need not have been able to draw that."""
    move = requested(3, "reassign_partition", "a", partition=0, assignments=["0:3,2"])
    rows = [created(1, "a", 2, 2), move, *shown("a", [[3, 2], [1, 2]], 5)]
    (row,) = [row for row in replay(rows)[FIDELITY] if row["metric"] == "placements"]
    assert (row["checked"], row["unknown"], dict(row["reasons"])) == (0, 1, {"not_in_metadata": 1})


def test_a_shown_placement_that_kafka_cannot_have_drawn_is_taken_and_counts_as_a_disagreement() -> None:
    rows = [created(1, "a", 3, 2), *shown("a", [[1, 2], [1, 2], [1, 2]], 5)]
    assert on_brokers(rows) == [3, 3, 0]
    (row,) = [row for row in replay(rows)[FIDELITY] if row["metric"] == "placements"]
    assert (row["checked"], row["agreed"], dict(row["reasons"])) == (1, 0, {"impossible_draw": 1})
