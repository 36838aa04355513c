"""Changes to a cluster's topics under limits of KIP-578 (a proposal) and under those that Kafka has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pytest

from schemas.tables.gold import FIDELITY
from schemas.tables.gold_limits import (
    PARTITION_LIMIT_CURVE,
    PARTITION_LIMIT_HEADROOM,
    PARTITION_LIMIT_REFUSALS,
    PARTITION_LIMITS,
    PARTITIONS_PER_BROKER,
)
from schemas.tables.steps import TOPIC_EVENTS
from schemas.tables.table import Table
from tests.packed import unpack
from udfs.columns.time_units import US_PER_DAY
from udfs.facts.arrow_tables import arrow_schema
from udfs.replay.partition_limits.history.changes import BROKER, CHANGE, SIGHTING
from udfs.replay.partition_limits.history.requested_changes import Defaults
from udfs.replay.partition_limits.replay import LimitLane, replay_topics
from udfs.replay.partition_limits.schedule import UNLIMITED, Schedule

Rows = list[dict[str, Any]]
T, R = TOPIC_EVENTS, PARTITION_LIMIT_REFUSALS
BROKERS: Rows = [{"entry": BROKER, "node_id": node} for node in (1, 2, 3)]


def asked(time: int, kind: str, topic: str, error: int | None = 0, **more: Any) -> dict[str, Any]:
    """A change asked for at a time in us, alone in its request unless `exchange_no` says otherwise."""
    row = {"entry": CHANGE, "time": time, "kind": kind, "topic": topic, "error_code": error, "client_id": "c"}
    return row | {"connection_id": 1, "exchange_no": time, "position": 0, "api_version": 7} | more


def created(time: int, topic: str, partitions: int, factor: int = 1, **more: Any) -> dict[str, Any]:
    return asked(time, "create_topic", topic, num_partitions=partitions, replication_factor=factor, **more)


def grown(time: int, topic: str, partitions: int, **more: Any) -> dict[str, Any]:
    return asked(time, "create_partitions", topic, num_partitions=partitions, **more)


def seen(topic: str, replicas: Sequence[Sequence[int]], time: int = 0, is_internal: bool = False) -> Rows:
    same = {"entry": SIGHTING, "time": time, "topic": topic, "is_internal": is_internal}
    return [same | {"partition": i, "replica_nodes": list(nodes)} for i, nodes in enumerate(replicas)]


def limit(value: int, *later: tuple[int, int]) -> Schedule:
    return Schedule((-UNLIMITED, *(time for time, _ in later)), (value, *(value for _, value in later)))


def replay(
    rows: Iterable[dict[str, Any]], *lanes: LimitLane, batch_rows: int = 10_000, brokers: Rows = BROKERS
) -> dict[Table, Rows]:
    """The rows of each table, of a cluster of three brokers unless told."""
    listed = [{str(c): row.get(c) for c in T.columns} for row in (*brokers, *rows)]
    table = pa.Table.from_pylist(listed, schema=arrow_schema(T))
    packed = replay_topics(
        table.to_batches(max_chunksize=batch_rows), (LimitLane("captured"), *lanes), Defaults(4, 2), 7, "run"
    )
    found: dict[str, Rows] = {}
    for batch in packed:
        names = batch["table"].to_pylist()
        for i, name in enumerate(names):
            for part in unpack([batch.slice(i, 1)]):
                found.setdefault(str(name), []).extend(part.to_pylist())
    tables = (
        FIDELITY, PARTITION_LIMITS, PARTITION_LIMIT_REFUSALS, PARTITION_LIMIT_CURVE, PARTITIONS_PER_BROKER,
        PARTITION_LIMIT_HEADROOM,
    )  # fmt: skip
    return {table: found.get(table.name, []) for table in tables}


def refusals(rows: Iterable[dict[str, Any]], lane: LimitLane) -> list[tuple[str, int, str]]:
    """Topic, error code and what refused it, of one lane."""
    found = replay(rows, lane)[R]
    return [(row["topic"], row["error_code"], row["refused_by"]) for row in found if row["scenario"] == lane.name]


def test_a_topic_that_does_not_fit_in_the_cluster_is_refused_with_its_numbers() -> None:
    rows = [created(1, "a", 3, 2), created(2, "b", 2, 2), created(3, "c", 1, 1)]
    (row,) = replay(rows, LimitLane("eight", total=limit(8)))[R]
    assert (row["topic"], row["error_code"], row["limit_value"], row["present"], row["asked"]) == ("b", 44, 8, 6, 4)
    assert row["message"] == (
        "Cannot satisfy request without exceeding the limit max.partitions (KIP-578, a proposal): limit 8, present 6, "
        "asked 4"
    )


def test_brokers_are_filled_up_to_the_limit_and_no_further() -> None:
    rows = [created(time, f"t{time}", 1, 1) for time in range(1, 9)]
    found = replay(rows, LimitLane("two", broker=limit(2)))
    assert [row["topic"] for row in found[R]] == ["t7", "t8"]
    assert {row["message"].rpartition(": ")[2] for row in found[R]} == {"limit 2, present 6, asked 1 on all brokers"}
    last = [row["partitions"] for row in found[PARTITIONS_PER_BROKER] if row["scenario"] == "two"][-3:]
    assert last == [2, 2, 2]


def test_the_more_restrictive_limit_applies() -> None:
    rows = [created(1, "a", 3, 1), created(2, "b", 3, 1)]
    assert refusals(rows, LimitLane("x", limit(1), limit(100))) == [("b", 44, "max.broker.partitions")]
    assert refusals(rows, LimitLane("x", limit(100), limit(5))) == [("b", 44, "max.partitions")]


def test_a_limit_changes_when_its_time_has_come() -> None:
    rows = [created(1, "a", 3), created(10, "b", 3), created(20, "c", 3)]
    lane = LimitLane("later", total=limit(2, (10, 6), (20, 4)))
    assert refusals(rows, lane) == [("a", 44, "max.partitions"), ("c", 44, "max.partitions")]


def test_what_is_there_already_stays_and_only_what_is_new_is_refused() -> None:
    rows = [*seen("old", [[1], [1], [1], [2]]), created(1, "a", 1), asked(2, "delete_topic", "old"), created(3, "b", 1)]
    assert refusals(rows, LimitLane("x", total=limit(2))) == [("a", 44, "max.partitions")]


def test_internal_topics_are_neither_refused_nor_counted() -> None:
    rows = [created(1, "__consumer_offsets", 50, 3), created(2, "a", 3)]
    found = replay(rows, LimitLane("x", limit(1), limit(3)))
    assert found[R] == []
    assert max(row["partitions"] for row in found[PARTITIONS_PER_BROKER] if row["scenario"] == "x") == 1


def test_an_assignment_is_refused_for_the_brokers_it_names_alone() -> None:
    full = seen("old", [[1], [1], [1]])
    to_two = created(1, "a", -1, -1, assignments=["0:2,3", "1:3,2"])
    to_one = created(2, "b", -1, -1, assignments=["0:1"])
    (row,) = replay([*full, to_two, to_one], LimitLane("x", broker=limit(2)))[R]
    assert (row["topic"], row["broker"], row["present"], row["asked"]) == ("b", 1, 3, 1)


def test_a_move_needs_room_for_the_replicas_that_are_new_alone() -> None:
    there = seen("old", [[1, 2], [1, 2], [1, 2]])
    swap = asked(1, "reassign_partition", "old", partition=0, assignments=["0:2,1"])
    move = asked(2, "reassign_partition", "old", partition=1, assignments=["1:3,2"])
    again = asked(3, "reassign_partition", "old", partition=2, assignments=["2:3,2"])
    found = replay([*there, swap, move, again], LimitLane("x", broker=limit(1)))
    assert [(row["exchange_no"], row["broker"]) for row in found[R]] == [(3, 3)]
    last = [row["partitions"] for row in found[PARTITIONS_PER_BROKER] if row["scenario"] == "x"][-3:]
    assert last == [2, 3, 1]


def test_later_requests_on_a_refused_topic_fail() -> None:
    rows = [
        created(1, "a", 9), grown(2, "a", 12), asked(3, "delete_topic", "a"),
        asked(4, "reassign_partition", "a", error=3, partition=0, assignments=["0:1"]),
    ]  # fmt: skip
    assert refusals(rows, LimitLane("x", total=limit(5))) == [
        ("a", 44, "max.partitions"), ("a", 3, "refused_before"), ("a", 3, "refused_before"), ("a", 3, "refused_before"),
    ]  # fmt: skip


def test_a_topic_that_is_only_validated_is_judged_and_not_made() -> None:
    rows = [created(1, "a", 3, validate_only=True), created(2, "a", 3), created(3, "b", 3, validate_only=True)]
    assert refusals(rows, LimitLane("x", total=limit(5))) == [("b", 44, "max.partitions")]


def test_a_growing_topic_needs_room_for_what_it_adds() -> None:
    rows = [created(1, "a", 4, 2), grown(2, "a", 6), grown(3, "a", 7)]
    (row,) = replay(rows, LimitLane("x", total=limit(12)))[R]
    assert (row["exchange_no"], row["present"], row["asked"]) == (3, 12, 2)


def test_a_topic_made_by_a_metadata_request_is_refused_as_any_other() -> None:
    rows = [*seen("auto", [[1], [2], [3]], time=5), asked(1, "auto_create", "auto", error=3)]
    found = replay(rows, LimitLane("x", total=limit(2)))
    assert [(row["kind"], row["asked"]) for row in found[R]] == [("auto_create", 3)]


@pytest.mark.parametrize(
    ("release", "change", "told"),
    [
        ((4, 3), created(2, "b", 10_001), ("b", 44, "partitions per request")),
        ((4, 3), created(2, "b", 10_000), ("b", 44, "records per request")),
        ((4, 3), created(2, "b", 9_999), None),
        ((4, 3), created(2, "b", 9_999, configs=1), ("b", 44, "records per request")),
        ((4, 3), created(2, "b", 9_998, configs=1), None),
        ((4, 3), grown(2, "a", 10_012), ("a", -1, "records per request")),
        ((4, 4), grown(2, "a", 10_012), ("a", 44, "partitions per request")),
        ((4, 4), grown(2, "a", 10_001), None),
        (None, created(2, "b", 10_001), None),
        (None, grown(2, "a", 10_012), None),
    ],
)
def test_what_limits_a_request_in_kafka(
    release: tuple[int, ...] | None, change: dict[str, Any], told: tuple[str, int, str] | None
) -> None:
    """ReplicationControlManager.createTopics and createPartitions: 4.3 as a broker of 4.3.1 answered, 4.4 as coded."""
    assert refusals([created(1, "a", 1), change], LimitLane("x", release=release)) == ([told] if told else [])


def test_a_growth_refused_for_its_records_leaves_those_before_up_to_4_3() -> None:
    """A broker of 4.3.1, asked to raise 1 to 10,012, answers UNKNOWN_SERVER_ERROR, and the topic has 10,001."""
    rows = [created(1, "a", 1), grown(2, "a", 10_012, error=-1), grown(3, "a", 10_002)]
    found = replay(rows)
    assert sum(row["partitions"] for row in found[PARTITIONS_PER_BROKER][-3:]) == 10_002
    assert {row["metric"]: (row["checked"], row["agreed"]) for row in found[FIDELITY]}["create_partitions"] == (2, 2)


def test_topics_of_one_request_share_its_records() -> None:
    both = [created(1, "a", 5000), created(1, "b", 5000, position=1), created(2, "c", 5000)]
    assert refusals(both, LimitLane("x")) == [("a", 44, "records per request"), ("b", 44, "records per request")]


def test_a_controller_mutation_quota_refuses_once_it_is_overdrawn() -> None:
    """KIP-599: a full bucket has 11 s of the rate; one request may overdraw it, and old versions are never refused."""
    rows = [
        created(1, "a", 30), created(2, "b", 1), created(3, "c", 1, api_version=5),
        created(4, "d", 1, client_id="other"), created(5_000_000 + 2, "e", 1),
    ]  # fmt: skip
    assert refusals(rows, LimitLane("x", mutation_rate=2.0)) == [("b", 89, "controller_mutation_rate")]


def test_a_connection_is_not_read_while_its_quota_is_overdrawn() -> None:
    """RequestHandlerHelper.throttle: 8 partitions too many are made up for in 4 s, when the next request is read."""
    rows = [
        created(1, "a", 30), created(2, "b", 1), created(1_000_000, "c", 5),
        created(1_000_001, "d", 1, connection_id=2), created(1_000_002, "e", 1),
    ]  # fmt: skip
    found = refusals(rows, LimitLane("x", mutation_rate=2.0))
    assert [topic for topic, *_ in found] == ["b", "d", "e"]


@pytest.mark.parametrize("rate", [2.0, 3.0, 7.0, 11.0])
def test_what_waits_for_the_quota_finds_it_made_up_for(rate: float) -> None:
    """However small the lack was: the next request comes to the controller after that, never before."""
    rows = [created(1, "a", int(rate) * 11 + 1), *(created(time, f"t{time}", 1) for time in range(90_003, 90_700, 7))]
    found = [topic for topic, *_ in refusals(rows, LimitLane("x", mutation_rate=rate))]
    tried = [row["topic"] for row in rows[1:]]
    assert found == tried[::2]


def test_an_old_version_is_throttled_where_a_new_one_is_refused() -> None:
    rows = [created(1, "a", 30, api_version=5), created(2, "b", 1), created(3, "c", 1, connection_id=2)]
    assert [topic for topic, *_ in refusals(rows, LimitLane("x", mutation_rate=2.0))] == ["c"]


def test_topics_of_one_request_meet_the_same_bucket() -> None:
    rows = [created(1, "a", 30), created(2, "b", 1), created(2, "c", 1, position=1)]
    assert [topic for topic, *_ in refusals(rows, LimitLane("x", mutation_rate=2.0))] == ["b", "c"]


def test_a_topic_made_by_a_metadata_request_is_refused_for_its_quota_in_every_version() -> None:
    """The broker asks the controller for it by the newest version, as the client (AutoTopicCreationManager)."""
    rows = [created(1, "a", 30), *seen("auto", [[1]], time=5), asked(2, "auto_create", "auto", error=3, api_version=4)]
    assert refusals(rows, LimitLane("x", mutation_rate=2.0)) == [("auto", 89, "controller_mutation_rate")]


def test_an_answer_that_differs_is_a_disagreement_and_one_that_cannot_be_derived_is_not() -> None:
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


def test_placements_that_metadata_shows_are_held_against_the_placer() -> None:
    ring, other = [[2, 3], [3, 1], [1, 2]], [[1, 2], [1, 3]]
    rows = [created(1, "a", 3, 2), *seen("a", ring, 5), created(2, "b", 2, 2), *seen("b", other, 5), created(3, "c", 1)]
    row = {row["metric"]: row for row in replay(rows)[FIDELITY]}["placements"]
    assert (row["checked"], row["agreed"], row["unknown"]) == (2, 1, 1)
    assert dict(row["reasons"]) == {"impossible_draw": 1, "not_in_metadata": 1}


def test_the_limit_is_reached_at_the_growth_of_the_run() -> None:
    rows = [created(1 + day * US_PER_DAY, f"t{day}", 1, 1) for day in range(11)]
    (row,) = replay(rows, LimitLane("x", total=limit(31)))[PARTITION_LIMIT_HEADROOM]
    assert (row["partitions"], row["headroom"]) == (11, 20)
    assert row["growth_per_day"] == pytest.approx(1.1)
    days = (row["breach_at"].timestamp() * 1_000_000 - 1) / US_PER_DAY
    assert days == pytest.approx(10 + 20 / 1.1, abs=0.01)


RICH = [
    *seen("old", [[1, 2], [1, 3], [1, 2]]), created(1, "a", 5, 2), created(2, "b", 3, 3), grown(3, "a", 9),
    asked(4, "reassign_partition", "old", partition=1, assignments=["1:2,3"]), asked(5, "delete_topic", "b"),
    created(6, "c", -1, -1, assignments=["0:1,3", "1:3,1"]), created(7, "__consumer_offsets", 6, 3),
    created(8, "d", 7, 1), asked(9, "reassign_partition", "a", partition=8, assignments=["8:1,2,3"]),
    grown(10, "c", 4), asked(11, "delete_topic", "a"), created(12, "e", 11, 2), created(13, "f", 4, 3),
]  # fmt: skip


def test_requests_on_a_topic_that_was_refused_fail_until_it_is_made() -> None:
    rows = [
        created(1, "a", 3, produce_requests=5, fetch_requests=2, metadata_requests=3),
        created(2, "b", 1, produce_requests=9, metadata_requests=8), grown(3, "a", 6, produce_requests=1),
        created(4, "a", 1, produce_requests=30, fetch_requests=40),
        asked(5, "delete_topic", "a", fetch_requests=50),
    ]  # fmt: skip
    found = replay(rows, LimitLane("two", total=limit(2)))
    failed = ("produces_failed", "fetches_failed", "metadata_failed")
    refused = [tuple(row[name] for name in ("topic", "kind", *failed)) for row in found[R]]
    assert refused == [("a", "create_topic", 5, 2, 3), ("a", "create_partitions", 1, 0, 0)]
    names = ("scenario", "kind", "topic_prefix", *failed)
    failing = [row for row in found[PARTITION_LIMITS] if row["produces_failed"]]
    assert sorted(tuple(row[name] for name in names) for row in failing) == [
        ("two", "create_partitions", "a", 1, 0, 0), ("two", "create_topic", "a", 5, 2, 3),
    ]  # fmt: skip


def test_changes_are_told_by_who_asked_where_a_log_says() -> None:
    rows = [created(1, "a", 1, principal="User:ann"), created(2, "b", 3, principal="User:bob"), created(3, "c", 1)]
    found = replay(rows, LimitLane("two", total=limit(2)))
    told = {
        (row["principal"], row["tried"], row["done"]) for row in found[PARTITION_LIMITS] if row["scenario"] == "two"
    }
    assert told == {("User:ann", 1, 1), ("User:bob", 1, 0), ("", 1, 1)}
    assert [row["principal"] for row in found[R]] == ["User:bob"]


@pytest.mark.parametrize("name", ["max.broker.partitions", "max.partitions"])
def test_the_curve_tells_for_every_limit_what_a_lane_with_that_limit_refuses_first(name: str) -> None:
    steps = [row for row in replay(RICH)[PARTITION_LIMIT_CURVE] if row["refused_by"] == name]
    assert steps[0]["limit_from"] == 1
    assert [row["limit_to"] for row in steps] == [*(row["limit_from"] - 1 for row in steps[1:]), None]
    values = range(1, steps[-1]["limit_from"] + 3)
    none = LimitLane("none", release=None)
    of_brokers = name == "max.broker.partitions"
    lanes = [
        none._replace(name=str(value), broker=limit(value))
        if of_brokers
        else none._replace(name=str(value), total=limit(value))
        for value in values
    ]
    refused = [row for row in replay(RICH, *lanes)[R] if row["refused_by"] == name]
    for value in values:
        told = [row["exchange_no"] for row in refused if row["scenario"] == str(value)]
        step = [row for row in steps if row["limit_from"] <= value][-1]
        assert step["exchange_no"] == (told[0] if told else None), f"{name}={value}"
    assert refused


@pytest.mark.parametrize("batch_rows", [1, 7])
def test_tables_are_the_same_however_the_rows_are_cut(batch_rows: int) -> None:
    lanes = LimitLane("a", broker=limit(6)), LimitLane("b", total=limit(20))
    assert replay(RICH, *lanes, batch_rows=batch_rows) == replay(RICH, *lanes)


def test_tables_are_the_same_in_whatever_order_the_rows_come() -> None:
    """Spark brings them in no order; two responses at one time may tell two ids of a name."""
    shown = [row | {"topic_id": name} for name in ("x", "y") for row in seen("a", [[2, 3], [3, 1]], time=5)]
    rows = [*shown[1:3], created(5, "b", 3, 2)]
    lane = LimitLane("a", broker=limit(6))
    assert replay(rows[::-1], lane) == replay(rows, lane)


def test_a_capture_without_changes_gives_no_rows_but_the_end_of_the_curve() -> None:
    found = replay(seen("old", [[1], [2]]), LimitLane("x", limit(1), limit(1)))
    assert found[PARTITION_LIMITS] == found[R] == found[FIDELITY] == []


def test_a_capture_without_metadata_is_judged_by_the_cluster_limit() -> None:
    table = pa.Table.from_pylist(
        [{str(c): row.get(c) for c in T.columns} for row in (created(1, "a", 3), created(2, "b", 3))], arrow_schema(T)
    )
    lanes = LimitLane("captured"), LimitLane("x", total=limit(5))
    packed = list(replay_topics(table.to_batches(), lanes, Defaults(1, 1), 7, "run"))
    refused = [
        row["topic"]
        for batch in packed
        for i, name in enumerate(batch["table"].to_pylist())
        if name == R.name
        for part in unpack([batch.slice(i, 1)])
        for row in part.to_pylist()
    ]
    assert refused == ["b"]


def test_counts_that_no_cluster_can_have_are_refused_in_bounded_memory() -> None:
    huge = created(1, "a", (1 << 31) - 1, 1), created(2, "b", 3, (1 << 15) - 1), grown(4, "c", (1 << 31) - 1)
    found = replay([*huge, created(3, "c", 1)], LimitLane("x", release=None))
    assert {row["topic"] for row in found[R] if row["scenario"] == "x"} == {"a", "c"}


def test_where_metadata_lists_no_broker_nothing_is_refused_for_want_of_one() -> None:
    named = created(1, "a", -1, -1, assignments=["0:1,2,3"])
    found = replay([named, created(2, "b", 2, 2), created(3, "c", 2, 4)], brokers=[])
    assert [(row["checked"], row["agreed"]) for row in found[FIDELITY] if row["metric"] == "create_topic"] == [(3, 3)]
