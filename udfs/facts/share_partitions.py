"""The partitions in ShareFetch and ShareAcknowledge messages (KIP-932) as rows of `share_partitions`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.tables.silver_shares import SHARE_PARTITIONS
from schemas.tables.values import FORGOTTEN, NAMED, RETURNED
from schemas.wire.declared import SHARE_FETCH
from udfs.columns.arrays import Ints
from udfs.columns.arrow_columns import arrow_array, repeated_text_column
from udfs.columns.picking import position_among
from udfs.columns.sentinels import UNKNOWN
from udfs.facts.arrow_tables import Values, make_rows, nulls_besides
from udfs.facts.exchange_messages import frames_of_rows
from udfs.facts.share_messages import (
    ACKNOWLEDGED_PATH,
    ACQUIRED_PATH,
    FORGOTTEN_PATH,
    NAMED_PATH,
    RETURNED_PATH,
    ShareExchanges,
    record_bytes,
)
from udfs.wire.messages import DecodedFrames


def partition_rows(shares: ShareExchanges) -> Iterator[pa.RecordBatch]:
    """Rows of `share_partitions` for the messages of one API."""
    yield named_rows(shares)
    if FORGOTTEN_PATH in shares.messages.request.levels:
        yield forgotten_rows(shares)
    yield returned_rows(shares)


def named_rows(shares: ShareExchanges) -> pa.RecordBatch:
    """Rows of `share_partitions` for the partitions that requests name."""
    t, decoded = SHARE_PARTITIONS, shares.messages.request
    ranges: dict[str, Values] = {
        t.first_offsets: range_lists(decoded, ACKNOWLEDGED_PATH, "first_offset", pa.int64()),
        t.last_offsets: range_lists(decoded, ACKNOWLEDGED_PATH, "last_offset", pa.int64()),
    }
    return entry_rows(shares, NAMED, NAMED_PATH, decoded.levels[NAMED_PATH].column("partition_index"), ranges)


def forgotten_rows(shares: ShareExchanges) -> pa.RecordBatch:
    """Rows of `share_partitions` for the partitions that requests remove from the session."""
    partition = shares.messages.request.levels[FORGOTTEN_PATH].column("value")
    return entry_rows(shares, FORGOTTEN, FORGOTTEN_PATH, partition, {})


def returned_rows(shares: ShareExchanges) -> pa.RecordBatch:
    """Rows of `share_partitions` for the partitions in responses."""
    t, decoded = SHARE_PARTITIONS, shares.messages.response
    level = decoded.levels[RETURNED_PATH]
    columns: dict[str, Values] = {t.error_code: level.column("error_code")}
    if shares.declared is SHARE_FETCH:
        columns |= {
            t.returned_bytes: record_bytes(level),
            t.acknowledge_error_code: level.column("acknowledge_error_code"),
            t.first_offsets: range_lists(decoded, ACQUIRED_PATH, "first_offset", pa.int64()),
            t.last_offsets: range_lists(decoded, ACQUIRED_PATH, "last_offset", pa.int64()),
            t.delivery_counts: range_lists(decoded, ACQUIRED_PATH, "delivery_count", pa.int32()),
        }
    return entry_rows(shares, RETURNED, RETURNED_PATH, level.column("partition_index"), columns)


def entry_rows(
    shares: ShareExchanges, entry: str, path: str, partition: Ints, columns: Mapping[str, Values]
) -> pa.RecordBatch:
    """Rows of `share_partitions` of one kind, for messages without fault. Columns that are not given are null.

    path: the level of the partitions. partition: int64[rows], their numbers.
    """
    t, in_response = SHARE_PARTITIONS, entry == RETURNED
    decoded = shares.messages.response if in_response else shares.messages.request
    of = shares.messages.response_exchanges if in_response else shares.messages.request_exchanges
    message = frames_of_rows(decoded, path)
    exchange = of[message]
    kept = np.flatnonzero((decoded.fault[message] == 0) & (shares.request_of[exchange] != UNKNOWN))
    topics, level = decoded.levels[path.rpartition(".")[0]], decoded.levels[path]
    ids = shares.exchanges.names.learn_ids(shares.exchanges.frames.arena, topics)[level.parent]
    topic, topic_id = shares.exchanges.names.topic_columns(ids[kept])
    given: dict[str, Values] = {
        **shares.columns_of(exchange[kept]),
        t.entry: repeated_text_column(entry, len(kept)),
        t.position: position_among(message)[kept],
        t.topic: topic,
        t.topic_id: topic_id,
        t.partition: partition[kept],
        **{str(name): taken(values, kept) for name, values in columns.items()},
    }
    return make_rows(t, {**given, **nulls_besides(t, given, len(kept))})


def taken(values: Any, kept: Ints) -> Values:
    """Some rows of a column. kept: int64[n], which."""
    return values.take(arrow_array(kept)) if isinstance(values, pa.Array) else values[kept]


def range_lists(decoded: DecodedFrames, path: str, name: str, kind: pa.DataType) -> pa.Array[Any]:
    """A field of the ranges of each partition, as lists; null if there are none."""
    ranges, partitions = decoded.levels[path], decoded.levels[path.rpartition(".")[0]].rows
    offsets = np.searchsorted(ranges.parent, np.arange(partitions + 1))
    lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(ranges.column(name), kind))
    return lists.take(arrow_array(np.arange(partitions), np.diff(offsets) > 0))
