"""A follower's rows in lanes with `num.replica.fetchers`: all of its captured fetchers are replayed together."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from schemas.tables.fetch_reasons import FETCHERS
from tests.packed import unpack
from tests.unit.replay.fetch_max_bytes.captured_reader import BATCHES, SIZE, batch_rows, catch_up, lanes_of, reads_of
from udfs.replay.fetch_max_bytes.events import with_groups
from udfs.replay.fetch_max_bytes.replay import replay_fetches
from udfs.replay.shared.lanes import AS_CAPTURED

Rows = list[dict[str, Any]]
COUNTS = (AS_CAPTURED, 1, 2, 4)
"""The fetchers of each lane."""
BY_RULE, AN_ID = "t", "i3gGd4W_S0yyjrpwXsBNCQ"
"""A topic of which Kafka gives the even partitions to the first of two fetchers, and a topic's id."""
NAME = "broker-2-fetcher-"


@cache
def gold(topic: str = BY_RULE, client_ids: str = NAME, most: int = 10_000) -> dict[str, Rows]:
    """The gold rows of a follower with two fetchers. The first one has even partitions. most: rows of a batch."""
    lanes = lanes_of(*[AS_CAPTURED] * len(COUNTS))
    clients = lanes.follower_client.copy()
    clients["readers"] = COUNTS
    batches = [
        batch
        for fetcher in range(2)
        for batch in reads_of(events_of_fetcher(fetcher, topic, client_ids)).to_batches(max_chunksize=most)
    ]
    rows: dict[str, Rows] = defaultdict(list)
    grouped = with_groups(batches, {}, joins_fetchers=True)
    for packed in replay_fetches(grouped, replace(lanes, follower_client=clients), "run"):
        for batch in unpack([packed]):
            rows[packed["table"][0].as_py()] += batch.to_pylist()
    return rows


def events_of_fetcher(fetcher: int, topic: str, client_ids: str) -> Rows:
    """The topic's batches, and the fetches of every other partition."""
    own = {"client_id": f"{client_ids}{fetcher}", "reader": "follower", "connection_id": 5 + fetcher}
    reads = [row | own | {"partition": 2 * row["partition"] + fetcher} for row in catch_up(partitions=2)]
    return [row | {"topic": topic, "topic_key": topic} for row in batch_rows() + reads]


def closed(rows: dict[str, Rows], table: str, lane: int) -> Rows:
    """A table's rows of a lane of the closed loop, by client.id."""
    own = [row for row in rows[table] if row["mode"] == "closed" and row["scenario"] == f"lane {lane}"]
    return sorted(own, key=lambda row: (row["client_id"], row.get("partition", 0)))


def test_each_lane_has_all_of_the_followers_partitions_and_as_many_fetchers_as_it_says() -> None:
    for lane, fetchers in enumerate([2, 1, 2, 4]):
        parts, readers = (closed(gold(), table, lane) for table in ("fetch_fairness", "fetch_consumers"))
        assert [row["partition"] for row in parts] == [0, 2, 1, 3]
        assert [row["bytes"] for row in parts] == [BATCHES * SIZE] * 4
        assert sum(row["fetchers"] for row in readers) == fetchers
        assert all(row["read_all"] for row in readers)


def test_requests_and_the_bound_count_for_the_captured_fetcher_with_most_of_the_partitions() -> None:
    by_lane = [closed(gold(), "fetch_consumers", lane) for lane in range(len(COUNTS))]
    assert [[row["fetchers"] for row in rows] for rows in by_lane] == [[1, 1], [1, 0], [1, 1], [2, 2]]
    # A response holds two batches of SIZE bytes, as in the capture. Four fetchers have one partition each.
    bounds = [[row["memory_bound_bytes"] for row in rows] for rows in by_lane]
    assert bounds == [[2 * SIZE, 2 * SIZE], [2 * SIZE, 0], [2 * SIZE, 2 * SIZE], [2 * SIZE, 2 * SIZE]]
    assert by_lane[1][1]["requests"] == 0 < by_lane[1][0]["requests"]


def test_as_many_fetchers_as_captured_have_the_same_rows_as_the_captured_ones() -> None:
    for table in ("fetch_fairness", "fetch_consumers"):
        captured, same = (
            [{key: value for key, value in row.items() if key != "scenario"} for row in closed(gold(), table, lane)]
            for lane in (0, 2)
        )
        assert captured == same


def test_one_fetcher_catches_up_later_where_responses_are_full() -> None:
    """One response of two batches has room for half of what two responses have."""
    took = [max(row["catch_up_ms"] for row in closed(gold(), "fetch_consumers", lane)) for lane in (0, 1)]
    assert took[1] > 1.5 * took[0]


def test_fidelity_says_that_the_capture_follows_kafkas_rule() -> None:
    found = [row for row in gold()["fidelity"] if row["metric"] == "fetcher_of_partition"]
    assert [(row["client_id"], row["checked"], row["agreed"], row["unknown"]) for row in found] == [
        (f"{NAME}0", 2, 2, 0), (f"{NAME}1", 2, 2, 0),
    ]  # fmt: skip


def reasons_of(found: dict[str, Rows]) -> list[dict[str, int]]:
    """Why it is not known by which rule each fetcher's partitions are dealt."""
    return [dict(row["reasons"]) for row in found["fidelity"] if row["metric"] == "fetcher_of_partition"]


def test_partitions_of_a_topic_without_a_name_are_dealt_by_their_captured_fetcher_and_are_unknown() -> None:
    found = gold(AN_ID)
    assert reasons_of(found) == [{FETCHERS.topic_name_unknown: 2}] * 2
    for lane, fetchers in ((1, 1), (2, 2)):
        assert sum(row["fetchers"] for row in closed(found, "fetch_consumers", lane)) == fetchers
    captured, same = ([row["catch_up_ms"] for row in closed(found, "fetch_fairness", lane)] for lane in (0, 2))
    assert captured == same


def test_a_follower_whose_partitions_cannot_be_dealt_stays_as_captured_and_fidelity_says_why() -> None:
    found = gold(client_ids="client-")
    captured = closed(found, "fetch_consumers", 0)
    for lane in (1, 2, 3):
        rows = closed(found, "fetch_consumers", lane)
        assert [row["fetchers"] for row in rows] == [None, None]
        assert [row["catch_up_ms"] for row in rows] == [row["catch_up_ms"] for row in captured]
    assert reasons_of(found) == [{FETCHERS.fetcher_unknown: 2}] * 2


@pytest.mark.parametrize("most", [1, 7])
def test_rows_do_not_depend_on_how_the_input_is_split_into_batches(most: int) -> None:
    assert gold(most=most) == gold()
