"""Collects what rows show about the names of topics, brokers and clusters, in the workers that have the rows.

The result grows with the cluster, not with the traffic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa

from schemas.tables.silver import CONNECTIONS, EXCHANGES
from schemas.tables.silver_topics import CLUSTER_METADATA, TOPIC_CHANGES
from schemas.tables.table import Table
from schemas.tables.values import CREATE_TOPIC, DELETE_TOPIC
from udfs.columns.arrow_columns import compute, us_since_1970

SHOWN_ID, CHANGE, BROKER, SERVER, CLUSTER = "id", "change", "broker", "server", "cluster"
FOLLOWER, CONTROLLER, VENDOR = "follower", "controller", "vendor"
LEADER, LED, READ, PRODUCED, PLACED = "leader", "led", "read", "produced", "placed"
SPANS = (SHOWN_ID, LEADER, PRODUCED)
"""Rows of these kinds with the same name and value are joined into one, with the first and the last time."""
_M, _T, _C, _X = CLUSTER_METADATA, TOPIC_CHANGES, CONNECTIONS, EXCHANGES
NAMING_COLUMNS: Mapping[Table, tuple[str, ...]] = {
    _M: (
        _M.broker,
        _M.cluster_id,
        _M.host,
        _M.port,
        _M.node_id,
        _M.topic,
        _M.topic_id,
        _M.request_time,
        _M.response_time,
        _M.vendor,
    ),
    _T: (_T.broker, _T.topic, _T.topic_id, _T.kind, _T.error_code, _T.validate_only, _T.request_time),
    _C: (_C.server, _C.protocol),
    _X: (_X.broker, _X.client_id, _X.client_address, _X.api_key, _X.fetch_replica_id),
}
"""The columns that `captured_names` reads, by table."""
_COLUMNS: list[pa.Field[Any]] = [
    pa.field("what", pa.string()),
    pa.field("server", pa.string()),
    pa.field("name", pa.string()),
    pa.field("value", pa.string()),
    pa.field("first", pa.int64()),
    pa.field("last", pa.int64()),
]
CAPTURED_NAMES = pa.schema(_COLUMNS)
"""What a server, address:port, shows. `what` says which of these kinds a row is. Times are us since 1970.

SHOWN_ID: name: a topic; value: its id; first, last: when a response first had it and a request last asked for it
CHANGE:   name: a topic; value: CREATE_TOPIC or DELETE_TOPIC; first: when that was requested
BROKER:   name: a host; value: its port; first: the node id
CLUSTER:  name: the cluster id
SERVER:   name: the server itself, even one that shows nothing else; value: the protocol of its connections
FOLLOWER: name: the address of a client that fetches from the server as a follower; first: the follower's node id
CONTROLLER: name: the server itself, which answers requests that only KRaft controllers get
VENDOR:   name: the server itself; value: whose broker it is, if not Apache Kafka's

`leading_names` makes the following kinds. A topic is its id if the row that shows it has one, else its name.

LEADER:   name: a topic; value: PARTITION/EPOCH/LEADER; first, last: the first and the last response with it
LED:      name: a topic; value: PARTITION/EPOCH for which the server gave an answer that only a leader gives
READ:     the same for a consumer's fetch, which other replicas may answer if brokers are in racks (KIP-392)
PRODUCED: name: a topic; value: PARTITION to which the server appended; first, last: when that was requested
PLACED:   name: the server, which lists racks of brokers or sends a consumer to another replica
"""
CONTROLLER_APIS = (52, 53, 54, 59, 62, 63, 70)
"""Vote, Begin- and EndQuorumEpoch, FetchSnapshot, BrokerRegistration, BrokerHeartbeat, ControllerRegistration: APIs
that only the controllers' listener has. It is not a broker's listener, even if one process is both.
"""
FETCHER_ID = r"^broker-(?P<node>\d{1,9})-fetcher-\d+$"
"""The client id of a follower. It shows the follower's node if a request is cut before its replica id."""
WAITING_ROWS = 100_000
"""This many rows, which may repeat each other, are collected before duplicates are removed."""


Naming = Callable[[Table, pa.Table], list[pa.Table]]
"""From rows of a table to what they show: rows of CAPTURED_NAMES."""


def captured_names(rows: Iterable[tuple[Table, pa.RecordBatch]]) -> pa.Table:
    """Distinct rows of CAPTURED_NAMES, from rows with NAMING_COLUMNS."""
    return gather_names(rows, _names_in)


