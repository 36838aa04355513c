"""Brokers and topics in rows are called by the names that only the whole capture set tells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from schemas.tables.silver_topics import CLUSTER_METADATA
from schemas.tables.table import Table

BROKER, TOPIC, TOPIC_ID = "broker", "topic", "topic_id"


@dataclass(frozen=True)
class Names:
    """topic_of: name by topic id; id_of: id by topic name, where that had one id only; broker_of: node id by server."""

    topic_of: Mapping[str, str] = field(default_factory=dict)
    id_of: Mapping[str, str] = field(default_factory=dict)
    broker_of: Mapping[str, str] = field(default_factory=dict)


def with_names(rows: pa.RecordBatch, table: Table, names: Names) -> pa.RecordBatch:
    """The table's rows with brokers and topics called by name where it is known; a topic without one by its id."""
    named: dict[str, pa.Array[Any]] = {}
    if BROKER in table.columns:
        named[BROKER] = _first(looked_up(rows[BROKER], names.broker_of), rows[BROKER])
    if table is not CLUSTER_METADATA and TOPIC_ID in table.columns:
        topic, topic_id = rows[TOPIC], rows[TOPIC_ID]
        named[TOPIC_ID] = _first(topic_id, looked_up(topic, names.id_of))
        named[TOPIC] = _first(topic, looked_up(topic_id, names.topic_of), named[TOPIC_ID])
    columns = [named.get(name, column) for name, column in zip(rows.schema.names, rows.columns, strict=True)]
    return pa.RecordBatch.from_arrays(columns, names=rows.schema.names)


def looked_up(keys: pa.Array[Any], texts: Mapping[str, str]) -> pa.Array[Any]:
    """The text for each key, string[n], null where there is none."""
    known = pc.index_in(keys, value_set=pa.array(texts, pa.string()))
    return pa.array(texts.values(), pa.string()).take(known)


def _first(*columns: pa.Array[Any]) -> pa.Array[Any]:
    """Of each row the first value that is not null."""
    found: pa.Array[Any] = pc.coalesce(*columns)
    return found
