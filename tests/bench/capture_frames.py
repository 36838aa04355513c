"""A capture's packets and the bodies of its Fetch frames, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from schemas.wire.fetch import FETCH_REQUEST, FETCH_RESPONSE
from schemas.wire.message import Message
from tests.unit.wire.reference import Struct, default, encode, lay_in_arena
from udfs.capture.chunks import frames
from udfs.capture.index import index_capture
from udfs.capture.packets import read_packets
from udfs.facts.build import FETCH
from udfs.facts.exchanges import Exchanges, exchanges_of, request_bodies, response_bodies
from udfs.facts.names import Names
from udfs.wire.arrays import Bytes, Ints, Shorts

RANGE_BYTES, BATCH_BYTES, EVERYTHING = 32 << 20, 8 << 20, 1 << 40


@dataclass(frozen=True)
class Bodies:
    """Bodies of one message: body i is arena[starts[i]:ends[i]]."""

    message: Message
    arena: Bytes
    starts: Ints
    ends: Ints
    versions: Shorts

    def __len__(self) -> int:
        return len(self.starts)

    def repeated(self, frames: int) -> Bodies:
        """The same bodies over and over, so many in all: a batch as large as one of ingest."""
        starts, ends, versions = (np.resize(a, frames) for a in (self.starts, self.ends, self.versions))
        return Bodies(self.message, self.arena, starts, ends, versions)

    def contents(self) -> Iterator[tuple[int, bytes]]:
        """(version, body) of each."""
        for start, end, version in zip(self.starts.tolist(), self.ends.tolist(), self.versions.tolist(), strict=True):
            yield version, self.arena[start:end].tobytes()


def packets(capture: Path) -> list[pa.RecordBatch]:
    """The capture's packets by connection and place, as Spark would hand them to a worker."""
    index = index_capture(str(capture), range_bytes=RANGE_BYTES, buckets=1)
    read = (b for part in index.ranges for b in read_packets(part, file_no=0, buckets=1, batch_bytes=BATCH_BYTES))
    by_connection = [("connection", "ascending"), ("packet_no", "ascending")]
    batches: list[pa.RecordBatch] = pa.Table.from_batches(read).sort_by(by_connection).to_batches()
    return batches


def full_fetches(partitions: int, version: int) -> list[Bodies]:
    """A Fetch request for so many partitions of one topic, and an answer without records."""
    wanted = [with_defaults(FETCH_REQUEST, "topics.partitions") | {"partition": p} for p in range(partitions)]
    topic = with_defaults(FETCH_REQUEST, "topics") | {"topic": b"orders", "partitions": wanted}
    asked = with_defaults(FETCH_REQUEST) | {"topics": [topic]}
    given = [with_defaults(FETCH_RESPONSE, "responses.partitions") | {"partition_index": p} for p in range(partitions)]
    topic = with_defaults(FETCH_RESPONSE, "responses") | {"topic": b"orders", "partitions": given}
    answered = with_defaults(FETCH_RESPONSE) | {"responses": [topic]}
    bodies = encode(FETCH_REQUEST, version, asked), encode(FETCH_RESPONSE, version, answered)
    versions = np.full(1, version, np.int16)
    laid = [lay_in_arena([body]) for body in bodies]
    return [Bodies(m, *where, versions) for m, where in zip((FETCH_REQUEST, FETCH_RESPONSE), laid, strict=True)]


def with_defaults(message: Message, path: str = "") -> Struct:
    """The default of every field of a message, or of a structure in it."""
    fields = message.fields
    for name in filter(None, path.split(".")):
        (fields,) = [field.fields for field in fields if field.name == name]
    return {f.name: b"" if f.type == "records" else default(f) for f in fields}


def fetches(capture: Path) -> list[Bodies]:
    """The bodies of a capture's Fetch requests and responses."""
    found = []
    for chunk in frames(packets(capture), rows=EVERYTHING, payload_bytes=EVERYTHING):
        exchanges: Exchanges = exchanges_of(chunk, "", Names())
        which = exchanges.of_api(FETCH)
        for message, bodies_of in ((FETCH_REQUEST, request_bodies), (FETCH_RESPONSE, response_bodies)):
            _, bodies = bodies_of(exchanges, which)
            if len(bodies.starts):
                found.append(Bodies(message, chunk.arena, bodies.starts, bodies.ends, bodies.versions))
    return found
