"""Have every kernel compiled: one tiny conversation goes the whole way from a capture file to the gold rows.

Numba compiles a kernel when it is first called and keeps the machine code in the cache folder; all kernels together
take a minute of CPU time. That is done here once, before Spark's workers start, so that no two workers compile the same
kernel. What one algorithm alone needs is a part of its own, compiled when the algorithm is asked for. The readers of
messages are not numba's: a worker makes the reader of a version when it first meets one, in a fraction of a second.

    python -m udfs.kernels.warm_up PART...
"""

from __future__ import annotations

import struct
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.tables import algorithms
from schemas.tables.steps import LOG_EVENTS, MEMORY_EVENTS, SENT, SESSION_EVENTS, TOPIC_EVENTS
from schemas.tables.table import Table
from schemas.tables.values import CREATE_TOPIC
from schemas.wire.declared import FETCH as FETCH_MESSAGES
from udfs.capture.bare_frames import lack_sizes
from udfs.capture.chunks import Frames, frames
from udfs.capture.conversation import CONNECTION
from udfs.capture.found import LOSS
from udfs.capture.frame_rows import dumped_connection
from udfs.capture.framing import FRAME, SIZE_BYTES
from udfs.capture.held_packets import held
from udfs.capture.index import index_capture
from udfs.capture.packet_store import Memory, PacketStore
from udfs.capture.packets import read_packets
from udfs.capture.pcapng import BYTE_ORDER_MAGIC, INTERFACE_DESCRIPTION, SECTION_HEADER
from udfs.capture.segments import DIRECTION
from udfs.capture.tcp_headers import CONNECTION_BYTES
from udfs.columns.arrays import Ints, read_only
from udfs.facts.arrow_tables import TYPES, rows_of
from udfs.facts.build import Carried, tables_of
from udfs.facts.held_session import new_session, resized
from udfs.frames.decode_column import request_column, response_column
from udfs.frames.header_column import request_header_column
from udfs.kernels.compiled_parts import compiled
from udfs.kernels.one_at_a_time import one_at_a_time
from udfs.replay.batch_split.compression_estimate import BY_CLIENT, TODAY, Producers, after_split
from udfs.replay.batch_split.split_replay import SplitLanes, replay_splits
from udfs.replay.batch_split.topic_limits import TopicLimits
from udfs.replay.consumer_memory.memory_replay import replay_memory
from udfs.replay.consumer_memory.memory_report import MemoryLanes
from udfs.replay.consumer_memory.memory_state import Bounds
from udfs.replay.consumer_memory.memory_trace import CONSUMER, PRODUCER
from udfs.replay.consumer_memory.produced import Produced
from udfs.replay.consumer_memory.producer_loop import replay_sends
from udfs.replay.consumer_memory.producer_memory import BufferBounds
from udfs.replay.fetch_max_bytes.client_pace import as_captured_clients
from udfs.replay.fetch_max_bytes.fetch_lanes import FetchLanes
from udfs.replay.fetch_max_bytes.fetch_read import Lanes
from udfs.replay.fetch_max_bytes.fetch_replay import replay_fetches
from udfs.replay.fetch_max_bytes.log_reads import BATCH, READ, WITNESS, reads
from udfs.replay.fetch_max_bytes.responses_alone import replayed_fetches
from udfs.replay.fetch_max_bytes.timeline import halve, new_timeline
from udfs.replay.partition_limits.asked_changes import Defaults
from udfs.replay.partition_limits.described_cluster import SizedTopics, described_events
from udfs.replay.partition_limits.limit_replay import LimitLane, replay_topics
from udfs.replay.partition_limits.topic_history import BROKER, CHANGE
from udfs.replay.session_cache.session_cache import CacheSettings
from udfs.replay.session_cache.session_lanes import SessionLanes
from udfs.replay.session_cache.session_replay import replay_sessions
from udfs.replay.shared.int_map import new_map, roomy
from udfs.replay.shared.lanes import AS_CAPTURED
from udfs.wire.compressed_sizes import encode_records
from udfs.wire.message_sets import walk_messages
from udfs.wire.records import sizes_of

FETCH, VERSION, CORRELATION_ID = FETCH_MESSAGES.request.api_key, 4, 7
REQUEST_HEADER_BYTES = 11  # key, version, correlation id and a client id of one byte
CLIENT, SERVER = (49152, b"\x7f\0\0\x01"), (9092, b"\x7f\0\0\x02")
SYN, PUSH_ACK = 2, 24


def frame(body: bytes) -> bytes:
    """A Kafka frame."""
    return struct.pack(">i", len(body)) + body


def fetch_request() -> bytes:
    """A Fetch request v4 for one partition of a topic `t`."""
    header = struct.pack(">hhih", FETCH, VERSION, CORRELATION_ID, 1) + b"c"
    limits = struct.pack(">iiiib", -1, 500, 1, 1 << 20, 0)
    return frame(header + limits + struct.pack(">ih", 1, 1) + b"t" + struct.pack(">iiqi", 1, 0, 0, 1 << 20))


