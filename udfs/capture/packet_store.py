"""The packets of a file that matter to a connection, held in memory as they are parsed."""

from __future__ import annotations

import secrets
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from udfs.capture.capture_points import LAST_NS, FileOrder
from udfs.capture.digests import digest_on, mixed
from udfs.capture.packet_walk import PacketWalk
from udfs.capture.tcp_headers import CONNECTION_BYTES, TCP_PACKET
from udfs.columns.arrays import Bytes, Ints, Records, read_only
from udfs.columns.arrow_columns import binary_bytes, unwritten
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
            "number",  # in its file; once the set is held, with the file's
            "point",
            "sequence",
            "flags",
            "wire",  # payload bytes the packet had on the wire
            "captured",  # payload bytes that are held
            "source",  # where they begin
        )
    ]
)
EMPTY = -1
# What of a store is used, and what of that is a connection's.
PACKETS, BYTES, CONNECTIONS = range(3)
PACKET_BYTES = 64
"""Few packets take less in a file: room is made for so many, and more where there are more."""


class Content(NamedTuple):
    """Packets and their connections, which are numbered in the order of their first packets.

    packets:   HELD_PACKET[n]
    payload:   uint8, what was captured of all packets, one behind the other
    endpoints: uint8[connections, 36], by number
    amounts:   int64[connections, 2], by number: packets, and bytes of their payload that are held
    """

    packets: Records
    payload: Bytes
    endpoints: Bytes
    amounts: Ints


class Stored(NamedTuple):
    """Room for Content, and how much of it is used.

    slots:     int64, a power of two and at least twice as many as connections: number of the connection that has the
               slot, or EMPTY
    used:      int64[3]: packets, bytes of payload, connections
    """

    packets: Records
    payload: Bytes
    endpoints: Bytes
    amounts: Ints
    slots: Ints
    used: Ints


@kernel
def are_equal(left: Bytes, i: int, right: Bytes, j: int) -> bool:
    """Whether left[i] and right[j] are the same 36 bytes."""
    difference = 0
    for at in range(CONNECTION_BYTES):  # all of them: many at a time
        difference |= left[i, at] ^ right[j, at]
    return difference == 0


@kernel
def slot_of(keys: Bytes, row: int, seed: np.uint64, stored: Stored) -> int:
    """The slot of the connection keys[row], or the empty one that it can have."""
    last = len(stored.slots) - 1
    slot = np.int64(mixed(digest_on(seed, keys[row], 0, CONNECTION_BYTES))) & last
    while stored.slots[slot] != EMPTY and not are_equal(stored.endpoints, stored.slots[slot], keys, row):
        slot = (slot + 1) & last
    return int(slot)


@kernel
def number_of(keys: Bytes, row: int, seed: np.uint64, stored: Stored) -> int:
    """The number of the connection keys[row]; the next one for a connection that is new."""
    slot = slot_of(keys, row, seed, stored)
    if stored.slots[slot] == EMPTY:
        number = stored.used[CONNECTIONS]
        stored.slots[slot] = number
        stored.amounts[number] = 0
        for at in range(CONNECTION_BYTES):
            stored.endpoints[number, at] = keys[row, at]
        stored.used[CONNECTIONS] += 1
    return int(stored.slots[slot])


@kernel
def fill_slots(seed: np.uint64, stored: Stored) -> None:
    """Put the connections that there are into slots that are all empty."""
    for number in range(stored.used[CONNECTIONS]):
        stored.slots[slot_of(stored.endpoints, number, seed, stored)] = number


@kernel
def needed(tcp_packets: Records) -> tuple[int, int]:
    """How many of TCP_PACKET[n] are kept, and how many bytes of their payload there are."""
    packets = size = 0
    for i in range(len(tcp_packets)):
        if tcp_packets[i]["kept"]:
            packets += 1
            size += tcp_packets[i]["payload_captured"]
    return packets, size


