"""A producer's records themselves, held in the worker that replays it, to be compressed as they are batched anew.

They come from the packets of the producer's connections (`records_in_packets`) and are dropped when it is done. Only
sizes leave the worker.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from schemas.tables.steps import SENT
from udfs.columns.arrays import Bytes, Ints, read_only
from udfs.replay.batch_split.estimate import MAX_RECORD_OVERHEAD
from udfs.replay.batch_split.sender import MODELLED
from udfs.replay.batch_split.state import Log
from udfs.replay.shared.columns import int_column
from udfs.wire.compressed_sizes import compressed_size, encode_records
from udfs.wire.record_batches import RECORD_BATCH_OVERHEAD
from udfs.wire.records import Budget

MOST_HELD = 256 << 20
"""Uncompressed bytes of one producer's records that are held; batches beyond them get their sizes from the model."""

Place = tuple[int, int, int]
"""A captured batch: its connection's id, its exchange's number, its position in that."""


@dataclass(frozen=True, repr=False)
class Held:
    """The uncompressed records of a batch, and int64[records] where each ends."""

    records: Bytes
    ends: Ints


@dataclass(repr=False)
class HeldRecords:
    """The records of one producer's batches; budget: the bytes that there is still room for."""

    budget: Budget = field(default_factory=lambda: Budget(MOST_HELD))
    batches: dict[Place, Held] = field(default_factory=dict)

    def add(self, place: Place, records: bytes, ends: Ints) -> None:
        """Hold a batch."""
        self.batches[place] = Held(read_only(np.frombuffer(records, np.uint8)), read_only(ends))


@dataclass(frozen=True, repr=False)
class Recompressed:
    """Measures batches of a log's records. held: by captured batch of the log, None where it is not held.
    begin: int64[batches + 1], where their records begin."""

    held: list[Held | None]
    begin: Ints
    log: Log

    def size(self, first: int, end: int, codec: int) -> int:
        """Bytes of a batch of the records [first, end), all of one partition; MODELLED where one is not held."""
        batches = range(int(self.log.batch[first]), int(self.log.batch[end - 1]) + 1)
        parts = [self.held[batch] for batch in batches]
        content, timestamp = self.log.content[first:end], self.log.timestamp[first:end]
        room = int(content.sum()) + (end - first + 1) * MAX_RECORD_OVERHEAD
        out, at = np.empty(room, np.uint8), 0
        for batch, part in zip(batches, parts, strict=True):
            if part is None:
                return MODELLED
            begin, behind = max(first, int(self.begin[batch])), min(end, int(self.begin[batch + 1]))
            inside = slice(begin - int(self.begin[batch]), behind - int(self.begin[batch]))
            rows = slice(begin - first, behind - first)
            at = encode_records(
                part.records, part.ends[inside], read_only(content[rows]),
                read_only(timestamp[rows] - timestamp[0]), begin - first, out, at,
            )  # fmt: skip
        return RECORD_BATCH_OVERHEAD + compressed_size(codec, out[:at].tobytes())


def places_of(rows: pa.RecordBatch) -> list[Place]:
    """The captured batch of each row of SENT."""
    columns = [int_column(rows, name, 0).tolist() for name in (SENT.connection_id, SENT.exchange_no, SENT.position)]
    return list(zip(*columns, strict=True))


def recompressed(held: HeldRecords, rows: pa.RecordBatch, first: Ints, begin: Ints, log: Log) -> Recompressed:
    """What measures batches of a log. rows: of SENT; first, begin, log: as of Sent."""
    places = places_of(rows)
    of = [held.batches.get(places[row]) for row in first.tolist()]
    counts = np.diff(begin).tolist()
    fits = [one if one is not None and len(one.ends) == n else None for one, n in zip(of, counts, strict=True)]
    return Recompressed(fits, begin, log)