def fetch_response() -> bytes:
    """The answer to it: nothing there."""
    topic = struct.pack(">iiih", CORRELATION_ID, 0, 1, 1) + b"t"
    return frame(topic + struct.pack(">iihqqii", 1, 0, 0, 0, 0, -1, 0))


def packet(sender: tuple[int, bytes], receiver: tuple[int, bytes], sequence: int, flags: int, payload: bytes) -> bytes:
    """A pcap record of a raw IPv4 packet."""
    tcp = struct.pack(">HHIIBBHHH", sender[0], receiver[0], sequence, 0, 5 << 4, flags, 0, 0, 0) + payload
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0) + sender[1] + receiver[1]
    size = len(ip) + len(tcp)
    return struct.pack("<IIII", 1, 0, size, size) + ip + tcp


def capture() -> bytes:
    """A pcap file (LINKTYPE_RAW) of one connection with one fetch."""
    request, response = fetch_request(), fetch_response()
    return struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101) + b"".join(
        (
            packet(CLIENT, SERVER, 0, SYN, b""),
            packet(CLIENT, SERVER, 1, PUSH_ACK, request),
            packet(SERVER, CLIENT, 1, PUSH_ACK, response),
        )
    )


def block(kind: int, body: bytes) -> bytes:
    """A pcapng block."""
    length = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + length + body + length


def pcapng() -> bytes:
    """A pcapng file of a section and an interface, without packets."""
    return block(SECTION_HEADER, struct.pack("<IHHq", BYTE_ORDER_MAGIC, 1, 0, -1)) + block(
        INTERFACE_DESCRIPTION, struct.pack("<HHI", 101, 0, 0)
    )


def packets(store: PacketStore) -> Iterator[pa.RecordBatch]:
    """The capture's packets, read from a file as captures are, and held in `store`, too."""
    for content in (pcapng(), capture()):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "warm-up"
            path.write_bytes(content)
            for part in index_capture(str(path), range_bytes=1 << 20, buckets=1, parsed=store.add).ranges:
                yield from read_packets(part, file_no=0, buckets=1, batch_bytes=1 << 20)


def zeros(table: Table, rows: int, **columns: Ints | pa.Array[Any]) -> pa.RecordBatch:
    """Rows of a table that are zero, true or empty but for the columns given."""
    values: dict[str, object] = {"string": "", "binary": b"", "boolean": True}
    filled: dict[str, pa.Array[Any] | Ints] = {
        str(c): pa.array([values.get(c.type, [] if "<" in c.type else 0)] * rows, TYPES[c.type])
        for c in table.columns
        if c not in columns
    }
    return rows_of(table, {**filled, **columns})


def replay_fetch_limits() -> None:
    """A batch, a witness and a read of one partition, in two lanes."""
    for _ in replay_fetches(reads([log_and_read()], 1 << 20), two_fetch_lanes(), ""):
        pass
    halve(new_timeline(1, 1, np.zeros(1, np.int64), np.ones(1, np.int64)), 0)  # as for lanes that end at other times


def log_and_read() -> pa.RecordBatch:
    """A batch, a witness and a read of one partition."""
    return zeros(LOG_EVENTS, 3, kind=np.array([BATCH, WITNESS, READ]), size_bytes=np.full(3, 100))


def two_fetch_lanes() -> FetchLanes:
    """The captured limits and others."""
    limits = np.array([AS_CAPTURED, 1 << 20])
    lanes = Lanes(limits, limits, np.full(2, 1 << 20), np.zeros(2, np.int64))
    clients = as_captured_clients(2)
    return FetchLanes(("captured", "other"), lanes, lanes, clients, clients)


def replay_partition_limits() -> None:
    """A topic that is created, in one lane and for the curves; and one of a cluster on paper."""
    created = zeros(TOPIC_EVENTS, 2, entry=np.array([BROKER, CHANGE]), kind=pa.array([None, CREATE_TOPIC]))
    for _ in replay_topics([created], (LimitLane("captured"),), Defaults(1, 1), 0, ""):
        pass
    described_events([(0, None)], [SizedTopics("t", 1, 1, how_many=1)], [], 0, 1.0, 0)


def replay_fetch_sessions() -> None:
    """A full fetch of one partition."""
    events = zeros(SESSION_EVENTS, 2, position=np.array([-1, 0]))
    one = np.ones(1, np.int64)
    for _ in replay_sessions([events], SessionLanes(("captured",), CacheSettings(one, one, one, one)), "", ""):
        pass
    known = new_map()
    roomy(known, len(known.keys))  # as for a broker with more sessions


