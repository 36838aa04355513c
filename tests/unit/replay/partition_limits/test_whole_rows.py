"""Every column of the rows about changes that limits refuse, for one small cluster."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from schemas.tables.gold_limits import (
    PARTITION_LIMIT_CURVE,
    PARTITION_LIMIT_HEADROOM,
    PARTITION_LIMIT_REFUSALS,
    PARTITION_LIMITS,
)
from schemas.tables.table import Table
from tests.unit.replay.partition_limits.clusters import (
    BROKER_LIMIT,
    CLUSTER_LIMIT,
    PROPOSAL,
    Rows,
    created,
    grown,
    replay,
    shown,
)

DAY, BEGIN = 86_400_000_000, datetime(1970, 1, 1, tzinfo=UTC)
ROWS: Rows = [
    *shown("old", [[1], [2]], 0),
    created(1, "a", 3, principal="User:ann"),
    created(DAY, "b", 2, 2, error=None, produce_requests=5, fetch_requests=2, metadata_requests=3, client_id="d",
            connection_id=4),
    grown(2 * DAY, "a", 6),
    created(3 * DAY, "c", 1),
]  # fmt: skip
"""Two replicas are there, and 3, 4, 3 and 1 are asked for. The response to the second request was not captured."""


@pytest.fixture
def found() -> dict[Table, Rows]:
    """The rows of each table, with a limit of six replicas in all, and of two on each broker."""
    return replay(ROWS, {"six": {CLUSTER_LIMIT: 6, **PROPOSAL}, "two": {BROKER_LIMIT: 2, **PROPOSAL}})


KEY = {"run_id": "run", "position": 0}


def day(number: int) -> datetime:
    return BEGIN + timedelta(days=number)


def test_a_refusal_says_who_asked_for_what_and_what_was_there(found: dict[Table, Rows]) -> None:
    text = "Cannot satisfy request without exceeding the limit max.partitions (KIP-578, a proposal): limit 6, present 5"
    of_limit = {"error_code": 44, "refused_by": "max.partitions", "limit_value": 6, "present": 5, "broker": None}
    same: dict[str, Any] = KEY | {"scenario": "six", "principal": ""} | of_limit
    assert [row for row in found[PARTITION_LIMIT_REFUSALS] if row["scenario"] == "six"] == [
        same | {"request_time": day(1), "connection_id": 4, "exchange_no": DAY, "kind": "create_topic", "topic": "b",
                "client_id": "d", "asked": 4, "message": f"{text}, asked 4", "produces_failed": 5, "fetches_failed": 2,
                "metadata_failed": 3, "captured_error_code": None},
        same | {"request_time": day(2), "connection_id": 1, "exchange_no": 2 * DAY, "kind": "create_partitions",
                "topic": "a", "client_id": "c", "asked": 3, "message": f"{text}, asked 3", "produces_failed": 0,
                "fetches_failed": 0, "metadata_failed": 0, "captured_error_code": 0},
    ]  # fmt: skip


def test_a_refusal_for_the_replicas_of_brokers_says_that_no_broker_has_room(found: dict[Table, Rows]) -> None:
    texts = [row["message"] for row in found[PARTITION_LIMIT_REFUSALS] if row["scenario"] == "two"]
    assert [text.partition(": ")[2] for text in texts] == [
        "limit 2, present 5, asked 4 on all brokers", "limit 2, present 5, asked 3 on all brokers",
    ]  # fmt: skip


def test_changes_are_summed_by_kind_topic_and_client(found: dict[Table, Rows]) -> None:
    names = ("tried", "done", "refused_by_broker_limit", "refused_by_cluster_limit", "replicas_asked",
             "replicas_refused", "produces_failed", "fetches_failed", "metadata_failed")  # fmt: skip
    summed = {
        (row["scenario"], row["topic_prefix"], row["kind"], row["client_id"], row["principal"]): [row[n] for n in names]
        for row in found[PARTITION_LIMITS]
    }
    create, grow = "create_topic", "create_partitions"
    assert summed == {
        ("captured", "a", create, "c", "User:ann"): [1, 1, 0, 0, 3, 0, 0, 0, 0],
        ("captured", "b", create, "d", ""): [1, 1, 0, 0, 4, 0, 0, 0, 0],
        ("captured", "a", grow, "c", ""): [1, 1, 0, 0, 3, 0, 0, 0, 0],
        ("captured", "c", create, "c", ""): [1, 1, 0, 0, 1, 0, 0, 0, 0],
        ("six", "a", create, "c", "User:ann"): [1, 1, 0, 0, 3, 0, 0, 0, 0],
        ("six", "b", create, "d", ""): [1, 0, 0, 1, 4, 4, 5, 2, 3],
        ("six", "a", grow, "c", ""): [1, 0, 0, 1, 3, 3, 0, 0, 0],
        ("six", "c", create, "c", ""): [1, 1, 0, 0, 1, 0, 0, 0, 0],
        ("two", "a", create, "c", "User:ann"): [1, 1, 0, 0, 3, 0, 0, 0, 0],
        ("two", "b", create, "d", ""): [1, 0, 1, 0, 4, 4, 5, 2, 3],
        ("two", "a", grow, "c", ""): [1, 0, 1, 0, 3, 3, 0, 0, 0],
        ("two", "c", create, "c", ""): [1, 1, 0, 0, 1, 0, 0, 0, 0],
    }


def test_the_curve_says_which_change_each_limit_refuses_first(found: dict[Table, Rows]) -> None:
    rows = found[PARTITION_LIMIT_CURVE]
    names = ("limit_from", "limit_to", "request_time", "topic", "present", "asked")
    by_limit = {
        limit: [tuple(row[name] for name in names) for row in rows if row["refused_by"] == limit]
        for limit in ("max.partitions", "max.broker.partitions")
    }
    first = BEGIN + timedelta(microseconds=1)
    assert by_limit == {
        "max.partitions": [
            (1, 4, first, "a", 2, 3), (5, 8, day(1), "b", 5, 4), (9, 11, day(2), "a", 9, 3),
            (12, 12, day(3), "c", 12, 1), (13, None, None, None, None, None),
        ],
        "max.broker.partitions": [
            (1, 1, first, "a", 2, 3), (2, 3, day(1), "b", 5, 4), (4, 4, day(3), "c", 12, 1),
            (5, None, None, None, None, None),
        ],
    }  # fmt: skip
    assert [rows[1][name] for name in ("connection_id", "exchange_no", "kind")] == [4, DAY, "create_topic"]


def test_headroom_is_what_a_limit_still_allows_at_the_end(found: dict[Table, Rows]) -> None:
    names = ("scenario", "refused_by", "broker", "limit_value", "partitions", "headroom")
    assert [tuple(row[name] for name in names) for row in found[PARTITION_LIMIT_HEADROOM]] == [
        ("six", "max.partitions", None, 6, 6, 0), ("two", "max.broker.partitions", 1, 2, 2, 0),
        ("two", "max.broker.partitions", 2, 2, 2, 0), ("two", "max.broker.partitions", 3, 2, 2, 0),
    ]  # fmt: skip