def gather_names(rows: Iterable[tuple[Table, pa.RecordBatch]], naming: Naming) -> pa.Table:
    """Distinct rows of CAPTURED_NAMES, which `naming` makes from each batch of a table's rows."""
    names, waiting = CAPTURED_NAMES.empty_table(), list[pa.Table]()
    for table, batch in rows:
        waiting += naming(table, pa.Table.from_batches([batch]))
        if sum(part.num_rows for part in waiting) >= WAITING_ROWS:
            names, waiting = distinct_names(pa.concat_tables([names, *waiting])), []
    return distinct_names(pa.concat_tables([names, *waiting]))


def _names_in(table: Table, rows: pa.Table) -> list[pa.Table]:
    if table == CONNECTIONS:
        protocol = compute.fill_null(rows[CONNECTIONS.protocol].cast(pa.string()), "")
        return [named_rows(SERVER, rows[CONNECTIONS.server], rows[CONNECTIONS.server], protocol)]
    if table == EXCHANGES:
        return _nodes_in_exchanges(rows)
    if table == TOPIC_CHANGES:
        return _names_in_changes(rows)
    m = CLUSTER_METADATA
    server = rows[m.broker]
    requested, answered = (us_since_1970(rows[column]) for column in (m.request_time, m.response_time))
    return [
        named_rows(CLUSTER, server, rows[m.cluster_id]),
        named_rows(BROKER, server, rows[m.host], rows[m.port].cast(pa.string()), rows[m.node_id].cast(pa.int64())),
        named_rows(SHOWN_ID, server, rows[m.topic], rows[m.topic_id], answered, requested),
        named_rows(VENDOR, server, server, rows[m.vendor]),
    ]


def _names_in_changes(rows: pa.Table) -> list[pa.Table]:
    t = TOPIC_CHANGES
    is_checked_only = compute.fill_null(rows[t.validate_only], False)
    done = rows.filter(compute.and_not(compute.equal(rows[t.error_code], 0), is_checked_only))
    requested = us_since_1970(done[t.request_time])
    made = done.filter(compute.is_in(done[t.kind], value_set=pa.array([CREATE_TOPIC, DELETE_TOPIC])))
    changes = named_rows(CHANGE, made[t.broker], made[t.topic], made[t.kind], us_since_1970(made[t.request_time]))
    return [named_rows(SHOWN_ID, done[t.broker], done[t.topic], done[t.topic_id], requested, requested), changes]


def _nodes_in_exchanges(rows: pa.Table) -> list[pa.Table]:
    """Followers, and servers that are controllers."""
    x = EXCHANGES
    by_client_id = compute.struct_field(compute.extract_regex(rows[x.client_id].cast(pa.string()), FETCHER_ID), "node")
    node = compute.coalesce(rows[x.fetch_replica_id].cast(pa.int64()), by_client_id.cast(pa.int64()))
    is_follower = compute.fill_null(compute.greater_equal(node, 0), False)
    of = rows.select([x.broker, x.client_address]).append_column("node", node).filter(is_follower)
    requests = rows.filter(compute.is_in(rows[x.api_key], value_set=pa.array(CONTROLLER_APIS, pa.int16())))
    return [
        named_rows(FOLLOWER, of[x.broker], of[x.client_address], first=of["node"]),
        named_rows(CONTROLLER, requests[x.broker], requests[x.broker]),
    ]


def named_rows(what: str, server: Any, name: Any, value: Any = None, first: Any = None, last: Any = None) -> pa.Table:
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


def distinct_names(rows: pa.Table) -> pa.Table:
    """The distinct rows that have a name and a value. Rows of the kinds SPANS with the same name and value become one,
    from the first to the last time.
    """
    whole = rows.filter(compute.and_(compute.is_valid(rows["name"]), compute.is_valid(rows["value"])))
    is_span = compute.is_in(whole["what"], value_set=pa.array(SPANS))
    groups = whole.filter(is_span).group_by(["what", "server", "name", "value"], use_threads=False)
    spans = groups.aggregate([("first", "min"), ("last", "max")]).rename_columns(CAPTURED_NAMES.names)
    others = whole.filter(compute.invert(is_span)).group_by(CAPTURED_NAMES.names, use_threads=False).aggregate([])
    return pa.concat_tables([spans, others.select(CAPTURED_NAMES.names)]).cast(CAPTURED_NAMES)