def replay_consumer_memory() -> None:
    """A fetch of one partition, and a produced batch, in one lane."""
    one, none = np.full(1, 1 << 20), np.zeros(1, np.int64)
    bounds = Bounds(one, one, none, none, -np.ones(1, np.int64), one, none)
    lanes = MemoryLanes(("captured",), bounds, bounds, BufferBounds(one, one, one, one), none, two_fetch_lanes())
    hundred = np.full(3, 100)
    sides = {side: pa.array([side] * 3) for side in (CONSUMER, PRODUCER)}
    fetched = zeros(MEMORY_EVENTS, 3, kind=np.arange(3), size=hundred, returned_bytes=hundred, side=sides[CONSUMER])
    produced = zeros(MEMORY_EVENTS, 3, size=hundred, side=sides[PRODUCER])
    for _ in replay_memory([fetched, produced], lanes, ""):
        pass
    sent = Produced()
    sent.add(produced)
    replay_sends(sent.sent().sends, lanes.producer)
    for _ in replayed_fetches(reads([log_and_read()], 1 << 20), two_fetch_lanes()):
        pass


def replay_batch_split() -> None:
    """A batch of one record, in two lanes, and the walk over a record."""
    two = np.ones(2, np.int64)
    ratio = np.ones(2, np.float32)
    of_topics = np.zeros((2, 0), np.int64)
    lanes = SplitLanes(
        ("captured", "other"), Producers(two * BY_CLIENT, of_topics, two, two, two, two, two, two, ratio, ratio, ratio),
        TopicLimits(({}, {}), two, two, 1), 1,
    )  # fmt: skip
    sizes = {
        SENT.record_sizes: pa.array([[100]], TYPES["array<int>"]),
        SENT.create_times: pa.array([[0]], TYPES["array<bigint>"]),
        SENT.recompressed_bytes: pa.array([[]], TYPES["array<int>"]),
        SENT.codec: pa.array(["gzip"], pa.string()),
    }
    record = bytes([12, 0, 0, 0, 1, 1, 0])
    ends, content = (read_only(values) for values in (sizes_of(record, 1).ends, np.full(1, 3)))
    encode_records(read_only(np.frombuffer(record, np.uint8)), ends, content, ends, 0, np.zeros(64, np.uint8), 0)
    for _ in replay_splits([zeros(SENT, 1, **sizes)], lanes, ""):
        pass
    after_split(TODAY, np.float32(1))


def follow_connections() -> None:
    """From a capture file to frames."""
    store = PacketStore(Memory(1 << 20))
    for _ in frames(packets(store)):
        pass
    held([store.content], in_order=True).frames(range(1))
    dumped_connection(b"", None, None, 1)
    lack_sizes(pa.array([fetch_request()]))


def decode() -> None:
    """From frames to silver rows."""
    request, response = fetch_request(), fetch_response()
    arena = np.frombuffer(request + response, np.uint8).copy()
    asked, answered = np.zeros(1, FRAME), np.zeros(1, FRAME)
    asked["start"], asked["size"] = SIZE_BYTES, len(request) - SIZE_BYTES
    asked["body_start"] = SIZE_BYTES + REQUEST_HEADER_BYTES
    asked["api_key"], asked["api_version"], asked["client_id_length"] = FETCH, VERSION, -1
    answered["start"], answered["size"] = len(request) + SIZE_BYTES, len(response) - SIZE_BYTES
    connections = np.zeros(1, CONNECTION)
    chunk = Frames(
        arena, asked, answered, np.zeros(0, LOSS), connections, np.zeros(2, DIRECTION), [bytes(CONNECTION_BYTES)], 1
    )
    for _ in tables_of(chunk, "", Carried()):
        pass
    resized(new_session(1), 1)  # as for a connection that goes on in a second chunk
    walk_messages(read_only(np.zeros(0, np.uint8)), np.zeros(4, np.int64))  # as for a compressed message set
    decode_columns(pa.array([VERSION]), pa.array([request]), pa.array([response]))


def decode_columns(version: pa.Array[Any], request: pa.Array[Any], response: pa.Array[Any]) -> None:
    """From columns of frames to columns of structs."""
    request_header_column(request)
    request_column(FETCH_MESSAGES.request, version, request)
    response_column(FETCH_MESSAGES.response, version, response)


RUNS = {
    "capture": follow_connections,
    "facts": decode,
    algorithms.FETCH_MAX_BYTES: replay_fetch_limits,
    algorithms.PARTITION_LIMITS: replay_partition_limits,
    algorithms.SESSION_CACHE: replay_fetch_sessions,
    algorithms.CONSUMER_MEMORY: replay_consumer_memory,
    algorithms.BATCH_SPLIT: replay_batch_split,
}


def compile_part(part: str) -> None:
    """Compile a part's kernels, unless that was done or another process is at it: then wait for it."""
    done = compiled(part)
    with one_at_a_time(done.with_suffix(".lock")):
        if not done.exists():
            RUNS[part]()
            done.touch()


def load() -> None:
    """Load every compiled kernel into this process."""
    for part, run in RUNS.items():
        if compiled(part).exists():
            run()


if __name__ == "__main__":
    for name in sys.argv[1:] or RUNS:
        compile_part(name)
