"""The tables of a replay, for any rows in any order and however they are cut."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from schemas.tables.gold import FIDELITY
from schemas.tables.gold_limits import (
    PARTITION_LIMIT_CURVE,
    PARTITION_LIMIT_HEADROOM,
    PARTITION_LIMIT_REFUSALS,
    PARTITION_LIMITS,
)
from tests.unit.replay.partition_limits.clusters import (
    BROKER_LIMIT,
    CLUSTER_LIMIT,
    PROPOSAL,
    Settings,
    created,
    grown,
    replay,
    requested,
    shown,
)
from udfs.replay.partition_limits import replay as replay_module

R = PARTITION_LIMIT_REFUSALS
RICH = [
    *shown("old", [[1, 2], [1, 3], [1, 2]]), created(1, "a", 5, 2), created(2, "b", 3, 3), grown(3, "a", 9),
    requested(4, "reassign_partition", "old", partition=1, assignments=["1:2,3"]), requested(5, "delete_topic", "b"),
    created(6, "c", -1, -1, assignments=["0:1,3", "1:3,1"]), created(7, "__consumer_offsets", 6, 3),
    created(8, "d", 7, 1), requested(9, "reassign_partition", "a", partition=8, assignments=["8:1,2,3"]),
    grown(10, "c", 4), requested(11, "delete_topic", "a"), created(12, "e", 11, 2), created(13, "f", 4, 3),
]  # fmt: skip
LANES: Mapping[str, Settings] = {"a": {BROKER_LIMIT: 6}, "b": {CLUSTER_LIMIT: 20}, "c": PROPOSAL}


@pytest.mark.parametrize("name", ["max.broker.partitions", "max.partitions"])
def test_the_curve_has_for_every_limit_what_a_lane_with_that_limit_refuses_first(name: str) -> None:
    steps = [row for row in replay(RICH)[PARTITION_LIMIT_CURVE] if row["refused_by"] == name]
    assert steps[0]["limit_from"] == 1
    assert [row["limit_to"] for row in steps] == [*(row["limit_from"] - 1 for row in steps[1:]), None]
    values = range(1, steps[-1]["limit_from"] + 3)
    lanes = {str(value): {**PROPOSAL, name: value} for value in values}
    refused = [row for row in replay(RICH, lanes)[R] if row["refused_by"] == name]
    for value in values:
        requests = [row["exchange_no"] for row in refused if row["scenario"] == str(value)]
        step = [row for row in steps if row["limit_from"] <= value][-1]
        assert step["exchange_no"] == (requests[0] if requests else None), f"{name}={value}"
    assert refused


@pytest.mark.parametrize("batch_rows", [1, 7])
def test_tables_are_the_same_however_the_rows_are_cut(batch_rows: int) -> None:
    assert replay(RICH, LANES, batch_rows=batch_rows) == replay(RICH, LANES)


@pytest.mark.parametrize("cells", [1, 700])
def test_a_lane_has_the_same_result_whichever_lanes_are_replayed_with_it(
    cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = replay(RICH, LANES)
    monkeypatch.setattr(replay_module, "CELLS_AT_ONCE", cells)
    assert replay(RICH, LANES) == together


def test_tables_are_the_same_in_whatever_order_the_rows_come() -> None:
    """Spark brings rows in no order. Two responses of the same time may show two ids of a name."""
    both = [row | {"topic_id": name} for name in ("x", "y") for row in shown("a", [[2, 3], [3, 1]], time=5)]
    rows = [*both[1:3], created(5, "b", 3, 2)]
    assert replay(rows[::-1], LANES) == replay(rows, LANES)


def test_a_capture_without_changes_gives_no_rows_but_the_end_of_the_curve() -> None:
    found = replay(shown("old", [[1], [2]]), {"x": {BROKER_LIMIT: 1, CLUSTER_LIMIT: 1}})
    assert found[PARTITION_LIMITS] == found[R] == found[FIDELITY] == []
    c = PARTITION_LIMIT_CURVE
    assert [(row[c.limit_from], row[c.limit_to], row[c.topic]) for row in found[c]] == [(1, None, None)] * 2


def test_a_capture_without_metadata_is_judged_by_the_cluster_limit() -> None:
    found = replay([created(1, "a", 3), created(2, "b", 3)], {"x": {CLUSTER_LIMIT: 5}}, brokers=[])
    assert [row["topic"] for row in found[R]] == ["b"]


def test_replicas_whose_brokers_are_not_known_count_in_the_cluster() -> None:
    rows = [created(1, "a", 3), created(2, "b", 2), requested(3, "delete_topic", "a"), created(4, "c", 4)]
    found = replay(rows, {"x": {CLUSTER_LIMIT: 4}}, brokers=[])
    assert [row["topic"] for row in found[R]] == ["b"]
    h = PARTITION_LIMIT_HEADROOM
    assert [(row[h.partitions], row[h.headroom]) for row in found[h]] == [(4, 0)]
