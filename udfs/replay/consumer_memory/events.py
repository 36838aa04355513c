"""Turns rows of MEMORY_EVENTS into records: exchanges of clients and brokers, and events of clients' partitions."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from schemas.tables.event_kinds import MemoryEvent
from schemas.tables.steps_memory import MEMORY_EVENTS
from udfs.columns.arrays import Ints, Records
from udfs.columns.records import GrowingRecords, int_fields, new_records
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import ALWAYS, NEVER
from udfs.replay.consumer_memory.units import Counted
from udfs.replay.shared.caps import MOST_EXCHANGES
from udfs.replay.shared.columns import int_column
from udfs.replay.shared.window import WHOLE, Window

LEFT_OUT = -2
"""Stand for a number that nobody knows, and for the exchange of a row for which there was no room."""

EXCHANGE = int_fields(
    "unit",
    "connection",  # its id
    "requested_at",  # us
    "size_known_at",  # us: when the first bytes came of the message that takes memory (a response or request)
    "complete_at",  # us: when its last byte came; NEVER: there is no response
    "size",  # bytes of that message
    "max_bytes",  # fetch.max.bytes of a fetch, else 0
    "api_key",
    "response_us",  # for a request that a broker receives: us from requested_at to its response
    "handled_at",  # us: when it was handled; NEVER if only the response shows that
    "handled_by",  # a HandledBy
    "closes_session",  # 1: a fetch of a client that closes its session
    "librdkafka",  # release of the client, 1000 x major + minor, 0 if it is not known; NONE for another client
    "asked",  # partitions that a fetch wants
    "value_bytes",  # of messages in whole batches of the response, uncompressed, for batches that were measured
    "unmeasured",  # whole batches without a known size
    "records",  # in whole batches of the response
    "record_bytes",
    "partitions",  # with records
    "undrained",  # partitions with records that are still to be fetched again or taken over
    "drained_at",  # us: when the last of its drained partitions was fetched again; ALWAYS: none was
    "lost_at",  # us: when the client lost the last partition that another member took over; ALWAYS: it lost none
    "taken_over_at",  # us: when another member first fetched the last partition that it took over
)
"""An exchange of a client or broker. Fields from closes_session on are for clients, the three before it for brokers."""
PARTITION_EVENT = int_fields(
    "kind",  # PARTITION, BATCH or TAKEN_OVER of MemoryEvent
    "unit",
    "exchange",
    "partition_key",
    "broker_key",
    "time",
    "counts",  # 1: the time is in the window
    "lost_at",  # us: by when the client has lost a partition that is taken over
    "fetch_offset",  # NONE if the fetch does not want the partition
    "partition_max_bytes",
    "returned_bytes",
    "end_offset",
    "cut_end_offset",
    "records",
    "size",  # of a batch
    "is_compressed",
    "uncompressed_bytes",  # or NONE
)
"""An event of a client's partition: a fetch names it, a response has a batch of it, or another client takes it over."""
TAKEOVER = int_fields(
    "unit",  # the client that loses the partition
    "partition_key",
    "taken_over_at",  # us: when another member of its group first fetches it
    "joins_at",  # us: when that member sent the last JoinGroup that was answered by then; ALWAYS: there is none
    "joined_at",  # us: when it had that response; NEVER: it had none
    "lost_at",  # us: by when the client has lost the partition
)
"""A partition that passes from one member of a group to another."""


_T = MEMORY_EVENTS
EXCHANGE_COLUMNS = (
    _T.connection_id, _T.time, _T.started, _T.came, _T.size, _T.held, _T.max_bytes, _T.api_key, _T.released,
    _T.released_by, _T.closes_session, _T.librdkafka,
)  # fmt: skip
"""The columns from which exchanges are read."""
PARTITION_COLUMNS = (
    _T.kind, _T.partition_key, _T.broker_key, _T.time, _T.started, _T.came, _T.fetch_offset, _T.partition_max_bytes,
    _T.returned_bytes, _T.end_offset, _T.cut_end_offset, _T.records, _T.size, _T.compressed, _T.uncompressed,
)  # fmt: skip
"""The columns from which partitions, batches and takeovers are read."""


