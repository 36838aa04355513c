"""All packets of a capture set in memory, grouped by connection, so that any connection's frames can be read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from udfs.capture.packet_chunks import Frames, UnfinishedConnection, packet_number, run_chunk
from udfs.capture.packet_store import HELD_PACKET, PACKETS, Content
from udfs.capture.segments import Packets
from udfs.capture.tcp_headers import CONNECTION_BYTES
from udfs.columns.arrays import Ints, Records, read_only, stretch_edges
from udfs.columns.picking import pick_columns
from udfs.columns.sentinels import UNKNOWN
from udfs.kernels.kernel import kernel

PACKET_COST_BYTES = 256
"""Reading a packet takes about as long as reading this many bytes of payload."""
_FIELDS = dict.fromkeys((name for name in HELD_PACKET.names or () if name != "sort_time"), 0)


@dataclass(frozen=True, eq=False, repr=False)
class PacketsByConnection:
    """Packets, and which of them belong to each connection.

    content: the packets, numbered by `packet_number`
    rows:    int64[packets], rows of the packets by connection, within a connection in the order in which they are read
    ends:    int64[connections + 1], where each connection begins in `rows`, and the end of the last one
    """

    content: Content
    rows: Ints
    ends: Ints

    @property
    def cost(self) -> int:
        """The approximate time to read all packets, as a number of payload bytes that take equally long."""
        return self.content.payload.size + PACKET_COST_BYTES * self.rows.size

    def parts(self, most: int) -> list[range]:
        """At most `most` ranges of connections that take about the same time."""
        cost = np.cumsum(self.content.amounts @ np.array([PACKET_COST_BYTES, 1]))
        cuts = np.searchsorted(cost, np.arange(1, most) * (self.cost / most)) + 1
        bounds = np.unique(np.minimum([0, *cuts, len(cost)], len(cost))).tolist()
        return [range(first, end) for first, end in pairwise(bounds)]

    def frames(self, connections: range) -> Frames:
        """The frames of a range of connections, each read to its end."""
        rows = self.rows[self.ends[connections.start] : self.ends[connections.stop]]
        column = pick_columns(self.content.packets, _FIELDS, rows)
        packets = Packets(
            run=column.pop("connection") - connections.start,
            place=np.arange(len(rows)),
            offset=np.full(len(rows), UNKNOWN),
            payload=self.content.payload,
            **column,
        )
        endpoints = [ends.tobytes() for ends in self.content.endpoints[connections.start : connections.stop]]
        return run_chunk(packets, endpoints, UnfinishedConnection(), is_last=True)[0]


def packets_by_connection(files: Sequence[Content], *, in_order: bool) -> PacketsByConnection:
    """Group the packets of files by connection; each file has its place among the others (`PacketStore.place`).

    in_order: whether the packets of each connection already come in the order in which they are read
    """
    content = files[0] if len(files) == 1 else join_contents(files)
    packets = content.packets
    ends = stretch_edges(content.amounts[:, PACKETS])
    rows = np.empty(len(packets), np.int64)
    group_by_connection(read_only(packets), ends[:-1].copy(), rows)
    if not in_order:
        rows = np.lexsort((packets["number"], packets["sort_time"], packets["connection"]))
    return PacketsByConnection(content, rows, ends)


def join_contents(files: Sequence[Content]) -> Content:
    """The content of all files as one. This changes the packets of `files`."""
    known: dict[bytes, int] = {}
    numbers = [
        np.array([known.setdefault(ends.tobytes(), len(known)) for ends in file.endpoints], np.int64) for file in files
    ]
    amounts = np.zeros((len(known), 2), np.int64)
    before = stretch_edges([file.payload.size for file in files])
    for file_no, (file, number) in enumerate(zip(files, numbers, strict=True)):
        amounts[number] += file.amounts
        file.packets["connection"] = number[file.packets["connection"]]
        file.packets["source"] += before[file_no]
        file.packets["number"] = packet_number(np.full(1, file_no), file.packets["number"])
    return Content(
        packets=np.concatenate([file.packets for file in files]),
        payload=np.concatenate([file.payload for file in files]),
        endpoints=np.frombuffer(b"".join(known), np.uint8).reshape(len(known), CONNECTION_BYTES),
        amounts=amounts,
    )


@kernel
def group_by_connection(packets: Records, places: Ints, rows: Ints) -> None:
    """Write to `rows` the row numbers of packets, HELD_PACKET[n], by connection; within one they keep their order.

    places: int64[connections], where the rows of each connection begin in `rows`; overwritten.
    """
    for row in range(len(packets)):
        connection = packets[row]["connection"]
        rows[places[connection]] = row
        places[connection] += 1
