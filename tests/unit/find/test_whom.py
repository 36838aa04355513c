"""An aim for some clients or topics: which rows count, and what the message says if no client or topic is meant."""

from __future__ import annotations

import pyarrow as pa

from jobs.find.lane_outcomes import KIND, NAME, rows_that_count, sums_of_outcome
from jobs.find.whom import nobody_of
from jobs.scenarios.scenario_file import resolve_scenario
from schemas.tables.gold_splits import BATCH_SPLIT
from schemas.tables.outcomes import outcomes_of
from schemas.tables.values import OF_CLIENT, OF_CLUSTER, OF_TOPIC

B = BATCH_SPLIT
ROWS = pa.RecordBatch.from_pylist([
    {B.scenario: "captured", B.client_id: client, B.topic: topic, B.bytes_sent: sent}
    for client, topic, sent in [("orders-1", "a", 1), ("orders-2", "b", 10), ("billing", "a", 100), ("", "a", 1000)]
])  # fmt: skip


def sent(whom: str) -> dict[tuple[str, str], float]:
    """The outcome `sent` of the rows that count for an aim, by scope."""
    aim = resolve_scenario(None, (), (), [f"batch_split: most batch.size {whom}where sent > 0"]).aims["batch_split"]
    by = {OF_CLIENT: str(B.client_id), OF_TOPIC: str(B.topic)}
    batches = sums_of_outcome(ROWS, outcomes_of("batch_split")["sent"], rows_that_count(aim), by)
    return {(row[KIND], row[NAME]): row["value"] for batch in batches for row in batch.to_pylist()}


def test_an_aim_without_names_is_for_all() -> None:
    assert sent("")[OF_CLUSTER, ""] == 1111


def test_only_rows_of_the_named_clients_count() -> None:
    assert sent("for client=orders-* ") == {
        (OF_CLUSTER, ""): 11, (OF_CLIENT, "orders-1"): 1, (OF_CLIENT, "orders-2"): 10, (OF_TOPIC, "a"): 1,
        (OF_TOPIC, "b"): 10,
    }  # fmt: skip
    assert sent("for client=billing,orders-2 ")[OF_CLUSTER, ""] == 110


def test_if_clients_and_topics_are_named_a_row_must_match_both() -> None:
    assert sent("for client=orders-* and topic=a ")[OF_CLUSTER, ""] == 1
    assert sent("for client=orders-2 and topic=a ") == {}


def test_if_no_client_has_a_given_name_the_message_lists_the_names() -> None:
    names = [f"app-{number:02}" for number in range(22)]
    told = nobody_of(OF_CLIENT, ["ap?", "x"], names)
    assert told.startswith("--find: no client in this replay is `ap?` or `x`; there are app-00, app-01, ")
    assert told.endswith("app-19, 2 more")
    assert nobody_of(OF_TOPIC, ["x"], []).endswith("there are none with a name")
