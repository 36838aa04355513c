"""A producer's records, held in the worker that replays the producer, to compress them in their new batches.

They are read from the packets of the producer's connections, like in ingest, and dropped when the producer is done.
Only sizes leave the worker.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from schemas.tables.steps import SENT
from schemas.wire.produce import PRODUCE_REQUEST
from udfs.capture.packet_chunks import Frames, frames_by_chunk
from udfs.columns.arrays import Bytes, Ints, Records, read_only
from udfs.facts.exchanges import completed_exchanges
from udfs.facts.hashed_names import HashedNames
from udfs.facts.record_batch_rows import produced_fields
from udfs.facts.record_sizes import read_records
from udfs.replay.batch_split.state import MODELLED, Capture
from udfs.replay.shared.columns import int_column
from udfs.wire.compressed_sizes import MovedRecords, compressed_size, encode_records
from udfs.wire.record_batches import MAX_RECORD_OVERHEAD, RECORD_BATCH_OVERHEAD, walk_batches
from udfs.wire.records import Budget, RecordsError

MOST_HELD = 256 << 20
"""The most uncompressed bytes of a producer's records that are held. Batches beyond get their sizes from the model."""

NO_LEVELS: Mapping[int, int] = MappingProxyType({})
Place = tuple[int, int, int]
"""A captured batch: the id of its connection, the number of its exchange, and its position in the exchange."""


@dataclass(frozen=True, repr=False)
class Held:
    """The uncompressed records of a batch. ends: int64[records], where each ends."""

    records: Bytes
    ends: Ints


@dataclass(repr=False)
class HeldRecords:
    """The records of one producer's batches. budget: the bytes for which there is still room."""

    budget: Budget = field(default_factory=lambda: Budget(MOST_HELD))
    batches: dict[Place, Held] = field(default_factory=dict)

    def add(self, place: Place, records: bytes, ends: Ints) -> None:
        """Hold the records of a batch. ends: int64[records]."""
        self.batches[place] = Held(read_only(np.frombuffer(records, np.uint8)), read_only(ends))


def read_held(packets: Iterable[pa.RecordBatch], **chunk_size: int) -> HeldRecords:
    """The records in the produce requests of some packets, which are sorted as `frames_by_chunk` needs them.

    chunk_size: for `frames_by_chunk`; the result does not depend on it.
    """
    held, names = HeldRecords(), HashedNames()
    for chunk in frames_by_chunk(packets, **chunk_size):
        if held.budget.left > 0:
            hold_chunk(chunk, names, held)
    return held


def hold_chunk(chunk: Frames, names: HashedNames, held: HeldRecords) -> None:
    """Hold the records of the chunk's produce requests, batch by batch. Batches that cannot be read are left out."""
    exchanges = completed_exchanges(chunk, "", names)
    fields = produced_fields(exchanges, exchanges.of_api(PRODUCE_REQUEST.api_key))
    has_records = fields.lengths > 0
    batches = walk_batches(chunk.arena, fields.starts[has_records], fields.lengths[has_records])
    position = np.arange(len(batches.parent)) - np.searchsorted(batches.parent, batches.parent)
    exchange = fields.exchange[has_records][batches.parent]
    ids, numbers = exchanges.connection_id[exchange].tolist(), exchanges.number[exchange].tolist()
    for row, place in enumerate(zip(ids, numbers, position.tolist(), strict=True)):  # over batches, not records
        try:
            records, sizes = read_records(chunk.arena, batches, row, held.budget)
        except RecordsError:
            continue
        held.add(place, records, sizes.ends)


@dataclass(frozen=True, repr=False)
class Recompressed:
    """Gets the sizes of batches by compressing the captured records that they are made of.

    batches: BATCH[batches], the captured ones. held: the records of each of these, or None. records: RECORD[records].
    levels: the stated level of compression, by codec.
    """

    held: list[Held | None]
    batches: Records
    records: Records
    levels: Mapping[int, int] = field(default_factory=dict)

    def size(self, first: int, end: int, codec: int) -> int:
        """Bytes of a batch of the records [first, end), all of one partition; MODELLED if one of them is not held."""
        content, timestamp = self.records["content"][first:end], self.records["timestamp"][first:end]
        out, written = np.empty(int(content.sum()) + (end - first + 1) * MAX_RECORD_OVERHEAD, np.uint8), 0
        for number in range(int(self.records["batch"][first]), int(self.records["batch"][end - 1]) + 1):
            part, batch = self.held[number], self.batches[number]
            if part is None:
                return MODELLED
            begin, behind = max(first, int(batch["first"])), min(end, int(batch["end"]))
            inside = slice(begin - int(batch["first"]), behind - int(batch["first"]))
            rows = slice(begin - first, behind - first)
            moved = MovedRecords(
                data=part.records,
                ends=part.ends[inside],
                content=read_only(content[rows]),
                timestamp_deltas=read_only(timestamp[rows] - timestamp[0]),
                offset_delta=begin - first,
            )
            written = encode_records(moved, out, written)
        return RECORD_BATCH_OVERHEAD + compressed_size(codec, out[:written].tobytes(), self.levels.get(codec))


def captured_places(rows: pa.RecordBatch) -> list[Place]:
    """The captured batch of each row of SENT."""
    columns = [int_column(rows, name, 0).tolist() for name in (SENT.connection_id, SENT.exchange_no, SENT.position)]
    return list(zip(*columns, strict=True))


def recompressed(
    held: HeldRecords, rows: pa.RecordBatch, capture: Capture, levels: Mapping[int, int] = NO_LEVELS
) -> Recompressed:
    """The Recompressed of some rows, which compresses batches of captured records anew to get their sizes.

    rows: of SENT. levels: the stated level of compression, by codec.
    """
    places, batches = captured_places(rows), capture.batches
    by_batch = [held.batches.get(places[row]) for row in batches["sending"].tolist()]
    counts = (batches["end"] - batches["first"]).tolist()
    whole = [
        batch if batch and len(batch.ends) == count else None for batch, count in zip(by_batch, counts, strict=True)
    ]
    return Recompressed(whole, batches, capture.records, levels)
