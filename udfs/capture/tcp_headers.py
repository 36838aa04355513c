"""TCP headers (RFC 9293) of a table of packets, with the connection each belongs to."""

from __future__ import annotations

import numpy as np

from udfs.capture.byte_order import u16, u32
from udfs.capture.digests import SEED, digest_on, mixed
from udfs.capture.envelopes import open_envelope
from udfs.capture.link_layer import find_network_header, missing
from udfs.capture.network_layer import PROTOCOL_TCP, find_transport_header
from udfs.capture.packet_table import LONGEST_RECORD, MALFORMED, NOT_TCP, PACKETS_PER_TABLE, TCP_SEGMENT, UNREADABLE
from udfs.kernels.kernel import kernel
from udfs.wire.primitives import cell, copy_bytes

TCP_HEADER = 20
MOST_ENVELOPES = 4
"""An overlay in a mirror's envelope, sent through a load balancer's, takes three."""
FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10
ENDPOINT_BYTES = 18
CONNECTION_BYTES = 2 * ENDPOINT_BYTES

TCP_PACKET = np.dtype(
    [
        ("verdict", np.int64),  # TCP_SEGMENT, or why the packet is none; the other fields are set for TCP_SEGMENT only
        ("kept", np.bool_),  # carries payload, SYN, FIN or RST
        ("direction", np.int8),  # 0 = sent by the lower endpoint, 1 = by the higher
        ("bucket", np.int32),
        ("flags", np.int16),  # the header's 12 bits: reserved, AE, CWR ... FIN
        ("seq", np.int64),
        ("header_offset", np.int64),  # of the TCP header in the chunk
        ("payload_offset", np.int64),  # in the chunk
        ("payload_captured", np.int32),  # bytes in the chunk
        ("payload_bytes", np.int32),  # bytes on the wire
    ]
)


@kernel
def bucket_of(connection: np.ndarray, buckets: int) -> int:
    """The bucket, below `buckets`, of a connection by its 36 bytes."""
    return int(np.int64(mixed(digest_on(SEED, connection, 0, CONNECTION_BYTES)) % np.uint64(buckets)))


@kernel
def _put_endpoint(chunk: np.ndarray, address: int, port: int, ipv6: bool, endpoints: np.ndarray, at: int) -> None:
    """16 bytes of address (IPv4 as ::ffff:a.b.c.d, RFC 4291 2.5.5.2), then the port, big endian, from `at` on."""
    if ipv6:
        copy_bytes(chunk, address, 16, endpoints, at)
    else:
        for i in range(10):
            endpoints[np.uint64(at + i)] = 0
        for i in range(10, 12):
            endpoints[np.uint64(at + i)] = 0xFF
        copy_bytes(chunk, address, 4, endpoints, at + 12)
    copy_bytes(chunk, port, 2, endpoints, at + 16)


@kernel
def _put_connection(chunk: np.ndarray, network: int, transport: int, ipv6: bool, connection: np.ndarray) -> int:
    """Fill `connection` (36 bytes: lower endpoint, higher endpoint) and return the packet's direction."""
    source = network + (8 if ipv6 else 12)
    size = 16 if ipv6 else 4
    direction = 0
    for i in range(size + 2):
        ours, theirs = cell(chunk, source + i), cell(chunk, source + size + i)
        if i >= size:
            ours, theirs = cell(chunk, transport + i - size), cell(chunk, transport + 2 + i - size)
        if ours != theirs:
            direction = int(ours > theirs)
            break
    sender = direction * ENDPOINT_BYTES
    _put_endpoint(chunk, source, transport, ipv6, connection, sender)
    _put_endpoint(chunk, source + size, transport + 2, ipv6, connection, ENDPOINT_BYTES - sender)
    return direction


@kernel
def _check_tcp(chunk: np.ndarray, at: int, end: int, ip_end: int, wire_end: int) -> tuple[int, int]:
    """Verdict on the TCP header at `at` and where its payload begins."""
    if at + TCP_HEADER > ip_end:
        return MALFORMED, at
    if at + TCP_HEADER > end:
        return missing(at + TCP_HEADER, wire_end), at
    payload = at + (u16(chunk, at + 12, True) >> 12) * 4
    if payload < at + TCP_HEADER or payload > ip_end or ip_end - payload > LONGEST_RECORD:
        return MALFORMED, at
    return TCP_SEGMENT, payload


