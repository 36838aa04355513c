"""When a broker is done with a request whose memory it holds while it handles it (RequestChannel.Request, Kafka 4.4).

The memory is released when the handler is done. Packets do not show that; a request log does. Without a request log
there is an upper bound. A produce request with acks=all is handled when its batches are in the log, at the latest when
a fetch has returned all of them: its response comes later, when the replicas have them. Without such a fetch, the time
of the response counts. `handling` estimates how much earlier it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from schemas.tables.event_kinds import HandledBy, MemoryEvent
from schemas.tables.silver import RECORD_BATCHES
from schemas.tables.steps_memory import LOG_BATCHES, MEMORY_EVENTS
from schemas.tables.values import BROKER, FROM_FETCH, FROM_PRODUCE
from udfs.columns.arrays import Ints
from udfs.columns.arrow_columns import arrow_array, is_not_null, us_since_1970
from udfs.columns.arrow_columns import compute as pc
from udfs.columns.time_units import NEVER
from udfs.replay.consumer_memory.silver_events import kind_column
from udfs.replay.shared.columns import int_column
from udfs.replay.shared.dealt_rows import Step
from udfs.replay.shared.rows_by_key import FETCH_KEY, key_boundaries, whole_fetches
from udfs.replay.shared.silver_columns import (
    constant_text_column,
    event_rows,
    is_known,
    is_text,
    rows_where,
    same_columns,
)
from udfs.replay.shared.unit_rows import FIRST_OF_ALL

_L, _B = LOG_BATCHES, RECORD_BATCHES
PARTITIONS = Step(_L, (_L.broker, _L.topic, _L.partition), (_L.base_offset, _L.is_produced))
LOG_COLUMNS = (
    _B.connection_id, _B.exchange_no, _B.source, _B.broker, _B.topic, _B.partition, _B.base_offset, _B.acks,
    _B.request_time, _B.response_time,
)  # fmt: skip
ACKS_ALL = -1


def log_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of LOG_BATCHES from rows of RECORD_BATCHES."""
    b, t = RECORD_BATCHES, LOG_BATCHES
    for batch in batches:
        is_produced = pc.and_(is_text(batch[b.source], FROM_PRODUCE), pc.equal(batch[b.acks], ACKS_ALL))
        is_in_log = pc.and_(is_known(batch[b.base_offset]), is_known(batch[b.topic]))
        is_fetched = pc.and_(is_text(batch[b.source], FROM_FETCH), pc.and_(is_in_log, is_known(batch[b.response_time])))
        is_produced = pc.and_(pc.fill_null(is_produced, False), is_known(batch[b.request_time]))
        columns = {
            **same_columns((t.broker, t.topic, t.partition, t.base_offset, t.connection_id, t.exchange_no), batch),
            t.is_produced: is_produced,
            t.request_time: us_since_1970(batch[b.request_time]),
            t.response_time: us_since_1970(batch[b.response_time]),
        }
        yield rows_where(event_rows(columns), pc.or_(is_produced, is_fetched))


def first_fetches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of MEMORY_EVENTS of the kind FETCHED, from sorted rows of LOG_BATCHES: one for each batch of a produce
    request, with the time at which a fetch first returned it, null if none did.
    """
    t, e = LOG_BATCHES, MEMORY_EVENTS
    last: tuple[object, ...] = ()
    last_fetched = NEVER
    for batch in batches:
        if not batch.num_rows:
            continue
        begins = key_boundaries(batch, (*PARTITIONS.unit, t.base_offset))
        is_produced = int_column(batch, t.is_produced, 0) == 1
        fetched = np.where(is_produced, NEVER, int_column(batch, t.response_time, NEVER))
        first_fetch = np.minimum.reduceat(fetched, begins[:-1])
        if offset_of(batch, 0) == last:
            first_fetch[0] = min(int(first_fetch[0]), last_fetched)
        last, last_fetched = offset_of(batch, batch.num_rows - 1), int(first_fetch[-1])
        of_row = np.repeat(first_fetch, np.diff(begins))[is_produced]
        rows = batch.filter(pa.array(is_produced))
        yield event_rows(
            {
                e.side: constant_text_column(BROKER, rows),
                e.unit: rows[t.broker],
                e.unit_address: constant_text_column("", rows),
                **same_columns((e.connection_id, e.exchange_no), rows),
                e.time: rows[t.request_time],
                e.kind: kind_column(MemoryEvent.FETCHED, rows),
                e.released: arrow_array(of_row, of_row != NEVER),
            }
        )


def offset_of(batch: pa.RecordBatch, row: int) -> tuple[object, ...]:
    """The partition and offset of a row."""
    return tuple(batch[column][row].as_py() for column in (*PARTITIONS.unit, LOG_BATCHES.base_offset))


def with_releases(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of MEMORY_EVENTS in order, without those of the kind FETCHED, whose times go into the rows of requests."""
    for batch in whole_fetches(batches):
        kinds = int_column(batch, MEMORY_EVENTS.kind, 0)
        yield batch if (kinds != MemoryEvent.FETCHED).all() else released_earlier(batch, kinds)


def released_earlier(batch: pa.RecordBatch, kinds: Ints) -> pa.RecordBatch:
    """Whole exchanges. A request counts as handled when fetches had returned all of its batches, unless it was handled
    before.

    kinds: int64[rows], the kind of event of each row of the batch.
    """
    t = MEMORY_EVENTS
    begins = key_boundaries(batch, FETCH_KEY)
    is_fetched = kinds == MemoryEvent.FETCHED
    when_fetched = np.where(is_fetched, int_column(batch, t.released, NEVER), FIRST_OF_ALL)
    of_row = np.repeat(np.maximum.reduceat(when_fetched, begins[:-1]), np.diff(begins))
    released = int_column(batch, t.released, NEVER)
    may_be_earlier = int_column(batch, t.released_by, HandledBy.RESPONSE) == HandledBy.RESPONSE
    is_shown = (of_row != FIRST_OF_ALL) & (of_row != NEVER) & may_be_earlier & (kinds == MemoryEvent.EXCHANGE)
    is_earlier = is_shown & (of_row < released) & (released != NEVER)
    released = np.where(is_shown, np.minimum(of_row, released), released)
    waits = may_be_earlier & (of_row != FIRST_OF_ALL)  # for replicas: it has acks=all
    by = int_column(batch, t.released_by, HandledBy.RESPONSE)
    by = np.select([is_earlier, waits], [HandledBy.FETCH, HandledBy.REPLICAS], by)
    names = batch.schema.names
    changed = {
        str(t.released): arrow_array(released, released != NEVER),
        str(t.released_by): arrow_array(by.astype(np.int8), is_not_null(batch[t.released_by])),
    }
    rows = pa.RecordBatch.from_arrays([changed.get(name, batch[name]) for name in names], names=names)
    return rows.filter(pa.array(~is_fetched))
