"""What lanes of KIP-578 (a proposal) come to, as rows of the gold tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from schemas.tables.gold_limits import PARTITION_LIMIT_CURVE, PARTITION_LIMIT_REFUSALS, PARTITION_LIMITS
from schemas.tables.steps import TOPIC_EVENTS
from schemas.tables.table import Table
from udfs.columns.arrays import Bools, Ints
from udfs.columns.arrow_columns import array_of, repeated
from udfs.columns.arrow_columns import compute as pc
from udfs.facts.arrow_tables import rows_of
from udfs.replay.partition_limits.curve import Steps
from udfs.replay.partition_limits.events import numbers
from udfs.replay.partition_limits.first_refusal import NONE_FAILS
from udfs.replay.partition_limits.history.changes import History
from udfs.replay.partition_limits.state import (
    MAX_BROKER_PARTITIONS,
    MAX_PARTITIONS,
    MUTATION_QUOTA,
    NOT_TRIED,
    REFUSED_BEFORE,
    REQUEST_PARTITIONS,
    REQUEST_RECORDS,
    Outcomes,
)
from udfs.replay.partition_limits.told_changes import NO_ANSWER

LIMIT_NAMES = {
    MAX_BROKER_PARTITIONS: "max.broker.partitions", MAX_PARTITIONS: "max.partitions",
    REQUEST_PARTITIONS: "partitions per request", REQUEST_RECORDS: "records per request",
    MUTATION_QUOTA: "controller_mutation_rate", REFUSED_BEFORE: "refused_before",
}  # fmt: skip
KAFKAS_OWN = (REQUEST_PARTITIONS, REQUEST_RECORDS, MUTATION_QUOTA)
MESSAGES = {
    MAX_BROKER_PARTITIONS: "Cannot satisfy request without exceeding the limit max.broker.partitions (KIP-578, a "
    "proposal)",
    MAX_PARTITIONS: "Cannot satisfy request without exceeding the limit max.partitions (KIP-578, a proposal)",
    REQUEST_PARTITIONS: "Excessively large number of partitions per request",
    REQUEST_RECORDS: "Unable to perform excessively large batch operation",
    MUTATION_QUOTA: "The controller mutation quota is used up",
    REFUSED_BEFORE: "The topic does not exist because its creation was refused",
}


def asked_rows(history: History, changes: Ints) -> pa.Table:
    """The rows of TOPIC_EVENTS that these changes are of."""
    return history.asked.take(array_of(history.row[changes]))


def column(rows: pa.Table, name: str) -> pa.Array[Any]:
    """A column of a table in one piece."""
    found: Any = rows[name].combine_chunks()
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def topic_prefixes(topics: pa.Array[Any]) -> pa.Array[Any]:
    """The names up to the first of . - _ behind their first letter."""
    return pc.replace_substring_regex(topics, "^(.[^-._]*)[-._].*$", "\\1")


def summed_rows(history: History, outcomes: Outcomes, lane: str, run_id: str) -> tuple[Table, pa.RecordBatch]:
    """Rows of `partition_limits` of one lane."""
    t, e = PARTITION_LIMITS, TOPIC_EVENTS
    asked = np.flatnonzero((history.row >= 0) & ((outcomes.reason != NOT_TRIED) | (outcomes.absent == 1)))
    rows, reason, error = asked_rows(history, asked), outcomes.reason[asked], outcomes.error[asked]
    tried = reason != NOT_TRIED
    by: dict[str, Bools | Ints] = {
        t.refused_by_broker_limit: reason == MAX_BROKER_PARTITIONS,
        t.refused_by_cluster_limit: reason == MAX_PARTITIONS,
        t.refused_by_kafka: np.isin(reason, KAFKAS_OWN), t.refused_before: reason == REFUSED_BEFORE,
    }  # fmt: skip
    limited = np.any([*by.values()], axis=0)
    sums: dict[str, Bools | Ints] = {
        t.tried: tried, t.done: tried & (error == 0), **by, t.otherwise_failed: (error != 0) & ~limited,
        t.replicas_asked: outcomes.asked[asked], t.replicas_refused: np.where(limited, outcomes.asked[asked], 0),
        **consequences(rows, outcomes.absent[asked]),
    }  # fmt: skip
    keys = {t.kind: column(rows, e.kind), t.topic_prefix: topic_prefixes(column(rows, e.topic)),
            t.client_id: column(rows, e.client_id), t.principal: principals(rows)}  # fmt: skip
    names = [str(name) for name in (*keys, *sums)]
    values = [*keys.values(), *(array_of(np.asarray(value, np.int64)) for value in sums.values())]
    table = pa.Table.from_arrays(values, names=names)
    grouped = table.group_by(names[: len(keys)]).aggregate([(name, "sum") for name in names[len(keys) :]])
    n = grouped.num_rows
    columns = {name: column(grouped, name) for name in keys} | {name: column(grouped, f"{name}_sum") for name in sums}
    return t, rows_of(t, {t.run_id: repeated(run_id, n), t.scenario: repeated(lane, n), **columns})


def principals(rows: pa.Table) -> pa.Array[Any]:
    """Who asked for changes, empty where no log tells."""
    return pc.fill_null(column(rows, TOPIC_EVENTS.principal), "")


def consequences(rows: pa.Table, absent: Ints) -> dict[str, Ints]:
    """Requests that fail since a topic is absent after a change, of rows of TOPIC_EVENTS; absent: int64[rows], 0 or 1.

    Which requests come between two changes of a topic is the same in every lane.
    """
    t, e = PARTITION_LIMITS, TOPIC_EVENTS
    return {
        t.produces_failed: numbers(rows[e.produce_requests], 0) * absent,
        t.fetches_failed: numbers(rows[e.fetch_requests], 0) * absent,
        t.metadata_failed: numbers(rows[e.metadata_requests], 0) * absent,
    }


def refusal_rows(history: History, outcomes: Outcomes, lane: str, run_id: str) -> tuple[Table, pa.RecordBatch]:
    """Rows of `partition_limit_refusals` of one lane."""
    t, e = PARTITION_LIMIT_REFUSALS, TOPIC_EVENTS
    refused = np.flatnonzero(np.isin(outcomes.reason, list(LIMIT_NAMES)) & (history.row >= 0))
    rows, n, reason = asked_rows(history, refused), len(refused), outcomes.reason[refused]
    broker, captured = outcomes.broker[refused], history.captured[refused]
    node = history.brokers.node_id[broker] if len(history.brokers.node_id) else broker
    same_names = (t.connection_id, t.exchange_no, t.position, t.kind, t.topic)
    same: dict[str, pa.Array[Any]] = {name: column(rows, name) for name in same_names}
    return t, rows_of(
        t,
        {
            t.run_id: repeated(run_id, n),
            t.scenario: repeated(lane, n),
            t.request_time: column(rows, e.time),
            **same,
            t.client_id: column(rows, e.client_id),
            t.principal: principals(rows),
            **consequences(rows, outcomes.absent[refused]),
            t.error_code: outcomes.error[refused],
            t.refused_by: named(LIMIT_NAMES, reason),
            t.limit_value: outcomes.limit[refused],
            t.present: outcomes.present[refused],
            t.asked: outcomes.asked[refused],
            t.broker: array_of(node, broker >= 0),
            t.message: messages(outcomes, refused, node),
            t.captured_error_code: array_of(captured, captured != NO_ANSWER),
        },
    )


def named(names: dict[int, str], numbers: Ints) -> pa.Array[Any]:
    """The name of each number."""
    known = np.arange(min(names), max(names) + 1)
    return pa.array([names[number] for number in known.tolist()]).take(array_of(numbers - known[0]))


def messages(outcomes: Outcomes, refused: Ints, node: Ints) -> pa.Array[Any]:
    """What each refusal says: the limit, what is there and what was asked for, as KIP-578 wants it."""
    reason = outcomes.reason[refused]
    no_broker = pc.if_else(pa.array(reason == MAX_BROKER_PARTITIONS), " on all brokers", "")
    one_broker = joined([" on broker ", pa.array(node).cast(pa.string())])
    where = pc.if_else(pa.array(outcomes.broker[refused] >= 0), one_broker, no_broker)
    counts = [
        pa.array(values[refused]).cast(pa.string()) for values in (outcomes.limit, outcomes.present, outcomes.asked)
    ]
    tail = joined([": limit ", counts[0], ", present ", counts[1], ", asked ", counts[2], where])
    is_limit = pa.array(reason != REFUSED_BEFORE)
    return joined([named(MESSAGES, reason), pc.if_else(is_limit, tail, "")])


def joined(parts: list[Any]) -> pa.Array[Any]:
    """Texts joined row by row."""
    return pc.binary_join_element_wise(*parts, "")


def curve_rows(history: History, reason: int, steps: Steps, run_id: str) -> tuple[Table, pa.RecordBatch]:
    """Rows of `partition_limit_curve` of one limit."""
    t, e, n = PARTITION_LIMIT_CURVE, TOPIC_EVENTS, len(steps.change)
    fails = steps.change != NONE_FAILS
    row = np.where(fails, history.row[steps.change], 0) if len(history.row) else steps.change
    rows = history.asked.take(array_of(row)) if history.asked.num_rows else history.asked
    last = np.append(steps.limit_from[1:] - 1, 0)

    def of_change(name: str) -> pa.Array[Any]:
        if rows.num_rows == 0:
            return pa.nulls(n, rows[name].type)
        return pc.if_else(array_of(fails), column(rows, name), None)

    same_names = (t.connection_id, t.exchange_no, t.position, t.kind, t.topic)
    same: dict[str, pa.Array[Any]] = {name: of_change(name) for name in same_names}
    return t, rows_of(
        t,
        {
            t.run_id: repeated(run_id, n),
            t.refused_by: repeated(LIMIT_NAMES[reason], n),
            t.limit_from: steps.limit_from,
            t.limit_to: array_of(last, np.arange(n) < n - 1),
            t.request_time: of_change(e.time),
            **same,
            t.present: array_of(steps.present, fails),
            t.asked: array_of(steps.asked, fails),
        },
    )
