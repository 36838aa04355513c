"""The packets of a capture set held in memory, and the frames of any of its connections: reading without a shuffle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from udfs.capture.packet_chunks import Carried, Frames, packet_number, run_chunk
from udfs.capture.packet_store import HELD_PACKET, PACKETS, Content
from udfs.capture.segments import UNKNOWN, Packets
from udfs.capture.tcp_headers import CONNECTION_BYTES
from udfs.columns.arrays import Ints, Records, edges, read_only
from udfs.columns.picking import columns_of
from udfs.kernels.kernel import kernel

PACKET_COST_BYTES = 256
"""A packet takes about as long as so many bytes of payload do."""
_FIELDS = dict.fromkeys((name for name in HELD_PACKET.names or () if name != "sort_time"), 0)


@dataclass(frozen=True, eq=False, repr=False)
class HeldPackets:
    """Packets, and which of them are each connection's.

    content: the packets' numbers are as of `packet_number`
    rows:    packets by connection, those of one in the order in which they are followed; int64[packets]
    ends:    where the packets of each connection begin in `rows`, and the last end; int64[connections + 1]
    """

    content: Content
    rows: Ints
    ends: Ints

    @property
    def cost(self) -> int:
        """About how long all take: in bytes of payload that take as long."""
        return self.content.payload.size + PACKET_COST_BYTES * self.rows.size

    def parts(self, most: int) -> list[range]:
        """Neighbouring connections that take about as long as others, in at most so many parts."""
        cost = np.cumsum(self.content.amounts @ np.array([PACKET_COST_BYTES, 1]))
        cuts = np.searchsorted(cost, np.arange(1, most) * (self.cost / most)) + 1
        bounds = np.unique(np.minimum([0, *cuts, len(cost)], len(cost))).tolist()
        return [range(first, end) for first, end in pairwise(bounds)]

    def frames(self, connections: range) -> Frames:
        """The frames of neighbouring connections, each followed to its end."""
        rows = self.rows[self.ends[connections.start] : self.ends[connections.stop]]
        column = columns_of(self.content.packets, _FIELDS, rows)
        packets = Packets(
            run=column.pop("connection") - connections.start,
            place=np.arange(len(rows)),
            offset=np.full(len(rows), UNKNOWN),
            payload=self.content.payload,
            **column,
        )
        endpoints = [ends.tobytes() for ends in self.content.endpoints[connections.start : connections.stop]]
        return run_chunk(packets, endpoints, Carried(), is_last=True)[0]


def held(files: Sequence[Content], *, in_order: bool) -> HeldPackets:
    """The packets of placed files, in the order of their numbers.

    in_order: those of each connection come in the order in which they are followed
    """
    content = files[0] if len(files) == 1 else joined(files)
    packets = content.packets
    ends = edges(content.amounts[:, PACKETS])
    rows = np.empty(len(packets), np.int64)
    put_together(read_only(packets), ends[:-1].copy(), rows)
    if not in_order:
        rows = np.lexsort((packets["number"], packets["sort_time"], packets["connection"]))
    return HeldPackets(content, rows, ends)


def joined(files: Sequence[Content]) -> Content:
    """All files as one; their packets change."""
    known: dict[bytes, int] = {}
    numbers = [
        np.array([known.setdefault(ends.tobytes(), len(known)) for ends in file.endpoints], np.int64) for file in files
    ]
    amounts = np.zeros((len(known), 2), np.int64)
    before = edges([file.payload.size for file in files])
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
def put_together(packets: Records, places: Ints, rows: Ints) -> None:
    """Write the rows of HELD_PACKET[n] by their connections, those of one in their order.

    places: int64, where the rows of each connection begin; changes
    """
    for row in range(len(packets)):
        connection = packets[row]["connection"]
        rows[places[connection]] = row
        places[connection] += 1
