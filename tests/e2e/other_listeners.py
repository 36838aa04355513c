"""A capture with one listener per broker, rewritten as if brokers were deployed in another way: each on a host of its
own, with another listener for followers, or under host names.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tests.bench.repeated_capture import record_starts
from udfs.capture.pcap import FILE_HEADER_BYTES, RECORD_HEADER_BYTES

HOST = b"127.0.0.1"
ADDRESSES, PORTS, IP = (26, 30), (34, 36), 14
"""Offsets in a frame of Ethernet and IPv4 without options: the addresses and the ports of source and destination, and
the IPv4 header.
"""


def with_other_listeners(
    capture: Path,
    target: Path,
    nodes: Mapping[int, int],
    followers: Mapping[int, int],
    replication_port: int,
    host: bytes = b"10.10.0.%d",
    port: int = 9092,
) -> None:
    """Write the capture as if node N were at 10.10.0.N, with a listener for clients at `port` and one for followers at
    `replication_port`. Clients keep their addresses.

    capture: a little-endian pcap of Ethernet and IPv4 with all brokers on HOST. nodes: node id by a broker's port.
    followers: node id by the port of a client that is a follower. host: the host of node N in Metadata, as long as
    HOST.
    """
    content = capture.read_bytes()
    for own, node in nodes.items():
        content = content.replace(HOST + own.to_bytes(4, "big"), host % node + port.to_bytes(4, "big"))
    packets = np.frombuffer(content, np.uint8).copy()
    at = FILE_HEADER_BYTES + record_starts(content) + RECORD_HEADER_BYTES
    assert (packets[at + IP] == 0x45).all(), "IPv4 without options"
    ends = np.stack([packets[at + port].astype(np.int64) << 8 | packets[at + port + 1] for port in PORTS])
    by_broker, by_follower = (np.array([of.get(end, 0) for end in range(1 << 16)]) for of in (nodes, followers))
    is_replication = (by_follower[ends] > 0).any(axis=0)
    new_port = np.where(is_replication, replication_port, port)
    for address, port_at, end in zip(ADDRESSES, PORTS, ends, strict=True):
        node, is_broker = np.maximum(by_broker[end], by_follower[end]), by_broker[end] > 0
        for place, byte in enumerate((10, 10, 0)):
            packets[at[node > 0] + address + place] = byte
        packets[at[node > 0] + address + 3] = node[node > 0]
        packets[at[is_broker] + port_at] = (new_port >> 8)[is_broker]
        packets[at[is_broker] + port_at + 1] = (new_port & 0xFF)[is_broker]
    packets.tofile(target)
