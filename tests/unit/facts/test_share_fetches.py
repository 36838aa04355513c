"""ShareFetch and ShareAcknowledge messages as rows of `share_fetches` and `share_partitions`."""

from __future__ import annotations

from typing import Any

import pytest

from schemas.wire.declared import SHARE_ACKNOWLEDGE, SHARE_FETCH, Declared
from schemas.wire.errors import SHARE_SESSION_LIMIT_REACHED
from tests.unit.capture.conversations import asks, frame
from tests.unit.facts.brokers import TOPIC_ID, answered, asked, tables, turns

TOPIC = "AAECAwQFBgcICQoLDA0ODw"
OTHER_ID, OTHER = bytes([0, 1]) + bytes(14), "AAEAAAAAAAAAAAAAAAAAAA"
Rows = list[dict[str, Any]]


def rows_of(
    declared: Declared, version: int, request: dict[str, Any], response: dict[str, Any] | None, rows: int = 50_000
) -> dict[str, Rows]:
    answer = b"" if response is None else answered(declared.response, version, 1, **response)
    found = tables(*turns(asked(declared.request, version, 1, **request), answer), rows=rows)
    found["share_partitions"].sort(key=lambda row: (row["entry"], row["position"]))
    return found


def values(rows: Rows, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row[column] for column in columns) for row in rows]


FETCH: dict[str, Any] = {
    "group_id": b"g", "member_id": b"m", "share_session_epoch": 3, "max_wait_ms": 500, "min_bytes": 1,
    "max_bytes": 5000, "max_records": 50, "batch_size": 20, "share_acquire_mode": 1,
    "topics": [
        {"topic_id": TOPIC_ID, "partitions": [
            {"partition_index": 4, "acknowledgement_batches": [
                {"first_offset": 10, "last_offset": 19, "acknowledge_types": [1]},
                {"first_offset": 25, "last_offset": 25, "acknowledge_types": [2]},
            ]},
            {"partition_index": 5, "acknowledgement_batches": []},
        ]},
        {"topic_id": OTHER_ID, "partitions": [{"partition_index": 0, "acknowledgement_batches": []}]},
    ],
    "forgotten_topics_data": [{"topic_id": OTHER_ID, "partitions": [7, 8]}],
}  # fmt: skip
ANSWER: dict[str, Any] = {
    "throttle_time_ms": 3, "acquisition_lock_timeout_ms": 30_000,
    "responses": [
        {"topic_id": TOPIC_ID, "partitions": [
            {"partition_index": 4, "records": bytes(70), "acknowledge_error_code": 121, "acquired_records": [
                {"first_offset": 30, "last_offset": 49, "delivery_count": 1},
                {"first_offset": 20, "last_offset": 21, "delivery_count": 2},
            ]},
            {"partition_index": 5, "records": b"", "error_code": 6, "acquired_records": []},
        ]},
        {"topic_id": OTHER_ID, "partitions": [{"partition_index": 0, "records": bytes(9), "acquired_records": [
            {"first_offset": 0, "last_offset": 0, "delivery_count": 5}]}]},
    ],
}  # fmt: skip


@pytest.mark.parametrize("rows", [1, 7, 10_000])
def test_a_share_fetch_has_columns_of_its_request_and_of_its_response(rows: int) -> None:
    [row] = rows_of(SHARE_FETCH, 2, FETCH, ANSWER, rows)["share_fetches"]
    asked_for = {
        "kind": "fetch", "api_version": 2, "group_id": "g", "member_id": "m", "share_session_epoch": 3,
        "is_renew_ack": False, "max_wait_ms": 500, "min_bytes": 1, "max_bytes": 5000, "max_records": 50,
        "batch_size": 20, "share_acquire_mode": 1, "named_partitions": 3, "forgotten_partitions": 2,
        "acknowledged_records": 11,
    }  # fmt: skip
    got = {
        "returned_partitions": 3, "returned_bytes": 79, "acquired_ranges": 3, "acquired_records": 23,
        "redelivered_records": 3, "failed_partitions": 2, "error_code": 0, "acquisition_lock_timeout_ms": 30_000,
        "throttle_time_ms": 3,
    }  # fmt: skip
    assert {name: row[name] for name in asked_for | got} == asked_for | got


