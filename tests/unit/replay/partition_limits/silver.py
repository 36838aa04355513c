"""Rows of silver tables as the events that partition limits are replayed from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

import pyarrow as pa

from schemas.tables.silver import EXCHANGES, FETCH_PARTITIONS, RECORD_BATCHES
from schemas.tables.silver_topics import CLUSTER_METADATA, TOPIC_CHANGES
from schemas.tables.table import Table
from tests.gate_rows import Row
from tests.silver_rows import ALL_ROWS, in_turn, silver_rows, small_rows
from udfs.replay.partition_limits import silver_events as of

Silver = Mapping[Table, Sequence[Row]]
"""Rows by table. A table that is left out has no rows."""


def cluster_rows(silver: Silver, batch_rows: int = ALL_ROWS) -> list[pa.RecordBatch]:
    """The rows that the task that replays the cluster gets if each batch is read by a task of its own."""
    changed = of.changed_topics(small_rows(TOPIC_CHANGES, of.CHANGE_COLUMNS, silver.get(TOPIC_CHANGES, ())))

    def made(table: Table, columns: Sequence[str], events: Any) -> list[pa.RecordBatch]:
        batches = silver_rows(table, columns, silver.get(table, ()), batch_rows)
        return list(chain.from_iterable(events([batch]) for batch in batches))

    uses = [
        *made(RECORD_BATCHES, of.PRODUCE_COLUMNS, partial(of.produce_uses, changed=changed)),
        *made(FETCH_PARTITIONS, of.FETCH_COLUMNS, partial(of.fetch_uses, changed=changed)),
        *made(CLUSTER_METADATA, of.NAMING_COLUMNS, partial(of.metadata_uses, changed=changed)),
    ]
    in_order = in_turn(uses, of.CHANGED_TOPICS)
    cut = [batch.slice(first, batch_rows) for batch in in_order for first in range(0, batch.num_rows, batch_rows)]
    events = [
        *made(CLUSTER_METADATA, of.METADATA_COLUMNS, of.metadata_events),
        *made(TOPIC_CHANGES, of.CHANGE_COLUMNS, of.change_events),
        *made(EXCHANGES, of.REQUEST_COLUMNS, partial(of.request_events, changed=changed)),
        *of.used_changes(cut, changed),
    ]
    return in_turn(events, of.CLUSTER)
