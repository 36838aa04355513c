"""Rows of `topic_changes` from requests that create, delete, extend or move topics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from schemas.wire.declared import (
    ALTER_PARTITION_REASSIGNMENTS,
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    METADATA,
    Declared,
)
from tests.unit.facts.brokers import TOPIC_ID, answered, asked, tables, turns

Rows = list[dict[str, Any]]
Exchange = tuple[bytes, bytes]
TOPIC_ID_TEXT = "AAECAwQFBgcICQoLDA0ODw"
TOPIC_EXISTS, INVALID_PARTITIONS, UNKNOWN_TOPIC, NOT_CONTROLLER, NO_REASSIGNMENT = 36, 37, 3, 41, 85


def exchange(
    declared: Declared, version: int, request: dict[str, Any], response: dict[str, Any] | None, number: int = 1
) -> Exchange:
    answer = b"" if response is None else answered(declared.response, version, number, **response)
    return asked(declared.request, version, number, **request), answer


def changes(*exchanges: Exchange, rows: int = 50_000) -> Rows:
    found = tables(*turns(*(content for both in exchanges for content in both)), rows=rows)["topic_changes"]
    return sorted(found, key=lambda row: (row["exchange_no"], row["position"]))


def values(rows: Rows, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row[column] for column in columns) for row in rows]


CREATION = exchange(
    CREATE_TOPICS,
    7,
    {
        "topics": [
            {
                "name": b"clicks", "num_partitions": 12, "replication_factor": 3,
                "configs": [{"name": b"retention.ms", "value": b"1"}, {"name": b"cleanup.policy", "value": None}],
            },
            {"name": b"taken", "num_partitions": -1, "replication_factor": -1},
            {
                "name": b"placed", "num_partitions": -1, "replication_factor": -1,
                "assignments": [
                    {"partition_index": 1, "broker_ids": [3, 1]}, {"partition_index": 0, "broker_ids": [2]},
                ],
            },
        ],
        "validate_only": True,
    },
    {
        "topics": [
            {"name": b"taken", "error_code": TOPIC_EXISTS, "error_message": None},
            {"name": b"placed", "num_partitions": 2, "replication_factor": 2},
            {"name": b"clicks", "topic_id": TOPIC_ID, "num_partitions": 12, "replication_factor": 3},
        ]
    },
)  # fmt: skip


def test_a_creation_has_a_row_for_each_topic_from_request_and_response() -> None:
    rows = changes(CREATION)
    asked_for = values(rows, "kind", "position", "topic", "num_partitions", "replication_factor", "validate_only")
    assert asked_for == [
        ("create_topic", 0, "clicks", 12, 3, True),
        ("create_topic", 1, "taken", -1, -1, True),
        ("create_topic", 2, "placed", -1, -1, True),
    ]
    answers = values(rows, "topic_id", "error_code", "answered_num_partitions", "answered_replication_factor")
    assert answers == [(TOPIC_ID_TEXT, 0, 12, 3), (None, TOPIC_EXISTS, None, None), (None, 0, 2, 2)]
    assert {(row["client_id"], row["partition"]) for row in rows} == {("app", None)}
    assert values(rows, "configs") == [(2,), (0,), (0,)]


def creation_with(configs: Mapping[str, bytes | None]) -> Rows:
    """The rows of a request that creates three topics, the second with these configs."""
    given = [{"name": name.encode(), "value": value} for name, value in configs.items()]
    usual = {"num_partitions": 1, "replication_factor": 1}
    topics = [{"name": b"a", **usual}, {"name": b"b", "configs": given, **usual}, {"name": b"c", **usual}]
    return changes(exchange(CREATE_TOPICS, 5, {"topics": topics}, {"topics": [{"name": b"b"}]}))


@pytest.mark.parametrize(
    ("value", "told"), [(b"40000", 40000), (b"0", 0), (None, None), (b"", None), (b"4e4", None), (b"9" * 11, None)]
)
def test_a_creation_has_the_topics_max_message_bytes(value: bytes | None, told: int | None) -> None:
    rows = creation_with({"retention.ms": b"7", "max.message.bytes": value})
    assert values(rows, "topic", "max_message_bytes") == [("a", None), ("b", told), ("c", None)]


@pytest.mark.parametrize(
    ("value", "told"),
    [(b"zstd", "zstd"), (b"producer", "producer"), (b"uncompressed", "uncompressed"), (b"none", None), (None, None),
     (b"", None), (b"secret", None)],
)  # fmt: skip
def test_a_creation_has_the_topics_compression_type_if_kafka_knows_it(value: bytes | None, told: str | None) -> None:
    rows = creation_with({"max.message.bytes": b"7", "compression.type": value})
    assert values(rows, "topic", "compression_type") == [("a", None), ("b", told), ("c", None)]


@pytest.mark.parametrize(
    ("value", "told"), [(b"true", True), (b"false", False), (None, None), (b"", None), (b"secret", None)]
)
def test_a_creation_says_whether_the_topic_has_tiered_storage(value: bytes | None, told: bool | None) -> None:
    rows = creation_with({"compression.type": b"true", "remote.storage.enable": value})
    assert values(rows, "topic", "remote_storage_enable") == [("a", None), ("b", told), ("c", None)]


def test_assignments_name_partitions_and_brokers_and_are_null_if_kafka_chooses_the_brokers() -> None:
    assert values(changes(CREATION), "assignments") == [(None,), (None,), (["1:3,1", "0:2"],)]


def test_the_exchange_has_the_first_error_of_its_topics() -> None:
    (row,) = tables(*turns(*CREATION))["exchanges"]
    assert (row["error_code"], row["decode_fault"]) == (TOPIC_EXISTS, None)


def test_an_unanswered_creation_has_no_error() -> None:
    topics = [{"name": b"t", "num_partitions": 1, "replication_factor": 1}]
    rows = changes(exchange(CREATE_TOPICS, 0, {"topics": topics}, None))
    assert values(rows, "error_code", "response_time", "validate_only") == [(None, None, False)]


def test_deletions_by_name_or_id_have_both_if_the_response_does() -> None:
    by_name = exchange(
        DELETE_TOPICS, 5, {"topic_names": [b"a", b"b"]},
        {"responses": [{"name": b"b", "error_code": UNKNOWN_TOPIC}, {"name": b"a"}]},
    )  # fmt: skip
    by_id = exchange(
        DELETE_TOPICS, 6, {"topics": [{"name": None, "topic_id": TOPIC_ID}, {"name": b"c"}]},
        {"responses": [{"name": b"c"}, {"name": b"clicks", "topic_id": TOPIC_ID}]},
        number=2,
    )  # fmt: skip
    rows = changes(by_name, by_id)
    assert values(rows, "exchange_no", "position", "topic", "topic_id", "error_code") == [
        (0, 0, "a", None, 0),
        (0, 1, "b", None, UNKNOWN_TOPIC),
        (1, 0, "clicks", TOPIC_ID_TEXT, 0),
        (1, 1, "c", None, 0),
    ]
    assert {row["kind"] for row in rows} == {"delete_topic"}


def test_new_partitions_are_the_last_of_the_requested_ones() -> None:
    topics = [
        {"name": b"t", "count": 6, "assignments": [{"broker_ids": [1, 2]}, {"broker_ids": [2, 3]}]},
        {"name": b"u", "count": 2, "assignments": None},
    ]
    results = [{"name": b"t"}, {"name": b"u", "error_code": INVALID_PARTITIONS}]
    rows = changes(exchange(CREATE_PARTITIONS, 3, {"topics": topics}, {"results": results}))
    assert values(rows, "kind", "topic", "num_partitions", "assignments", "error_code") == [
        ("create_partitions", "t", 6, ["4:1,2", "5:2,3"], 0),
        ("create_partitions", "u", 2, None, INVALID_PARTITIONS),
    ]


def reassignment(response: dict[str, Any]) -> Exchange:
    topics = [
        {"name": b"t", "partitions": [{"partition_index": 4, "replicas": [3, 1]}]},
        {"name": b"u", "partitions": [{"partition_index": 0, "replicas": None}, {"partition_index": 1}]},
    ]
    return exchange(ALTER_PARTITION_REASSIGNMENTS, 1, {"topics": topics}, response)


def test_a_reassignment_has_a_row_for_each_partition_and_without_brokers_it_is_a_cancellation() -> None:
    partitions = [{"partition_index": 1}, {"partition_index": 0, "error_code": NO_REASSIGNMENT}]
    responses = [{"name": b"u", "partitions": partitions}, {"name": b"t", "partitions": [{"partition_index": 4}]}]
    rows = changes(reassignment({"responses": responses}))
    assert values(rows, "kind", "position", "topic", "partition", "assignments", "error_code") == [
        ("reassign_partition", 0, "t", 4, ["4:3,1"], 0),
        ("reassign_partition", 1, "u", 0, None, NO_REASSIGNMENT),
        ("reassign_partition", 2, "u", 1, None, 0),
    ]


def test_a_reassignment_refused_as_a_whole_is_refused_for_every_partition() -> None:
    some_named = [{"name": b"t", "partitions": [{"partition_index": 4}]}]
    for responses in ([], some_named):
        rows = changes(reassignment({"error_code": NOT_CONTROLLER, "responses": responses}))
        assert values(rows, "error_code") == [(NOT_CONTROLLER,)] * 3


@pytest.mark.parametrize(("version", "allowed"), [(1, {}), (4, {"allow_auto_topic_creation": True})])
def test_a_metadata_request_for_a_missing_topic_counts_as_a_request_to_create_it(
    version: int, allowed: dict[str, bool]
) -> None:
    topics = [{"name": b"there"}, {"name": b"new"}]
    answer = [{"name": b"new", "error_code": UNKNOWN_TOPIC}, {"name": b"there"}]
    rows = changes(exchange(METADATA, version, {"topics": topics, **allowed}, {"topics": answer}))
    assert values(rows, "kind", "position", "topic", "error_code") == [("auto_create", 1, "new", UNKNOWN_TOPIC)]


def test_a_topic_requested_by_id_or_without_creation_is_no_change() -> None:
    def missing(request: dict[str, Any], *, number: int, **answer: Any) -> Exchange:
        return exchange(METADATA, 12, request, {"topics": [{"error_code": UNKNOWN_TOPIC, **answer}]}, number)

    forbidden = {"topics": [{"name": b"new"}], "allow_auto_topic_creation": False}
    by_id = {"topics": [{"topic_id": TOPIC_ID, "name": None}], "allow_auto_topic_creation": True}
    everything = {"topics": None, "allow_auto_topic_creation": True}
    assert changes(
        missing(forbidden, number=1, name=b"new"),
        missing(by_id, number=2, name=None, topic_id=TOPIC_ID),
        missing(everything, number=3, name=b"gone"),
    ) == []  # fmt: skip


NAMED = exchange(
    METADATA, 4, {"topics": [{"name": b"there"}], "allow_auto_topic_creation": True}, {"topics": [{"name": b"there"}]}
)


@pytest.mark.parametrize(
    "response",
    [{"captured": 10}, {"is_lost": True}, {"payload": NAMED[1][:2]}],
    ids=["cut by the snaplen", "lost", "not sent whole"],
)
def test_a_response_that_cannot_be_read_does_not_say_that_a_topic_is_not_there(response: dict[str, Any]) -> None:
    opening, answer = turns(*NAMED)[:-1], turns(*NAMED)[-1]
    assert tables(*opening, replace(answer, **response))["topic_changes"] == []


@pytest.mark.parametrize("rows", [1, 7])
def test_the_rows_do_not_depend_on_the_batches(rows: int) -> None:
    moved = reassignment({"error_code": NOT_CONTROLLER})
    again = exchange(DELETE_TOPICS, 4, {"topic_names": [b"a"]}, {"responses": [{"name": b"a"}]}, number=1)
    assert changes(CREATION, moved, again, rows=rows) == changes(CREATION, moved, again)