def exchanges_from_rows(rows: pa.RecordBatch, unit: Ints) -> Records:
    """EXCHANGE[n] from rows of kind EXCHANGE. unit: int64[n]."""
    t = MEMORY_EVENTS
    requested_at = int_column(rows, t.time, 0)
    complete_at = np.maximum(requested_at, int_column(rows, t.came, NEVER))
    size_known_at = int_column(rows, t.started, NEVER)
    return new_records(
        EXCHANGE,
        rows.num_rows,
        unit=unit,
        connection=int_column(rows, t.connection_id, 0),
        requested_at=requested_at,
        size_known_at=np.where(size_known_at == NEVER, complete_at, size_known_at),
        complete_at=complete_at,
        size=np.maximum(int_column(rows, t.size, 0), 0),
        max_bytes=np.maximum(int_column(rows, t.max_bytes, 0), 0),
        api_key=int_column(rows, t.api_key, NONE),
        response_us=np.maximum(int_column(rows, t.held, 0), 0),
        handled_at=int_column(rows, t.released, NEVER),
        handled_by=int_column(rows, t.released_by, 0),
        closes_session=int_column(rows, t.closes_session, 0),
        librdkafka=int_column(rows, t.librdkafka, NONE),
        drained_at=ALWAYS,
        lost_at=ALWAYS,
        taken_over_at=ALWAYS,
    )


def partition_events_of(rows: pa.RecordBatch, unit: Ints, exchange: Ints, window: Window = WHOLE) -> Records:
    """PARTITION_EVENT[n] from rows of kinds PARTITION, BATCH and TAKEN_OVER. `when_lost` fills in `lost_at` later.

    unit: int64[n]. exchange: int64[n], the exchange that a row belongs to.
    """
    t, time = MEMORY_EVENTS, int_column(rows, MEMORY_EVENTS.time, 0)
    return new_records(
        PARTITION_EVENT,
        rows.num_rows,
        kind=int_column(rows, t.kind, 0),
        unit=unit,
        exchange=exchange,
        partition_key=int_column(rows, t.partition_key, 0),
        broker_key=int_column(rows, t.broker_key, 0),
        time=time,
        counts=window.has(time),
        fetch_offset=int_column(rows, t.fetch_offset, NONE),
        partition_max_bytes=int_column(rows, t.partition_max_bytes, 0),
        returned_bytes=int_column(rows, t.returned_bytes, 0),
        end_offset=int_column(rows, t.end_offset, NONE),
        cut_end_offset=int_column(rows, t.cut_end_offset, NONE),
        records=int_column(rows, t.records, 0),
        size=int_column(rows, t.size, 0),
        is_compressed=int_column(rows, t.compressed, 0),
        uncompressed_bytes=int_column(rows, t.uncompressed, NONE),
    )


def takeovers_of(rows: pa.RecordBatch, unit: Ints) -> Records:
    """TAKEOVER[n] from rows of kind TAKEN_OVER. `when_lost` fills in `lost_at` later. unit: int64[n]."""
    t = MEMORY_EVENTS
    return new_records(
        TAKEOVER,
        rows.num_rows,
        unit=unit,
        partition_key=int_column(rows, t.partition_key, 0),
        taken_over_at=int_column(rows, t.time, 0),
        joins_at=int_column(rows, t.started, ALWAYS),
        joined_at=int_column(rows, t.came, NEVER),
    )


@dataclass
class KeptExchanges:
    """The exchanges of several clients or brokers in the order of their rows, at most MOST_EXCHANGES of each unit.
    Exchanges beyond that are only counted.
    """

    gathered: GrowingRecords = field(default_factory=lambda: GrowingRecords(EXCHANGE))
    counted: Counted = field(default_factory=Counted)

    def add(self, rows: pa.RecordBatch, unit: Ints) -> Ints:
        """Take rows of MEMORY_EVENTS, in their order. unit: int64[rows].

        Returns the exchange to which each row belongs, as an index of the kept exchanges, or LEFT_OUT: int64[rows].
        """
        is_exchange = int_column(rows, MEMORY_EVENTS.kind, 0) == MemoryEvent.EXCHANGE
        is_kept = self.counted.places(unit, is_exchange) < MOST_EXCHANGES
        taken = is_exchange & is_kept
        place = len(self.gathered) + np.cumsum(taken) - 1
        self.gathered.add(exchanges_from_rows(rows.select([*EXCHANGE_COLUMNS]).filter(pa.array(taken)), unit[taken]))
        return np.where(is_kept, place, LEFT_OUT)

    def left_out(self, units: int) -> Ints:
        """How many exchanges of each unit were only counted: int64[units]."""
        return self.counted.beyond(MOST_EXCHANGES, units)
