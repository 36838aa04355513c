"""Gathers from rows what they show of the names of topics, brokers and clusters, in the workers that have the rows.

The result grows with the cluster, not with the traffic.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from schemas.tables.silver import CONNECTIONS
from schemas.tables.silver_topics import CLUSTER_METADATA, TOPIC_CHANGES
from schemas.tables.table import Table
from schemas.tables.values import CREATE_TOPIC, DELETE_TOPIC
from udfs.columns.arrow_columns import compute

SHOWN_ID, CHANGE, BROKER, SERVER, CLUSTER = "id", "change", "broker", "server", "cluster"
NAMING_TABLES = (CLUSTER_METADATA, TOPIC_CHANGES, CONNECTIONS)
_COLUMNS: list[pa.Field[Any]] = [
    pa.field("what", pa.string()),
    pa.field("server", pa.string()),
    pa.field("name", pa.string()),
    pa.field("value", pa.string()),
    pa.field("first", pa.int64()),
    pa.field("last", pa.int64()),
]
CAPTURED_NAMES = pa.schema(_COLUMNS)
"""What a server, address:port, shows; `what` says which of these a row is, and times are us since 1970.

SHOWN_ID: name: a topic; value: its id; first, last: when a response first had it and a request last asked for it
CHANGE:   name: a topic; value: CREATE_TOPIC or DELETE_TOPIC; first: when that was requested
BROKER:   name: a host; value: its port; first: the node id
CLUSTER:  name: the cluster id
SERVER:   name: the server itself, even one that shows nothing else
"""
WAITING_ROWS = 100_000
"""So many rows, which may repeat each other, are collected before they are made distinct."""


def captured_names(rows: Iterable[tuple[Table, pa.RecordBatch]]) -> pa.Table:
    """Distinct rows of CAPTURED_NAMES, from rows of NAMING_TABLES."""
    names, waiting = CAPTURED_NAMES.empty_table(), list[pa.Table]()
    for table, batch in rows:
        waiting += _names_in(table, pa.Table.from_batches([batch]))
        if sum(part.num_rows for part in waiting) >= WAITING_ROWS:
            names, waiting = distinct(pa.concat_tables([names, *waiting])), []
    return distinct(pa.concat_tables([names, *waiting]))


def _names_in(table: Table, rows: pa.Table) -> list[pa.Table]:
    if table == CONNECTIONS:
        return [_rows(SERVER, rows[CONNECTIONS.server], rows[CONNECTIONS.server])]
    if table == TOPIC_CHANGES:
        return _names_in_changes(rows)
    m = CLUSTER_METADATA
    server = rows[m.broker]
    requested, answered = (_us(rows[column]) for column in (m.request_time, m.response_time))
    return [
        _rows(CLUSTER, server, rows[m.cluster_id]),
        _rows(BROKER, server, rows[m.host], rows[m.port].cast(pa.string()), rows[m.node_id].cast(pa.int64())),
        _rows(SHOWN_ID, server, rows[m.topic], rows[m.topic_id], answered, requested),
    ]


def _names_in_changes(rows: pa.Table) -> list[pa.Table]:
    t = TOPIC_CHANGES
    is_checked_only = compute.fill_null(rows[t.validate_only], False)
    done = rows.filter(compute.and_not(compute.equal(rows[t.error_code], 0), is_checked_only))
    requested = _us(done[t.request_time])
    made = done.filter(compute.is_in(done[t.kind], value_set=pa.array([CREATE_TOPIC, DELETE_TOPIC])))
    changes = _rows(CHANGE, made[t.broker], made[t.topic], made[t.kind], _us(made[t.request_time]))
    return [_rows(SHOWN_ID, done[t.broker], done[t.topic], done[t.topic_id], requested, requested), changes]


def _us(times: Any) -> Any:
    return times.cast(pa.int64())


def _rows(what: str, server: Any, name: Any, value: Any = None, first: Any = None, last: Any = None) -> pa.Table:
    """Rows of CAPTURED_NAMES; a value that is not given is empty, times that are not given are null."""
    n = len(name)
    columns = [
        pa.repeat(what, n),
        server,
        name,
        pa.repeat("", n) if value is None else value,
        pa.nulls(n, pa.int64()) if first is None else first,
        pa.nulls(n, pa.int64()) if last is None else last,
    ]
    return pa.table(columns, schema=CAPTURED_NAMES)


def distinct(rows: pa.Table) -> pa.Table:
    """The distinct rows that have a name and a value; rows of one id become one, with the id's first and last time."""
    whole = rows.filter(compute.and_(compute.is_valid(rows["name"]), compute.is_valid(rows["value"])))
    is_id = compute.equal(whole["what"], SHOWN_ID)
    groups = whole.filter(is_id).group_by(["what", "server", "name", "value"], use_threads=False)
    ids = groups.aggregate([("first", "min"), ("last", "max")]).rename_columns(CAPTURED_NAMES.names)
    others = whole.filter(compute.invert(is_id)).group_by(CAPTURED_NAMES.names, use_threads=False).aggregate([])
    return pa.concat_tables([ids, others.select(CAPTURED_NAMES.names)]).cast(CAPTURED_NAMES)
