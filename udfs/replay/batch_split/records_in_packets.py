"""The records in the packets of a producer's connections, read as ingest does, into the memory of the worker alone."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from schemas.wire.produce import PRODUCE_REQUEST
from udfs.capture.packet_chunks import Frames, frames
from udfs.facts.exchanges import exchanges_of
from udfs.facts.hashed_names import HashedNames
from udfs.facts.record_batch_rows import produced_fields
from udfs.facts.record_sizes import read_records
from udfs.replay.batch_split.held_records import HeldRecords
from udfs.wire.record_batches import walk
from udfs.wire.records import RecordsError


def read_held(packets: Iterable[pa.RecordBatch], **chunk_size: int) -> HeldRecords:
    """What produce requests in the packets hold; the packets are sorted as `frames` wants them.

    chunk_size: as that of `frames`; what is held does not depend on it.
    """
    held, names = HeldRecords(), HashedNames()
    for chunk in frames(packets, **chunk_size):
        if held.budget.left > 0:
            hold(chunk, names, held)
    return held


def hold(chunk: Frames, names: HashedNames, held: HeldRecords) -> None:
    """Hold what the chunk's produce requests have, batch by batch; what cannot be read is left out."""
    exchanges = exchanges_of(chunk, "", names)
    fields = produced_fields(exchanges, exchanges.of_api(PRODUCE_REQUEST.api_key))
    there = fields.lengths > 0
    found = walk(chunk.arena, fields.starts[there], fields.lengths[there])
    position = np.arange(len(found.parent)) - np.searchsorted(found.parent, found.parent)
    exchange = fields.exchange[there][found.parent]
    ids, numbers = exchanges.connection_id[exchange].tolist(), exchanges.number[exchange].tolist()
    for row, place in enumerate(zip(ids, numbers, position.tolist(), strict=True)):  # a batch, not a record
        try:
            records, sizes = read_records(chunk.arena, found, row, held.budget)
        except RecordsError:
            continue
        held.add(place, records, sizes.ends)