@kernel
def _find_tcp_header(
    chunk: np.ndarray, at: int, end: int, wire_end: int, link_type: int
) -> tuple[int, int, int, bool, int, int, int]:
    """Verdict, where IP and TCP begin, whether it is IPv6, and where TCP and the packet end: captured and on the wire.

    All of the innermost packet. One in an envelope ends where the outer IP packet does.
    """
    transport = ip_end = at
    ipv6 = False
    verdict, network = find_network_header(chunk, at, end, wire_end, link_type)
    for _ in range(1 + MOST_ENVELOPES):
        if verdict != TCP_SEGMENT:
            return verdict, network, transport, ipv6, ip_end, end, wire_end
        verdict, transport, ip_end, protocol, ipv6 = find_transport_header(chunk, network, end, wire_end)
        if verdict != TCP_SEGMENT or protocol == PROTOCOL_TCP:
            return verdict, network, transport, ipv6, ip_end, end, wire_end
        end, wire_end = min(end, ip_end), ip_end
        verdict, network = open_envelope(chunk, protocol, transport, end, wire_end)
    return NOT_TCP, network, transport, ipv6, ip_end, end, wire_end


@kernel
def _parse_tcp(
    chunk: np.ndarray, at: int, end: int, wire_end: int, link_type: int, tcp: np.void, connection: np.ndarray
) -> int:
    """Fill `tcp` and `connection` from the packet in `chunk[at:end]` and return the verdict."""
    verdict, network, transport, ipv6, ip_end, end, wire_end = _find_tcp_header(chunk, at, end, wire_end, link_type)
    if verdict != TCP_SEGMENT:
        return verdict
    verdict, payload = _check_tcp(chunk, transport, end, ip_end, wire_end)
    if verdict != TCP_SEGMENT:
        return verdict
    tcp["header_offset"] = transport
    tcp["seq"] = u32(chunk, transport + 4, True)
    tcp["flags"] = u16(chunk, transport + 12, True) & 0x0FFF
    tcp["payload_offset"] = payload
    tcp["payload_bytes"] = ip_end - payload
    tcp["payload_captured"] = max(min(end, ip_end) - payload, 0)
    tcp["kept"] = tcp["payload_bytes"] > 0 or (tcp["flags"] & (SYN | FIN | RST)) != 0
    if tcp["kept"]:
        tcp["direction"] = _put_connection(chunk, network, transport, ipv6, connection)
    return TCP_SEGMENT


@kernel
def parse_tcp_packets(
    chunk: np.ndarray, packets: np.ndarray, buckets: int, tcp_packets: np.ndarray, connections: np.ndarray
) -> None:
    """Fill one row of `tcp_packets` (TCP_PACKET[n]) and `connections` (uint8[n, 36]) for each of `packets` (PACKET[n]).

    The packets lie inside `chunk`. A connection and its bucket are filled where `kept` is set.
    """
    for i in range(len(packets)):
        packet, tcp = packets[i], tcp_packets[i]
        tcp["kept"] = False
        tcp["payload_captured"] = 0
        tcp["payload_bytes"] = 0
        if packet["link_type"] == UNREADABLE:
            tcp["verdict"] = MALFORMED
            continue
        end, wire_end = packet["offset"] + packet["captured"], packet["offset"] + packet["original"]
        tcp["verdict"] = _parse_tcp(chunk, packet["offset"], end, wire_end, packet["link_type"], tcp, connections[i])
        if tcp["kept"]:
            tcp["bucket"] = bucket_of(connections[i], buckets)


class TcpTable:
    """Room for the TCP headers of one table of packets, used again for the next."""

    def __init__(self, buckets: int) -> None:
        self._buckets = buckets
        self._tcp_packets = np.empty(PACKETS_PER_TABLE, TCP_PACKET)
        self._connections = np.empty((PACKETS_PER_TABLE, CONNECTION_BYTES), np.uint8)

    def parse(self, chunk: np.ndarray, packets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """TCP_PACKET[n] and uint8[n, 36] for `packets` (PACKET[n], n <= PACKETS_PER_TABLE), until the next call."""
        tcp_packets, connections = self._tcp_packets[: len(packets)], self._connections[: len(packets)]
        parse_tcp_packets(chunk, packets, self._buckets, tcp_packets, connections)
        return tcp_packets, connections