@kernel
def store_packets(
    chunk: Bytes,
    tcp_packets: Records,
    connections: Bytes,
    times: Ints,
    latest_ns: int,
    first_number: int,
    seed: np.uint64,
    stored: Stored,
) -> int:
    """Add the packets that are kept of TCP_PACKET[n] and uint8[n, 36], for which there has to be room.

    times:        int64[n], ns
    latest_ns:    time of the latest packet before these, LAST_NS at most; returns it for those behind them
    first_number: of the first packet in its file
    """
    for i in range(len(tcp_packets)):
        tcp = tcp_packets[i]
        latest_ns = max(latest_ns, min(times[i], LAST_NS))
        if not tcp["kept"]:
            continue
        packet, at = stored.packets[stored.used[PACKETS]], stored.used[BYTES]
        captured, connection = int(tcp["payload_captured"]), number_of(connections, i, seed, stored)
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
    """Bytes that the packets of a set may take, whatever files they are in."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._taken = 0
        self._lock = Lock()

    def close(self) -> None:
        """Have nothing more, not even nothing, taken."""
        self.most_bytes = -1

    def take(self, size: int) -> None:
        """Count so many bytes more. Raises CaptureError where that is more than may be."""
        with self._lock:
            self._taken += size
        if self._taken > self.most_bytes:
            raise CaptureError(
                f"The packets take more than {self.most_bytes:,} bytes of memory, the most_bytes of open_capture. "
                "Allow it more, if this machine has as much several times over, or have `./spark-submit.sh ingest` "
                "read the files, which may be of any size."
            )


class PacketStore:
    """The packets of one file, in its order."""

    def __init__(self, memory: MemoryBudget, file_bytes: int = 0) -> None:
        """file_bytes: size of the file, by which room is made for what it may hold; more is made as needed."""
        self._memory = memory
        room = min(file_bytes, memory.most_bytes)
        # The system gives memory when it is first written to.
        self._stored = Stored(
            packets=unwritten(room // PACKET_BYTES, HELD_PACKET),
            payload=unwritten(room, np.uint8),
            endpoints=np.empty((0, CONNECTION_BYTES), np.uint8),
            amounts=np.empty((0, 2), np.int64),
            slots=np.full(1, EMPTY),
            used=np.zeros(3, np.int64),
        )
        self._seed = np.uint64(secrets.randbits(64))  # so that no file can have connections that all want one slot
        self._latest_ns = 0

    @property
    def content(self) -> Content:
        """What is there so far; its packets may be changed."""
        stored = self._stored
        packets, size, connections = stored.used.tolist()
        return Content(
            stored.packets[:packets], stored.payload[:size], stored.endpoints[:connections],
            stored.amounts[:connections],
        )  # fmt: skip

    def add(self, walk: PacketWalk, tcp_packets: Records, connections: Bytes) -> None:
        """Add what was parsed of a step of a walk (`udfs.capture.file_index.Parsed`)."""
        first = walk.packet_no - len(walk.packets)
        self._add(walk.window.chunk, tcp_packets, connections, walk.packets["ts_ns"], first)

    def add_batch(self, batch: pa.RecordBatch) -> None:
        """Add a batch of PACKETS that has its place among others (`FileOrder`) already."""
        starts, content = binary_bytes(batch["payload"])
        key_starts, keys = binary_bytes(batch["connection"])
        tcp_packets = np.zeros(batch.num_rows, TCP_PACKET)
        tcp_packets["kept"], tcp_packets["payload_offset"] = True, starts[:-1]
        tcp_packets["payload_captured"] = np.diff(starts)
        for name in ("direction", "seq", "flags", "payload_bytes"):
            tcp_packets[name] = batch[name].to_numpy()
        connections = keys[key_starts[0] : key_starts[-1]].reshape(-1, CONNECTION_BYTES)
        before = len(self.content.packets)
        self._add(content, tcp_packets, connections, batch["ts_ns"].to_numpy(), 0)
        added = self.content.packets[before:]
        for name, column in (("number", "packet_no"), ("point", "point"), ("sort_time", "sort_ns")):
            added[name] = batch[column].to_numpy()

    def place(self, order: FileOrder) -> None:
        """Date and order the packets as those of a file that is among others (`udfs.capture.capture_points`)."""
        packets = self.content.packets
        packets["point"] = order.point
        packets["sort_time"] = order.ordered(packets["sort_time"])
        packets["time"] = order.dated(packets["time"])

    def _add(self, chunk: Bytes, tcp_packets: Records, connections: Bytes, times: Ints, first: int) -> None:
        tcp_packets = read_only(tcp_packets)
        packets, size = needed(tcp_packets)
        self._memory.take(packets * HELD_PACKET.itemsize + size)
        self._make_room(packets, size)
        self._latest_ns = store_packets(
            read_only(chunk), tcp_packets, read_only(connections), read_only(times), self._latest_ns,
            first, self._seed, self._stored,
        )  # fmt: skip

    def _make_room(self, packets: int, size: int) -> None:
        stored = self._stored
        packets_now, bytes_now, connections_now = stored.used.tolist()
        connections = connections_now + packets
        self._stored = stored = stored._replace(
            packets=_roomy(stored.packets, packets_now, packets_now + packets),
            payload=_roomy(stored.payload, bytes_now, bytes_now + size),
            endpoints=_roomy(stored.endpoints, connections_now, connections),
            amounts=_roomy(stored.amounts, connections_now, connections),
        )
        if 2 * connections > len(stored.slots):
            self._stored = stored._replace(slots=np.full(4 << (2 * connections).bit_length(), EMPTY))
            fill_slots(self._seed, self._stored)


def _roomy(array: npt.NDArray[Any], used: int, needed: int) -> npt.NDArray[Any]:
    """The array, or a larger one with what is used of it, that has at least as many rows as are needed."""
    if needed <= len(array):
        return array
    larger = np.empty((max(needed, 2 * len(array)), *array.shape[1:]), array.dtype)
    larger[:used] = array[:used]
    return larger
