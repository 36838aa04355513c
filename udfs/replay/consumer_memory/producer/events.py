"""Turns rows of MEMORY_EVENTS of producers into records: batches in produce requests."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from schemas.tables.steps_memory import MEMORY_EVENTS
from udfs.columns.arrays import Bools, Ints, Records
from udfs.columns.records import GrowingRecords, int_fields, new_records
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import NEVER
from udfs.replay.consumer_memory.units import Counted, resize_to_units
from udfs.replay.shared.caps import MOST_EXCHANGES
from udfs.replay.shared.columns import int_column

SENDING = int_fields(
    "unit",
    "connection",  # its id
    "request",  # a number that tells the requests of a connection apart
    "stream",  # a number for the partition, the producer id and its epoch
    "appended_at",  # us: when the first record was appended
    "sent_at",  # us
    "answered_at",  # us; NEVER if there is no answer
    "size",  # bytes on the wire
    "sequence",  # of the first record, or NONE
    "records",
    "error",  # code
    "first_timestamp_ms",
    "last_timestamp_ms",
    "is_compressed",
)
"""A sending: a batch in a produce request. A batch may be sent again, or be split and its parts sent."""


def sendings_of_units(rows: pa.RecordBatch, unit: Ints) -> Records:
    """SENDING[rows] of rows of a producer. unit: int64[rows]."""
    t = MEMORY_EVENTS
    return new_records(
        SENDING,
        rows.num_rows,
        unit=unit,
        connection=int_column(rows, t.connection_id, 0),
        request=int_column(rows, t.exchange_no, 0),
        stream=int_column(rows, t.partition_key, 0),
        appended_at=int_column(rows, t.time, 0),
        sent_at=int_column(rows, t.started, 0),
        answered_at=int_column(rows, t.came, NEVER),
        size=int_column(rows, t.size, 0),
        sequence=int_column(rows, t.sequence, NONE),
        records=int_column(rows, t.records, 0),
        error=int_column(rows, t.error_code, 0),
        first_timestamp_ms=int_column(rows, t.first_timestamp, 0),
        last_timestamp_ms=int_column(rows, t.last_timestamp, 0),
        is_compressed=int_column(rows, t.compressed, 0),
    )


@dataclass
class ProducerEvents:
    """The sendings of several producers in the order of their rows, at most MOST_EXCHANGES of each. The others are
    counted.

    is_java: bool[units], whether each may be a Java client. Only Java clients have the BufferPool that is replayed.
    is_told_apart: bool[units], whether it is known that each is one process.
    """

    gathered: GrowingRecords = field(default_factory=lambda: GrowingRecords(SENDING))
    counted: Counted = field(default_factory=Counted)
    is_java: Bools = field(default_factory=lambda: np.zeros(0, np.bool_))
    is_told_apart: Bools = field(default_factory=lambda: np.zeros(0, np.bool_))

    def add(self, rows: pa.RecordBatch, unit: Ints) -> None:
        """Take rows of MEMORY_EVENTS, in their order. unit: int64[rows]."""
        is_kept = self.counted.places(unit, np.ones(len(unit), np.bool_)) < MOST_EXCHANGES
        self.gathered.add(sendings_of_units(rows, unit)[is_kept])
        t, units = MEMORY_EVENTS, int(unit[-1]) + 1
        self.is_java, self.is_told_apart = (
            resize_to_units(flags, units, True) for flags in (self.is_java, self.is_told_apart)
        )
        for flags, column in ((self.is_java, t.is_java), (self.is_told_apart, t.is_told_apart)):
            np.logical_and.at(flags, unit, int_column(rows, column, 1) == 1)

    def left_out(self) -> Ints:
        """How many sendings of each producer were only counted: int64[units]."""
        return self.counted.beyond(MOST_EXCHANGES, len(self.is_java))
