"""The results of a replay's lanes as rows of the gold tables."""

from __future__ import annotations

import numpy as np
import pytest

from schemas.tables.gold_limits import PARTITION_LIMIT_HEADROOM, PARTITION_LIMIT_REFUSALS, PARTITION_LIMITS
from tests.unit.replay.partition_limits.clusters import CLUSTER_LIMIT, created, grown, replay, requested
from udfs.columns.time_units import US_PER_DAY
from udfs.replay.partition_limits.rows import breach_times, growth_per_day

R = PARTITION_LIMIT_REFUSALS
TWO = {"two": {CLUSTER_LIMIT: 2}}


def test_the_time_at_which_a_limit_is_reached_follows_from_the_growth_in_the_run() -> None:
    rows = [created(1 + day * US_PER_DAY, f"t{day}", 1, 1) for day in range(11)]
    (row,) = replay(rows, {"x": {CLUSTER_LIMIT: 31}})[PARTITION_LIMIT_HEADROOM]
    assert (row["partitions"], row["headroom"]) == (11, 20)
    assert row["growth_per_day"] == pytest.approx(1.1)
    days = (row["breach_at"].timestamp() * 1_000_000 - 1) / US_PER_DAY
    assert days == pytest.approx(10 + 20 / 1.1, abs=0.01)


def test_requests_on_a_topic_that_was_refused_fail_until_it_is_made() -> None:
    rows = [
        created(1, "a", 3, produce_requests=5, fetch_requests=2, metadata_requests=3),
        created(2, "b", 1, produce_requests=9, metadata_requests=8), grown(3, "a", 6, produce_requests=1),
        created(4, "a", 1, produce_requests=30, fetch_requests=40),
        requested(5, "delete_topic", "a", fetch_requests=50),
    ]  # fmt: skip
    found = replay(rows, TWO)
    failed = ("produces_failed", "fetches_failed", "metadata_failed")
    refused = [tuple(row[name] for name in ("topic", "kind", *failed)) for row in found[R]]
    assert refused == [("a", "create_topic", 5, 2, 3), ("a", "create_partitions", 1, 0, 0)]
    names = ("scenario", "kind", "topic_prefix", *failed)
    failing = [row for row in found[PARTITION_LIMITS] if row["produces_failed"]]
    assert sorted(tuple(row[name] for name in names) for row in failing) == [
        ("two", "create_partitions", "a", 1, 0, 0), ("two", "create_topic", "a", 5, 2, 3),
    ]  # fmt: skip


def test_changes_are_summed_by_principal_if_a_log_shows_it() -> None:
    rows = [created(1, "a", 1, principal="User:ann"), created(2, "b", 3, principal="User:bob"), created(3, "c", 1)]
    found = replay(rows, TWO)
    summed = {
        (row["principal"], row["tried"], row["done"]) for row in found[PARTITION_LIMITS] if row["scenario"] == "two"
    }
    assert summed == {("User:ann", 1, 1), ("User:bob", 1, 0), ("", 1, 1)}
    assert [row["principal"] for row in found[R]] == ["User:bob"]


def test_a_limit_is_reached_within_the_run_or_later_if_replicas_go_on_growing() -> None:
    times, counts = np.array([0, US_PER_DAY]), np.array([[3, 3, 3, 3], [5, 5, 5, 3]])
    growth = growth_per_day(counts, times)
    assert growth.tolist() == [2, 2, 2, 0]
    reached = breach_times(counts, times, np.array([3, 5, 9, 9]), growth)
    assert reached.tolist() == [0, US_PER_DAY, 3 * US_PER_DAY, 0]
