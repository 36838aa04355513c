"""Compiles every kernel: one tiny conversation goes all the way from a capture file to the gold rows.

Numba compiles a kernel when it is first called, and keeps the machine code in the cache folder. All kernels together
take a minute of CPU time. This module does that once, before Spark's workers start, so that no two workers compile the
same kernel. The kernels of an algorithm are a separate part, which is compiled when a run needs the algorithm. The
readers of messages are not made by numba: a worker makes the reader of a version when it first needs it, in a fraction
of a second.

    python -m udfs.kernels.warm_up PART...
"""

from __future__ import annotations

import struct
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.tables import algorithms
from schemas.wire.declared import FETCH as FETCH_MESSAGES
from udfs.capture.chunk_output import LOSS
from udfs.capture.conversation import FOLLOWED_CONNECTION
from udfs.capture.file_index import index_capture
from udfs.capture.frame_dump_rows import dumped_connection
from udfs.capture.framing import FRAME, SIZE_BYTES
from udfs.capture.missing_sizes import sizes_are_missing
from udfs.capture.packet_chunks import Frames, frames_by_chunk
from udfs.capture.packet_store import MemoryBudget, PacketStore
from udfs.capture.packets import read_packets
from udfs.capture.packets_by_connection import packets_by_connection
from udfs.capture.pcap import RECORD_HEADER_BYTES
from udfs.capture.pcapng import BYTE_ORDER_MAGIC, INTERFACE_DESCRIPTION, SECTION_HEADER
from udfs.capture.segments import DIRECTION
from udfs.capture.tcp_headers import CONNECTION_BYTES
from udfs.columns.arrays import read_only
from udfs.facts.earlier_sessions import ENTRY_COLUMNS, session_of_entries
from udfs.facts.fetch_session import new_session, resize_session
from udfs.facts.rows_from_packets import EarlierChunks, tables_of_chunk
from udfs.frames.decode_column import request_column, response_column
from udfs.frames.header_column import request_header_column
from udfs.kernels.compiled_parts import marker_of_part
from udfs.kernels.one_at_a_time import one_at_a_time
from udfs.replay.batch_split import warm_up as batch_split
from udfs.replay.consumer_memory import warm_up as consumer_memory
from udfs.replay.fetch_max_bytes import warm_up as fetch_max_bytes
from udfs.replay.partition_limits import warm_up as partition_limits
from udfs.replay.session_cache import warm_up as session_cache
from udfs.replay.shared.row_order import order_of_rows
from udfs.wire.message_sets import walk_messages

FETCH, VERSION, CORRELATION_ID = FETCH_MESSAGES.request.api_key, 4, 7
REQUEST_HEADER_BYTES = 11  # key, version, correlation id and a client id of one byte
CLIENT, SERVER = (49152, b"\x7f\0\0\x01"), (9092, b"\x7f\0\0\x02")
SYN, PUSH_ACK = 2, 24


def kafka_frame(body: bytes) -> bytes:
    """A Kafka frame."""
    return struct.pack(">i", len(body)) + body


def fetch_request() -> bytes:
    """A Fetch request v4 for one partition of a topic `t`."""
    header = struct.pack(">hhih", FETCH, VERSION, CORRELATION_ID, 1) + b"c"
    limits = struct.pack(">iiiib", -1, 500, 1, 1 << 20, 0)
    return kafka_frame(header + limits + struct.pack(">ih", 1, 1) + b"t" + struct.pack(">iiqi", 1, 0, 0, 1 << 20))


def fetch_response() -> bytes:
    """A Fetch response v4 for that partition, without records."""
    topic = struct.pack(">iiih", CORRELATION_ID, 0, 1, 1) + b"t"
    return kafka_frame(topic + struct.pack(">iihqqii", 1, 0, 0, 0, 0, -1, 0))


def pcap_packet(
    sender: tuple[int, bytes], receiver: tuple[int, bytes], sequence: int, flags: int, payload: bytes
) -> bytes:
    """A pcap record of a raw IPv4 packet."""
    tcp = struct.pack(">HHIIBBHHH", sender[0], receiver[0], sequence, 0, 5 << 4, flags, 0, 0, 0) + payload
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0) + sender[1] + receiver[1]
    size = len(ip) + len(tcp)
    return struct.pack("<IIII", 1, 0, size, size) + ip + tcp


def sample_capture() -> bytes:
    """A pcap file (LINKTYPE_RAW) of one connection with one fetch, damaged before its last packet."""
    request, response = fetch_request(), fetch_response()
    return struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101) + b"".join(
        (
            pcap_packet(CLIENT, SERVER, 0, SYN, b""),
            pcap_packet(CLIENT, SERVER, 1, PUSH_ACK, request),
            pcap_packet(SERVER, CLIENT, 1, PUSH_ACK, response),
            bytes(RECORD_HEADER_BYTES),
            pcap_packet(CLIENT, SERVER, 1 + len(request), PUSH_ACK, b""),
        )
    )