def test_a_share_fetch_has_a_row_for_each_partition_that_it_names_forgets_or_gets() -> None:
    found = rows_of(SHARE_FETCH, 2, FETCH, ANSWER)["share_partitions"]
    whats = ("entry", "position", "topic_id", "partition", "first_offsets", "last_offsets", "delivery_counts")
    assert values(found, *whats, "returned_bytes", "error_code", "acknowledge_error_code") == [
        ("forgotten", 0, OTHER, 7, None, None, None, None, None, None),
        ("forgotten", 1, OTHER, 8, None, None, None, None, None, None),
        ("named", 0, TOPIC, 4, [10, 25], [19, 25], None, None, None, None),
        ("named", 1, TOPIC, 5, None, None, None, None, None, None),
        ("named", 2, OTHER, 0, None, None, None, None, None, None),
        ("returned", 0, TOPIC, 4, [30, 20], [49, 21], [1, 2], 70, 0, 121),
        ("returned", 1, TOPIC, 5, None, None, None, 0, 6, 0),
        ("returned", 2, OTHER, 0, [0], [0], [5], 9, 0, 0),
    ]
    assert {(row["group_id"], row["member_id"]) for row in found} == {("g", "m")}


def test_a_share_fetch_has_no_row_in_fetch_partitions() -> None:
    found = rows_of(SHARE_FETCH, 2, FETCH, ANSWER)
    assert (found["fetch_partitions"], found["record_batches"]) == ([], [])


def test_columns_that_a_version_lacks_are_null() -> None:
    old = {name: value for name, value in FETCH.items() if name not in ("topics", "forgotten_topics_data")}
    answer = {**ANSWER, "responses": []}
    [row] = rows_of(SHARE_FETCH, 0, old, answer)["share_fetches"]
    lacking = ("max_records", "batch_size", "share_acquire_mode", "acquisition_lock_timeout_ms")
    assert [row[name] for name in lacking] == [None] * len(lacking)
    [row] = rows_of(SHARE_FETCH, 1, old, answer)["share_fetches"]
    assert [row[name] for name in lacking] == [50, 20, None, 30_000]


def test_an_acknowledgement_asks_for_no_records() -> None:
    request = {"group_id": b"g", "member_id": b"m", "share_session_epoch": -1, "topics": [
        {"topic_id": TOPIC_ID, "partitions": [{"partition_index": 4, "acknowledgement_batches": [
            {"first_offset": 3, "last_offset": 5, "acknowledge_types": [1, 0, 2]}]}]}]}  # fmt: skip
    response = {"responses": [{"topic_id": TOPIC_ID, "partitions": [{"partition_index": 4, "error_code": 121}]}]}
    found = rows_of(SHARE_ACKNOWLEDGE, 2, request, response)
    whats = ("kind", "share_session_epoch", "named_partitions", "forgotten_partitions", "acknowledged_records")
    assert values(found["share_fetches"], *whats) == [("acknowledge", -1, 1, 0, 3)]
    of_fetches = ("max_wait_ms", "max_bytes", "max_records", "returned_bytes")
    [row] = found["share_fetches"]
    assert [row[name] for name in (*of_fetches, "returned_partitions", "failed_partitions")] == [*[None] * 4, 1, 1]
    assert values(found["share_partitions"], "entry", "partition", "first_offsets", "last_offsets", "error_code") == [
        ("named", 4, [3], [5], None),
        ("returned", 4, None, None, 121),
    ]


def test_a_refused_session_has_its_error_and_nothing_else() -> None:
    [row] = rows_of(SHARE_FETCH, 2, FETCH | {"share_session_epoch": 0}, {"error_code": SHARE_SESSION_LIMIT_REACHED})[
        "share_fetches"
    ]
    whats = ("error_code", "returned_partitions", "returned_bytes", "acquired_records", "failed_partitions")
    assert [row[name] for name in whats] == [SHARE_SESSION_LIMIT_REACHED, 0, 0, 0, 0]


def test_without_a_response_its_columns_are_null() -> None:
    found = rows_of(SHARE_FETCH, 2, FETCH, None)
    [row] = found["share_fetches"]
    whats = ("response_time", "returned_bytes", "acquired_records", "failed_partitions", "error_code")
    assert [row[name] for name in whats] == [None] * len(whats)
    assert {row["entry"] for row in found["share_partitions"]} == {"named", "forgotten"}


def test_a_request_that_cannot_be_decoded_has_no_row_and_its_fault_in_exchanges() -> None:
    request = asked(SHARE_FETCH.request, 2, 1, **FETCH)
    found = tables(asks(frame(request[4:-3])))
    assert (found["share_fetches"], found["share_partitions"]) == ([], [])
    assert [row["decode_fault"] for row in found["exchanges"]] == ["bad_count"]


def test_a_range_that_ends_before_it_begins_has_no_records() -> None:
    partition = {"partition_index": 4, "acknowledgement_batches": [
        {"first_offset": 9, "last_offset": 3, "acknowledge_types": [1]}]}  # fmt: skip
    request = FETCH | {"topics": [{"topic_id": TOPIC_ID, "partitions": [partition]}]}
    [row] = rows_of(SHARE_FETCH, 2, request, None)["share_fetches"]
    assert row["acknowledged_records"] == 0
