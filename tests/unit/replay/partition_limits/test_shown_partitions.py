"""Replicas are where Metadata shows them, as far as a lane's limit allows; elsewhere they are drawn."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from schemas.tables.gold import FIDELITY
from schemas.tables.gold_limits import PARTITION_LIMIT_REFUSALS, PARTITIONS_PER_BROKER
from tests.unit.replay.partition_limits.test_replay import asked, created, grown, limit, replay, seen
from udfs.replay.partition_limits.replay import LimitLane

CAPTURED = LimitLane("captured")


def on_brokers(rows: Iterable[dict[str, Any]], lane: LimitLane = CAPTURED) -> list[int]:
    """Replicas on each of the three brokers at the end of a lane."""
    others = () if lane is CAPTURED else (lane,)
    p = PARTITIONS_PER_BROKER
    return [row[p.partitions] for row in replay(rows, *others)[p] if row[p.scenario] == lane.name][-3:]


def test_a_topic_made_in_the_capture_lies_where_metadata_shows_it() -> None:
    rows = [created(1, "a", 5, 1), *seen("a", [[1], [1], [2], [1], [1]], 5)]
    assert on_brokers(rows) == [4, 1, 0]


def test_so_does_one_that_a_metadata_request_makes() -> None:
    rows = [asked(1, "auto_create", "a", error=3), *seen("a", [[3, 2], [3, 1], [3, 2]], 5)]
    assert on_brokers(rows) == [1, 2, 3]


@pytest.mark.parametrize("is_made", [True, False])
def test_so_do_partitions_that_are_added(is_made: bool) -> None:
    shown = seen("a", [[2], [2], [3], [3], [3]], 5)
    rows = [*shown[:2], grown(7, "a", 5), *({**row, "time": 9} for row in shown[2:])]
    assert on_brokers([*([created(1, "a", 2, 1)] if is_made else []), *rows]) == [0, 2, 3]


@pytest.mark.parametrize("release", [(4, 3), None])
def test_a_limit_that_the_placement_is_within_leaves_it_there(release: tuple[int, ...] | None) -> None:
    rows = [created(1, "a", 5, 1), *seen("a", [[1], [1], [2], [1], [1]], 5)]
    assert on_brokers(rows, LimitLane("x", broker=limit(4), release=release)) == [4, 1, 0]


def test_a_limit_that_the_placement_is_above_has_it_drawn() -> None:
    rows = [created(1, "a", 5, 1), *seen("a", [[1], [1], [2], [1], [1]], 5), created(7, "b", 2, 1), created(8, "c", 1)]
    lane = LimitLane("x", broker=limit(3))
    assert max(on_brokers(rows[:-2], lane)) <= 3
    assert sum(on_brokers(rows[:-2], lane)) == 5
    r = PARTITION_LIMIT_REFUSALS
    assert [row[r.topic] for row in replay(rows, LimitLane("x", broker=limit(2)))[r]] == ["b"]


def test_a_move_starts_from_what_metadata_showed_before_it() -> None:
    made = [created(1, "a", 3, 1), *seen("a", [[1], [1], [2]], 5)]
    assert on_brokers([*made, asked(7, "reassign_partition", "a", partition=0, assignments=["0:3"])]) == [1, 1, 1]


def test_what_is_first_shown_after_a_move_does_not_tell_where_kafka_had_put_it() -> None:
    """Partition 0 is on broker 3 since the move: the placer need not have been able to draw that."""
    move = asked(3, "reassign_partition", "a", partition=0, assignments=["0:3,2"])
    rows = [created(1, "a", 2, 2), move, *seen("a", [[3, 2], [1, 2]], 5)]
    (row,) = [row for row in replay(rows)[FIDELITY] if row["metric"] == "placements"]
    assert (row["checked"], row["unknown"], dict(row["reasons"])) == (0, 1, {"not_in_metadata": 1})


def test_a_shown_placement_that_kafka_cannot_have_drawn_is_taken_and_told() -> None:
    rows = [created(1, "a", 3, 2), *seen("a", [[1, 2], [1, 2], [1, 2]], 5)]
    assert on_brokers(rows) == [3, 3, 0]
    (row,) = [row for row in replay(rows)[FIDELITY] if row["metric"] == "placements"]
    assert (row["checked"], row["agreed"], dict(row["reasons"])) == (1, 0, {"impossible_draw": 1})
