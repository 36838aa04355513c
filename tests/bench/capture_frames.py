"""The frames of a capture, and the fetches among them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from schemas.wire.apis import API_KEYS
from schemas.wire.fetch import FETCH_REQUEST, FETCH_RESPONSE
from schemas.wire.message import Message
from tests.unit.wire.reference import Struct, default, encode, lay_in_arena
from udfs.capture.file_index import index_capture
from udfs.capture.packet_chunks import Frames
from udfs.capture.packet_store import MemoryBudget, PacketStore
from udfs.capture.packets_by_connection import packets_by_connection
from udfs.columns.arrays import Bytes, Ints, Shorts
from udfs.facts.exchanges import Exchanges, completed_exchanges
from udfs.facts.hashed_names import HashedNames
from udfs.facts.message_bodies import Bodies, ResponseFrames, find_response_bodies, response_bodies
from udfs.kernels.kernel import kernel
from udfs.wire.header import API_TABLE, request_header
from udfs.wire.layout import is_version_in

FETCH = API_KEYS["FETCH"]
EVERYTHING = 1 << 40


@dataclass(frozen=True)
class FetchFrames:
    """Whole frames of one message, without their sizes. Frame i is arena[starts[i]:ends[i]]. Its request is
    arena[request_starts[i]:request_ends[i]]: the frame itself, or the request that it answers."""

    message: Message
    arena: Bytes
    starts: Ints
    ends: Ints
    request_starts: Ints
    request_ends: Ints

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def is_request(self) -> bool:
        """Whether the frames are requests."""
        return self.message is FETCH_REQUEST

    def repeated(self, frames: int) -> FetchFrames:
        """The same frames repeated up to this number: a batch as large as one of ingest."""
        places = (self.starts, self.ends, self.request_starts, self.request_ends)
        return FetchFrames(self.message, self.arena, *(np.resize(place, frames) for place in places))

    def bodies(self) -> Bodies:
        """Read the headers to find the bodies. A response has the version of its request, which a client knows."""
        bodies, versions = np.empty(len(self), np.int64), np.empty(len(self), np.int16)
        if self.is_request:
            find_request_bodies(self.arena, self.starts, self.ends, API_TABLE, bodies, versions)
        else:
            frames = ResponseFrames(self.starts, self.ends, np.full(len(self), FETCH), self.request_versions)
            find_response_bodies(self.arena, frames, API_TABLE, bodies, versions)
        return Bodies(bodies, self.ends, versions)

    @cached_property
    def request_versions(self) -> Ints:
        """The version of each frame's request."""
        requests = replace(self, message=FETCH_REQUEST, starts=self.request_starts, ends=self.request_ends)
        return requests.bodies().versions.astype(np.int64)

    def contents(self) -> Iterator[tuple[bytes, bytes, int]]:
        """(request, frame, offset of the body in it) of each frame."""
        bounds = (self.request_starts, self.request_ends, self.starts, self.ends, self.bodies().starts)
        for first, last, start, end, body in zip(*(bound.tolist() for bound in bounds), strict=True):
            yield self.arena[first:last].tobytes(), self.arena[start:end].tobytes(), body - start


@kernel
def find_request_bodies(arena: Bytes, starts: Ints, ends: Ints, apis: Shorts, bodies: Ints, versions: Shorts) -> None:
    """Write body start and version of whole request frames."""
    for i in range(len(starts)):
        _, _, version, _, _, _, body = request_header(arena, starts[i], ends[i], apis)
        bodies[i], versions[i] = body, version


def frames_of(capture: Path) -> Frames:
    """All frames of a capture."""
    store = PacketStore(MemoryBudget(EVERYTHING))
    index_capture(str(capture), range_bytes=EVERYTHING, buckets=1, on_packets=store.add)
    packets = packets_by_connection([store.content], in_order=True)
    return packets.frames(range(len(packets.content.endpoints)))


def full_fetches(partitions: int, version: int) -> list[FetchFrames]:
    """A Fetch request for this many partitions of one topic, and a response without records."""
    wanted = [with_defaults(FETCH_REQUEST, "topics.partitions") | {"partition": p} for p in range(partitions)]
    topic = with_defaults(FETCH_REQUEST, "topics") | {"topic": b"orders", "partitions": wanted}
    asked = with_defaults(FETCH_REQUEST) | {"topics": [topic]}
    given = [with_defaults(FETCH_RESPONSE, "responses.partitions") | {"partition_index": p} for p in range(partitions)]
    topic = with_defaults(FETCH_RESPONSE, "responses") | {"topic": b"orders", "partitions": given}
    answered = with_defaults(FETCH_RESPONSE) | {"responses": [topic]}
    no_tags = b"\0" if is_version_in(version, FETCH_REQUEST.flexible) else b""
    request = struct.pack(">hhih", FETCH, version, 7, 5) + b"bench" + no_tags + encode(FETCH_REQUEST, version, asked)
    response = struct.pack(">i", 7) + no_tags + encode(FETCH_RESPONSE, version, answered)
    arena, starts, ends = lay_in_arena([request, response])
    return [
        FetchFrames(message, arena, starts[n : n + 1], ends[n : n + 1], starts[:1], ends[:1])
        for n, message in enumerate((FETCH_REQUEST, FETCH_RESPONSE))
    ]


def with_defaults(message: Message, path: str = "") -> Struct:
    """The default of every field of a message, or of a structure in it."""
    fields = message.fields
    for name in filter(None, path.split(".")):
        (fields,) = [field.fields for field in fields if field.name == name]
    return {f.name: b"" if f.type == "records" else default(f) for f in fields}


def fetches(capture: Path) -> list[FetchFrames]:
    """A capture's Fetch requests with whole responses, and these responses."""
    chunk = frames_of(capture)
    exchanges: Exchanges = completed_exchanges(chunk, "", HashedNames())
    which, _ = response_bodies(exchanges, exchanges.of_api(FETCH))
    asked, answered = (
        (start, start + of["size"][which])
        for of in (exchanges.request_fields, exchanges.response_fields)
        for start in (of["start"][which],)
    )
    return [
        FetchFrames(FETCH_REQUEST, chunk.arena, *asked, *asked),
        FetchFrames(FETCH_RESPONSE, chunk.arena, *answered, *asked),
    ]
