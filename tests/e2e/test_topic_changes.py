"""The tables of a real cluster's topic changes, compared with what its brokers logged about the same requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from schemas.tables.silver_topics import TOPIC_CHANGES
from tests.e2e.conftest import CapturedLake
from tests.e2e.request_log import LoggedRequest

METADATA, CREATE_TOPICS, DELETE_TOPICS, CREATE_PARTITIONS, ALTER_PARTITION_REASSIGNMENTS = 3, 19, 20, 37, 45
Exchange = tuple[int, int]
Change = tuple[Any, ...]
"""Kind, position, topic, partition, requested partitions, replication factor, assignments, validate only, error."""


@pytest.fixture(scope="module")
def admin(captured: Callable[[str], CapturedLake]) -> CapturedLake:
    return captured("admin")


@pytest.fixture(scope="module", params=["admin", "mixed", "starve"])
def lake(request: pytest.FixtureRequest, captured: Callable[[str], CapturedLake]) -> CapturedLake:
    return captured(request.param)


def logged_changes(line: LoggedRequest) -> list[Change]:
    """The changes of topics that a log line asks for, in the order of the request."""
    of_api: dict[int, Callable[[LoggedRequest], Iterable[Change]]] = {
        METADATA: auto_creations,
        CREATE_TOPICS: creations,
        DELETE_TOPICS: deletions,
        CREATE_PARTITIONS: growths,
        ALTER_PARTITION_REASSIGNMENTS: moves,
    }
    return list(of_api[line.api_key](line)) if line.api_key in of_api else []


def creations(line: LoggedRequest) -> Iterable[Change]:
    errors = {topic["name"]: topic["errorCode"] for topic in line.response["topics"]}
    for position, topic in enumerate(line.request["topics"]):
        placed = [placement(part["partitionIndex"], part["brokerIds"]) for part in topic["assignments"]] or None
        yield (
            "create_topic", position, topic["name"], None, topic["numPartitions"], topic["replicationFactor"], placed,
            line.request["validateOnly"], errors[topic["name"]],
        )  # fmt: skip


def deletions(line: LoggedRequest) -> Iterable[Change]:
    errors = {topic["name"]: topic["errorCode"] for topic in line.response["responses"]}
    names = line.request.get("topicNames") or [topic["name"] for topic in line.request["topics"]]
    for position, name in enumerate(names):
        yield "delete_topic", position, name, None, None, None, None, None, errors[name]


def growths(line: LoggedRequest) -> Iterable[Change]:
    errors = {topic["name"]: topic["errorCode"] for topic in line.response["results"]}
    for position, topic in enumerate(line.request["topics"]):
        assert topic["assignments"] is None
        yield (
            "create_partitions", position, topic["name"], None, topic["count"], None, None,
            line.request["validateOnly"], errors[topic["name"]],
        )  # fmt: skip


def moves(line: LoggedRequest) -> Iterable[Change]:
    errors = {
        (topic["name"], part["partitionIndex"]): part["errorCode"]
        for topic in line.response["responses"]
        for part in topic["partitions"]
    }
    asked = [(topic["name"], part) for topic in line.request["topics"] for part in topic["partitions"]]
    for position, (name, part) in enumerate(asked):
        index, replicas = part["partitionIndex"], part["replicas"]
        moved = None if replicas is None else [placement(index, replicas)]
        yield "reassign_partition", position, name, index, None, None, moved, None, errors[name, index]


def auto_creations(line: LoggedRequest) -> Iterable[Change]:
    errors = {topic["name"]: topic["errorCode"] for topic in line.response["topics"]}
    for position, topic in enumerate(line.request["topics"] or []):
        if line.request.get("allowAutoTopicCreation", True) and topic["name"] and errors[topic["name"]]:
            yield "auto_create", position, topic["name"], None, None, None, None, None, errors[topic["name"]]


def placement(partition: int, brokers: list[int]) -> str:
    return f"{partition}:{','.join(map(str, brokers))}"


def exchange_of(row: dict[str, Any]) -> Exchange:
    return row["connection_id"], row["exchange_no"]


def without(changes: dict[Exchange, list[Change]], exchanges: set[Exchange]) -> dict[Exchange, list[Change]]:
    return {exchange: found for exchange, found in changes.items() if exchange not in exchanges}


def ours(lake: CapturedLake) -> dict[Exchange, list[Change]]:
    t = TOPIC_CHANGES
    columns = (
        t.kind, t.position, t.topic, t.partition, t.num_partitions, t.replication_factor, t.assignments,
        t.validate_only, t.error_code,
    )  # fmt: skip
    found: dict[Exchange, list[Change]] = {}
    for row in sorted(lake.rows(t), key=lambda row: row[t.position]):
        found.setdefault(exchange_of(row), []).append(tuple(row[c] for c in columns))
    return found


def test_every_change_is_what_the_broker_logged_and_there_are_no_others(lake: CapturedLake) -> None:
    logged = {}
    # The log also has responses that a client did not wait for.
    unanswered = {exchange_of(row) for row in lake.exchanges.values() if row["status"] == "unanswered"}
    for key, exchange in lake.exchanges.items():
        if changes := logged_changes(lake.logged[key]):
            logged[exchange_of(exchange)] = changes
    assert without(ours(lake), unanswered) == without(logged, unanswered)
    assert logged


def test_the_capture_shows_every_kind_but_deletion(admin: CapturedLake) -> None:
    kinds = {change[0] for changes in ours(admin).values() for change in changes}
    assert kinds == {"create_topic", "create_partitions", "reassign_partition", "auto_create"}


def test_a_created_topic_has_its_id_by_name(admin: CapturedLake) -> None:
    t = TOPIC_CHANGES
    made = {row[t.topic]: row[t.topic_id] for row in admin.rows(t) if row[t.kind] == "auto_create"}
    logged = {
        topic["name"]: topic["topicId"]
        for line in admin.logged.values()
        if line.api_key == METADATA
        for topic in line.response["topics"]
        if topic["errorCode"] == 0 and "topicId" in topic
    }
    assert made
    assert made == {name: logged[name] for name in made}
