"""Keeps the packets of a file that matter to a connection in memory while the file is read."""

from __future__ import annotations

import secrets
from threading import Lock
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from udfs.capture.capture_points import LAST_NS, FileOrder
from udfs.capture.digests import continue_digest, mix_bits
from udfs.capture.packet_walk import PacketWalk
from udfs.capture.tcp_headers import CONNECTION_BYTES, TCP_PACKET, TcpPackets
from udfs.columns.arrays import Bytes, Ints, Records, read_only
from udfs.columns.arrow_columns import offsets_and_bytes, unwritten_array
from udfs.columns.records import with_free_records
from udfs.errors import CaptureError
from udfs.kernels.kernel import kernel
from udfs.wire.primitives import copy_bytes

HELD_PACKET = np.dtype(
    [
        (name, np.int64)
        for name in (
            "connection",  # its number
            "direction",
            "time",
            "sort_time",  # orders the packets of several files, as `sort_ns` of PACKETS does
            "number",  # in its file; once all files are joined, by `packet_number`
            "point",
            "sequence",
            "flags",
            "wire",  # payload bytes the packet had on the wire
            "captured",  # payload bytes that were captured
            "source",  # where the captured bytes begin in the payload of all packets
        )
    ]
)
EMPTY = -1
# Slots of `Stored.used`; the first two are also columns of `amounts`.
PACKETS, BYTES, CONNECTIONS = range(3)
PACKET_BYTES = 64
"""Few packets take fewer bytes in a file. The first room for a file's packets is made with this size, and more if it is
not enough."""


class Content(NamedTuple):
    """Packets and their connections, which are numbered in the order of their first packets.

    packets:   HELD_PACKET[n]
    payload:   uint8, the captured payload of all packets, one after the other
    endpoints: uint8[connections, 36], by number
    amounts:   int64[connections, 2], by number: packets, and bytes of their captured payload
    """

    packets: Records
    payload: Bytes
    endpoints: Bytes
    amounts: Ints


class Stored(NamedTuple):
    """Room for Content, how much of it is used, and a hash table of its connections.

    slots: int64, a power of two and at least twice as many as connections: number of the connection that has the slot,
           or EMPTY
    used:  int64[3]: packets, bytes of payload, connections
    seed:  of the hash table, so that no file can be made with connections that all get the same slot
    """

    packets: Records
    payload: Bytes
    endpoints: Bytes
    amounts: Ints
    slots: Ints
    used: Ints
    seed: np.uint64


@kernel
def are_same_connection(left: Bytes, i: int, right: Bytes, j: int) -> bool:
    """Whether left[i] and right[j] are the same 36 bytes."""
    difference = 0
    for at in range(CONNECTION_BYTES):  # all of them: many at a time
        difference |= left[i, at] ^ right[j, at]
    return difference == 0


@kernel
def slot_of_connection(keys: Bytes, row: int, stored: Stored) -> int:
    """The slot of the connection keys[row]; if it is new, the empty slot for it."""
    last = len(stored.slots) - 1
    slot = np.int64(mix_bits(continue_digest(stored.seed, keys[row], 0, CONNECTION_BYTES))) & last
    while stored.slots[slot] != EMPTY and not are_same_connection(stored.endpoints, stored.slots[slot], keys, row):
        slot = (slot + 1) & last
    return int(slot)


@kernel
def number_connection(keys: Bytes, row: int, stored: Stored) -> int:
    """The number of the connection keys[row]; a new connection is added and gets the next number."""
    slot = slot_of_connection(keys, row, stored)
    if stored.slots[slot] == EMPTY:
        number = stored.used[CONNECTIONS]
        stored.slots[slot] = number
        stored.amounts[number] = 0
        for at in range(CONNECTION_BYTES):
            stored.endpoints[number, at] = keys[row, at]
        stored.used[CONNECTIONS] += 1
    return int(stored.slots[slot])


@kernel
def fill_slots(stored: Stored) -> None:
    """Put all connections into the slots; all slots must be empty."""
    for number in range(stored.used[CONNECTIONS]):
        stored.slots[slot_of_connection(stored.endpoints, number, stored)] = number


@kernel
def count_kept(rows: Records) -> tuple[int, int]:
    """(how many of the rows, TCP_PACKET[n], are kept; the bytes of their captured payload)."""
    packets = size = 0
    for i in range(len(rows)):
        if rows[i]["kept"]:
            packets += 1
            size += rows[i]["payload_captured"]
    return packets, size


@kernel
def store_packets(
    chunk: Bytes, tcp_packets: TcpPackets, times: Ints, latest_ns: int, first_number: int, stored: Stored
) -> int:
    """Add those of the packets that are kept; the caller has made room for them.

    chunk:        uint8, with the payload
    times:        int64[n], ns since 1970
    latest_ns:    time of the latest packet before these, at most LAST_NS
    first_number: number of the first packet in its file

    Returns the `latest_ns` for the packets after these.
    """
    for i in range(len(tcp_packets.rows)):
        tcp = tcp_packets.rows[i]
        latest_ns = max(latest_ns, min(times[i], LAST_NS))
        if not tcp["kept"]:
            continue
        packet, at = stored.packets[stored.used[PACKETS]], stored.used[BYTES]
        captured, connection = int(tcp["payload_captured"]), number_connection(tcp_packets.connections, i, stored)
        packet["connection"] = connection
        packet["direction"], packet["flags"] = tcp["direction"], tcp["flags"]
        packet["time"], packet["sort_time"] = times[i], latest_ns
        packet["number"], packet["point"] = first_number + i, 0
        packet["sequence"], packet["wire"] = tcp["seq"], tcp["payload_bytes"]
        packet["captured"], packet["source"] = captured, at
        copy_bytes(chunk, tcp["payload_offset"], captured, stored.payload, at)
        stored.amounts[connection, PACKETS] += 1
        stored.amounts[connection, BYTES] += captured
        stored.used[PACKETS] += 1
        stored.used[BYTES] += captured
    return latest_ns


