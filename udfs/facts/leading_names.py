"""Collects from rows which servers lead which partitions. That shows the node of a server that no broker advertises."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from schemas.tables.silver import FETCH_PARTITIONS, RECORD_BATCHES
from schemas.tables.silver_topics import CLUSTER_METADATA
from schemas.tables.table import Table
from schemas.tables.values import FOLLOWER, FROM_PRODUCE
from schemas.wire.fetch import RACKS_FROM
from udfs.columns.arrow_columns import compute, us_since_1970
from udfs.facts.captured_names import CONTROLLER, LEADER, LED, PLACED, PRODUCED, READ, gather_names, named_rows
from udfs.facts.metadata_log import is_of_metadata_log

_M, _F, _B = CLUSTER_METADATA, FETCH_PARTITIONS, RECORD_BATCHES
LEADING_COLUMNS: Mapping[Table, tuple[str, ...]] = {
    _M: (_M.broker, _M.topic, _M.topic_id, _M.partition, _M.leader_id, _M.leader_epoch, _M.rack, _M.response_time),
    _F: (
        _F.broker, _F.topic, _F.topic_id, _F.partition, _F.current_leader_epoch, _F.api_version, _F.reader,
        _F.response_position, _F.error_code, _F.preferred_read_replica,
    ),
    _B: (_B.broker, _B.topic, _B.topic_id, _B.partition, _B.source, _B.acks, _B.error_code, _B.request_time),
}  # fmt: skip
"""The columns that `leading_names` reads, by table."""


def leading_names(rows: Iterable[tuple[Table, pa.RecordBatch]]) -> pa.Table:
    """Distinct rows of CAPTURED_NAMES that say who leads partitions, from rows with LEADING_COLUMNS."""
    return gather_names(rows, _leading_in)


def _leading_in(table: Table, rows: pa.Table) -> list[pa.Table]:
    if table == FETCH_PARTITIONS:
        return [*_answered_in(rows), *_placed_in(rows)]
    return _produced_in(rows) if table == RECORD_BATCHES else _leaders_in(rows)


def _leaders_in(rows: pa.Table) -> list[pa.Table]:
    """What Metadata responses say about leaders, by name and by id of the topic, and about racks."""
    m = CLUSTER_METADATA
    racked = rows.filter(_is_true(compute.not_equal(rows[m.rack], "")))
    known = compute.and_(compute.greater_equal(rows[m.leader_id], 0), compute.greater_equal(rows[m.leader_epoch], 0))
    led = rows.filter(_is_true(known))
    value, time = _join_numbers(led, m.partition, m.leader_epoch, m.leader_id), us_since_1970(led[m.response_time])
    by_topic = [named_rows(LEADER, led[m.broker], led[topic], value, time, time) for topic in (m.topic, m.topic_id)]
    return [named_rows(PLACED, racked[m.broker], racked[m.broker]), *by_topic]


def _answered_in(rows: pa.Table) -> list[pa.Table]:
    """Partitions for which a fetch was answered without error, with the epoch in the request: the broker would have
    refused a wrong epoch.
    """
    f = FETCH_PARTITIONS
    is_answered = compute.and_(compute.is_valid(rows[f.response_position]), compute.equal(rows[f.error_code], 0))
    served = rows.filter(_is_true(compute.and_(is_answered, compute.greater_equal(rows[f.current_leader_epoch], 0))))
    is_older = compute.less(served[f.api_version], RACKS_FROM)
    by_leader = compute.or_(compute.equal(served[f.reader].cast(pa.string()), FOLLOWER), is_older)
    parts = {LED: served.filter(by_leader), READ: served.filter(compute.invert(by_leader))}
    return [
        named_rows(
            w,
            of[f.broker],
            _topic_texts(of, f.topic_id, f.topic),
            _join_numbers(of, f.partition, f.current_leader_epoch),
        )
        for w, of in parts.items()
    ]


def _placed_in(rows: pa.Table) -> list[pa.Table]:
    """Servers that send consumers to other replicas, and those that are controllers."""
    f = FETCH_PARTITIONS
    sent_away = rows.filter(_is_true(compute.greater_equal(rows[f.preferred_read_replica], 0)))
    topic = _topic_texts(rows, f.topic_id, f.topic)
    of_controller = rows.filter(is_of_metadata_log(topic))
    return [
        named_rows(w, part[f.broker], part[f.broker]) for w, part in ((PLACED, sent_away), (CONTROLLER, of_controller))
    ]


def _produced_in(rows: pa.Table) -> list[pa.Table]:
    b = RECORD_BATCHES
    answered = compute.and_(compute.equal(rows[b.error_code], 0), compute.not_equal(rows[b.acks], 0))
    of = rows.filter(_is_true(compute.and_(answered, compute.equal(rows[b.source].cast(pa.string()), FROM_PRODUCE))))
    time = us_since_1970(of[b.request_time])
    return [
        named_rows(
            PRODUCED, of[b.broker], _topic_texts(of, b.topic_id, b.topic), _join_numbers(of, b.partition), time, time
        )
    ]


def _is_true(condition: Any) -> Any:
    return compute.fill_null(condition, False)


def _topic_texts(rows: pa.Table, topic_id: str, name: str) -> Any:
    return compute.coalesce(rows[topic_id].cast(pa.string()), rows[name].cast(pa.string()))


def _join_numbers(rows: pa.Table, *columns: str) -> Any:
    """Numbers as one text, such as 3/17."""
    return compute.binary_join_element_wise(*(rows[column].cast(pa.string()) for column in columns), "/")
