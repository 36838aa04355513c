"""What `jobs.captures.earlier_sets` reads from the tables of an earlier capture set, made from a test's own rows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from schemas.tables.silver import CONNECTIONS, EXCHANGES, FETCH_PARTITIONS
from schemas.tables.values import UNANSWERED
from udfs.facts.arrow_tables import arrow_schema
from udfs.facts.continued_connections import EARLIER_CONNECTIONS, EARLIER_PARTITIONS, EarlierSet

Rows = list[dict[str, Any]]


def earlier_set(tables: dict[str, Rows]) -> EarlierSet:
    c, x, f = CONNECTIONS, EXCHANGES, FETCH_PARTITIONS
    first: dict[tuple[str, str], dict[str, Any]] = {}
    last: dict[tuple[str, str], dict[str, Any]] = {}
    for row in sorted(tables["connections"], key=lambda row: row[c.first_time]):
        if row[c.protocol] == "kafka":
            first.setdefault((row[c.server], row[c.client]), row)
            last[row[c.server], row[c.client]] = row
    connections, partitions = [], []
    for ends, row in last.items():
        connection_id = row[c.connection_id]
        requests = [
            exchange
            for exchange in tables["exchanges"]
            if exchange[x.connection_id] == connection_id and exchange[x.exchange_no] >= 0
        ]
        if not requests:
            continue
        requests.sort(key=lambda exchange: exchange[x.exchange_no])
        rows = [
            partition
            for partition in tables["fetch_partitions"]
            if partition[f.connection_id] == connection_id
            and (partition[f.kind] == "full" or not partition[f.response_error_code])
        ]
        number = max((partition[f.exchange_no] for partition in rows), default=-1)
        under_way = [e[x.correlation_id] for e in requests if e[x.exchange_no] == number and e[x.status] == UNANSWERED]
        key = first[ends][c.connection_id]
        connections.append(
            {
                "connection_id": key,
                "client_software_name": row[c.client_software_name],
                "client_software_version": row[c.client_software_version],
                "correlation_id": requests[-1][x.correlation_id],
                "fetch_correlation_id": under_way[0] if under_way else None,
            }
        )
        partitions += with_marks([{**r, f.connection_id: key} for r in rows if r[f.exchange_no] == number], rows)
    schema = pa.schema([arrow_schema(FETCH_PARTITIONS).field(name) for name in EARLIER_PARTITIONS])
    kept = [{name: row[name] for name in EARLIER_PARTITIONS} for row in partitions]
    return EarlierSet(
        pa.Table.from_pylist(connections, schema=EARLIER_CONNECTIONS).sort_by("connection_id"),
        pa.Table.from_pylist(kept, schema=schema).sort_by("connection_id"),
    )


def with_marks(last: Rows, rows: Rows) -> Rows:
    """The rows of a fetch. If it has no response, they get the high watermarks of the last fetch that has one."""
    f = FETCH_PARTITIONS
    answered = [row for row in rows if row[f.response_record_bytes] is not None]
    number = max((row[f.exchange_no] for row in answered), default=-1)
    marks = {
        (row[f.topic], row[f.topic_id], row[f.partition]): {
            str(c): row[c] for c in (f.high_watermark, f.last_stable_offset, f.log_start_offset)
        }
        for row in answered
        if row[f.exchange_no] == number
    }
    return [
        {**row, **marks.get((row[f.topic], row[f.topic_id], row[f.partition]), {})}
        if row[f.response_record_bytes] is None
        else row
        for row in last
    ]