def pcapng_block(kind: int, body: bytes) -> bytes:
    """A pcapng block."""
    length = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + length + body + length


def empty_pcapng() -> bytes:
    """A pcapng file of a section and an interface, without packets."""
    return pcapng_block(SECTION_HEADER, struct.pack("<IHHq", BYTE_ORDER_MAGIC, 1, 0, -1)) + pcapng_block(
        INTERFACE_DESCRIPTION, struct.pack("<HHI", 101, 0, 0)
    )


def read_sample_packets(store: PacketStore) -> Iterator[pa.RecordBatch]:
    """The packets of `sample_capture`, read from a file; they are also added to `store`."""
    for content in (empty_pcapng(), sample_capture()):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "warm-up"
            path.write_bytes(content)
            for part in index_capture(str(path), range_bytes=1 << 20, buckets=1, on_packets=store.add).ranges:
                yield from read_packets(part, file_no=0, buckets=1, batch_bytes=1 << 20)


def warm_up_reassembly() -> None:
    """Compile the kernels from a capture file to frames."""
    store = PacketStore(MemoryBudget(1 << 20))
    for _ in frames_by_chunk(read_sample_packets(store)):
        pass
    packets_by_connection([store.content], in_order=True).frames(range(1))
    dumped_connection(b"", None, None, 1)
    sizes_are_missing(pa.array([fetch_request()]))


def warm_up_decoding() -> None:
    """Compile the kernels from frames to silver rows."""
    request, response = fetch_request(), fetch_response()
    arena = np.frombuffer(request + response, np.uint8).copy()
    requests, responses = np.zeros(1, FRAME), np.zeros(1, FRAME)
    requests["start"], requests["size"] = SIZE_BYTES, len(request) - SIZE_BYTES
    requests["body_start"] = SIZE_BYTES + REQUEST_HEADER_BYTES
    requests["api_key"], requests["api_version"], requests["client_id_length"] = FETCH, VERSION, -1
    responses["start"], responses["size"] = len(request) + SIZE_BYTES, len(response) - SIZE_BYTES
    chunk = Frames(
        arena=arena,
        requests=requests,
        responses=responses,
        losses=np.zeros(0, LOSS),
        connections=np.zeros(1, FOLLOWED_CONNECTION),
        directions=np.zeros(2, DIRECTION),
        endpoints=[bytes(CONNECTION_BYTES)],
        finished=1,
    )
    for _ in tables_of_chunk(chunk, "", EarlierChunks()):
        pass
    resize_session(new_session(1), 1)  # as for a connection that goes on in a second chunk
    none = np.zeros(0, np.int64)
    session_of_entries(none, none, none.reshape(0, len(ENTRY_COLUMNS)), 0)  # as for one that goes on in a second set
    walk_messages(read_only(np.zeros(0, np.uint8)), np.zeros(4, np.int64))  # as for a compressed message set
    warm_up_column_functions(pa.array([VERSION]), pa.array([request]), pa.array([response]))


def warm_up_column_functions(version: pa.Array[Any], request: pa.Array[Any], response: pa.Array[Any]) -> None:
    """Compile the kernels from columns of frames to columns of structs."""
    request_header_column(request)
    request_column(FETCH_MESSAGES.request, version, request)
    response_column(FETCH_MESSAGES.response, version, response)


def warm_up_replay(of_replay: Callable[[], None]) -> None:
    """Compile the kernels that put the rows for a replay in order, and those of the replay."""
    order_of_rows(np.zeros(2, np.int64), [np.zeros(2, np.int64)] * 2)
    of_replay()


OF_REPLAYS = {
    algorithms.FETCH_MAX_BYTES: fetch_max_bytes.warm_up,
    algorithms.CONSUMER_MEMORY: consumer_memory.warm_up,
    algorithms.SESSION_CACHE: session_cache.warm_up,
    algorithms.BATCH_SPLIT: batch_split.warm_up,
    algorithms.PARTITION_LIMITS: partition_limits.warm_up,
}
RUNS: Mapping[str, Callable[[], None]] = {
    "capture": warm_up_reassembly,
    "facts": warm_up_decoding,
    **{name: partial(warm_up_replay, of_replay) for name, of_replay in OF_REPLAYS.items()},
}
"""The function that compiles each part; for a replay it is in the replay's package."""


def compile_part(part: str) -> None:
    """Compile a part's kernels, unless that is already done. If another process is doing it, wait for that process."""
    done = marker_of_part(part)
    with one_at_a_time(done.with_suffix(".lock")):
        if not done.exists():
            RUNS[part]()
            done.touch()


def load_kernels() -> None:
    """Load every compiled kernel into this process."""
    for part, run in RUNS.items():
        if marker_of_part(part).exists():
            run()


if __name__ == "__main__":
    for name in sys.argv[1:] or RUNS:
        compile_part(name)