class MemoryBudget:
    """How many bytes the packets of a capture set may take, over all files."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._taken = 0
        self._lock = Lock()

    def close(self) -> None:
        """Refuse everything from now on, even 0 bytes."""
        self.most_bytes = -1

    def take(self, size: int) -> None:
        """Take this many bytes from the budget. Raises CaptureError if it has fewer left."""
        with self._lock:
            self._taken += size
        if self._taken > self.most_bytes:
            raise CaptureError(
                f"The packets take more than {self.most_bytes:,} bytes of memory, the most_bytes of open_capture. "
                "Allow more if this machine has several times as much, or let the job `ingest` read the "
                "files: it reads files of any size."
            )


class PacketStore:
    """The packets of one file, in its order."""

    def __init__(self, memory: MemoryBudget, file_bytes: int = 0) -> None:
        """file_bytes: size of the file. It decides how much room is made for packets at first."""
        self._memory = memory
        room = min(file_bytes, memory.most_bytes)
        # Unused room costs nothing: the system gives memory only when it is written to.
        self._stored = Stored(
            packets=unwritten_array(room // PACKET_BYTES, HELD_PACKET),
            payload=unwritten_array(room, np.uint8),
            endpoints=np.empty((0, CONNECTION_BYTES), np.uint8),
            amounts=np.empty((0, 2), np.int64),
            slots=np.full(1, EMPTY),
            used=np.zeros(3, np.int64),
            seed=np.uint64(secrets.randbits(64)),
        )
        self._latest_ns = 0

    @property
    def content(self) -> Content:
        """What has been added so far; the caller may change its packets."""
        stored = self._stored
        packets, size, connections = stored.used.tolist()
        return Content(
            stored.packets[:packets], stored.payload[:size], stored.endpoints[:connections],
            stored.amounts[:connections],
        )  # fmt: skip

    def add(self, walk: PacketWalk, tcp_packets: TcpPackets) -> None:
        """Add the last table of packets of a walk, and their headers (`udfs.capture.file_index.OnPackets`)."""
        first = walk.packet_no - len(walk.packets)
        self._add(walk.window.chunk, tcp_packets, walk.packets["ts_ns"], first)

    def add_batch(self, batch: pa.RecordBatch) -> None:
        """Add a batch of PACKETS that already has its place among others (`FileOrder`)."""
        starts, content = offsets_and_bytes(batch["payload"])
        key_starts, keys = offsets_and_bytes(batch["connection"])
        rows = np.zeros(batch.num_rows, TCP_PACKET)
        rows["kept"], rows["payload_offset"] = True, starts[:-1]
        rows["payload_captured"] = np.diff(starts)
        for name in ("direction", "seq", "flags", "payload_bytes"):
            rows[name] = batch[name].to_numpy()
        connections = keys[key_starts[0] : key_starts[-1]].reshape(-1, CONNECTION_BYTES)
        before = len(self.content.packets)
        self._add(content, TcpPackets(rows, connections), batch["ts_ns"].to_numpy(), 0)
        added = self.content.packets[before:]
        for name, column in (("number", "packet_no"), ("point", "point"), ("sort_time", "sort_ns")):
            added[name] = batch[column].to_numpy()

    def place(self, order: FileOrder) -> None:
        """Set the packets' times, order and capture point from the file's place among others."""
        packets = self.content.packets
        packets["point"] = order.point
        packets["sort_time"] = order.ordered(packets["sort_time"])
        packets["time"] = order.dated(packets["time"])

    def _add(self, chunk: Bytes, tcp_packets: TcpPackets, times: Ints, first: int) -> None:
        tcp_packets = TcpPackets(read_only(tcp_packets.rows), read_only(tcp_packets.connections))
        packets, size = count_kept(tcp_packets.rows)
        self._memory.take(packets * HELD_PACKET.itemsize + size)
        self._make_room(packets, size)
        self._latest_ns = store_packets(
            read_only(chunk), tcp_packets, read_only(times), self._latest_ns, first, self._stored
        )

    def _make_room(self, packets: int, size: int) -> None:
        stored = self._stored
        used_packets, used_bytes, used_connections = stored.used.tolist()
        connections = used_connections + packets
        self._stored = stored = stored._replace(
            packets=with_free_records(stored.packets, used_packets, packets),
            payload=with_free_records(stored.payload, used_bytes, size),
            endpoints=with_free_records(stored.endpoints, used_connections, packets),
            amounts=with_free_records(stored.amounts, used_connections, packets),
        )
        if 2 * connections > len(stored.slots):
            self._stored = stored._replace(slots=np.full(4 << (2 * connections).bit_length(), EMPTY))
            fill_slots(self._stored)
