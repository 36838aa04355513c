"""TCP headers (RFC 9293) of a table of packets, with the connection of each packet."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.capture.byte_order import u16, u32
from udfs.capture.digests import SEED, continue_digest, mix_bits
from udfs.capture.envelopes import open_envelope
from udfs.capture.link_layer import cut_verdict, find_network_header
from udfs.capture.network_layer import PROTOCOL_TCP, find_transport_header
from udfs.capture.packet_table import LONGEST_RECORD, MALFORMED, NOT_TCP, PACKETS_PER_TABLE, TCP_SEGMENT, UNREADABLE
from udfs.kernels.kernel import kernel
from udfs.wire.primitives import cell, copy_bytes

TCP_HEADER = 20
MOST_ENVELOPES = 4
"""How many envelopes around a packet are opened. A mirrored packet of an overlay with a load balancer has three."""
FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10
ENDPOINT_BYTES = 18
CONNECTION_BYTES = 2 * ENDPOINT_BYTES

TCP_PACKET = np.dtype(
    [
        ("verdict", np.int64),  # TCP_SEGMENT (only then the other fields are set), or why the packet is no TCP segment
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


class TcpPackets(NamedTuple):
    """What the headers of packets say, in the order of the packets. A connection is filled in only if `kept` is set.

    rows: TCP_PACKET[n]. connections: uint8[n, 36], the lower endpoint, then the higher.
    """

    rows: np.ndarray
    connections: np.ndarray


class HeaderPlaces(NamedTuple):
    """Where the headers of the innermost packet are in a chunk, if `verdict` is TCP_SEGMENT.

    network, transport: where its IP and TCP headers begin. ip_end: where it ends by its own IP header. end, wire_end:
    where it ends as captured and on the wire; a packet in an envelope ends where the outer IP packet ends.
    """

    verdict: int
    network: int
    transport: int
    is_ipv6: bool
    ip_end: int
    end: int
    wire_end: int


@kernel
def bucket_of_connection(connection: np.ndarray, buckets: int) -> int:
    """The bucket, below `buckets`, of a connection; connection: its 36 bytes."""
    return int(np.int64(mix_bits(continue_digest(SEED, connection, 0, CONNECTION_BYTES)) % np.uint64(buckets)))


@kernel
def _put_endpoint(chunk: np.ndarray, address: int, port: int, is_ipv6: bool, endpoints: np.ndarray, at: int) -> None:
    """Write 16 bytes of address (IPv4 as ::ffff:a.b.c.d, RFC 4291 2.5.5.2) and the port, big endian, from `at` on."""
    if is_ipv6:
        copy_bytes(chunk, address, 16, endpoints, at)
    else:
        for i in range(10):
            endpoints[np.uint64(at + i)] = 0
        for i in range(10, 12):
            endpoints[np.uint64(at + i)] = 0xFF
        copy_bytes(chunk, address, 4, endpoints, at + 12)
    copy_bytes(chunk, port, 2, endpoints, at + 16)


@kernel
def _put_connection(chunk: np.ndarray, places: HeaderPlaces, connection: np.ndarray) -> int:
    """Fill `connection` (36 bytes: lower endpoint, higher endpoint) and return the packet's direction."""
    is_ipv6, transport = places.is_ipv6, places.transport
    source = places.network + (8 if is_ipv6 else 12)
    size = 16 if is_ipv6 else 4
    direction = 0
    for i in range(size + 2):
        sent_from, sent_to = cell(chunk, source + i), cell(chunk, source + size + i)
        if i >= size:
            sent_from, sent_to = cell(chunk, transport + i - size), cell(chunk, transport + 2 + i - size)
        if sent_from != sent_to:
            direction = int(sent_from > sent_to)
            break
    sender = direction * ENDPOINT_BYTES
    _put_endpoint(chunk, source, transport, is_ipv6, connection, sender)
    _put_endpoint(chunk, source + size, transport + 2, is_ipv6, connection, ENDPOINT_BYTES - sender)
    return direction


@kernel
def _check_tcp(chunk: np.ndarray, places: HeaderPlaces) -> tuple[int, int]:
    """(verdict on the TCP header, where its payload begins)."""
    at, ip_end = places.transport, places.ip_end
    if at + TCP_HEADER > ip_end:
        return MALFORMED, at
    if at + TCP_HEADER > places.end:
        return cut_verdict(at + TCP_HEADER, places.wire_end), at
    payload = at + (u16(chunk, at + 12, True) >> 12) * 4
    if payload < at + TCP_HEADER or payload > ip_end or ip_end - payload > LONGEST_RECORD:
        return MALFORMED, at
    return TCP_SEGMENT, payload


@kernel
def _find_tcp_header(chunk: np.ndarray, at: int, end: int, wire_end: int, link_type: int) -> HeaderPlaces:
    """The verdict on the packet in `chunk[at:end]`, and where its headers are; wire_end: its end on the wire."""
    transport = ip_end = at
    is_ipv6 = False
    verdict, network = find_network_header(chunk, at, end, wire_end, link_type)
    for _ in range(1 + MOST_ENVELOPES):
        if verdict != TCP_SEGMENT:
            break
        verdict, transport, ip_end, protocol, is_ipv6 = find_transport_header(chunk, network, end, wire_end)
        if verdict != TCP_SEGMENT or protocol == PROTOCOL_TCP:
            break
        end, wire_end = min(end, ip_end), ip_end
        verdict, network = open_envelope(chunk, protocol, transport, end, wire_end)
    else:
        verdict = NOT_TCP
    return HeaderPlaces(
        verdict=verdict,
        network=network,
        transport=transport,
        is_ipv6=is_ipv6,
        ip_end=ip_end,
        end=end,
        wire_end=wire_end,
    )


@kernel
def _parse_tcp(chunk: np.ndarray, packet: np.void, tcp: np.void, connection: np.ndarray) -> int:
    """Fill `tcp`, a TCP_PACKET, and `connection` from a PACKET of the chunk, and return the verdict."""
    at = packet["offset"]
    places = _find_tcp_header(chunk, at, at + packet["captured"], at + packet["original"], packet["link_type"])
    if places.verdict != TCP_SEGMENT:
        return places.verdict
    verdict, payload = _check_tcp(chunk, places)
    if verdict != TCP_SEGMENT:
        return verdict
    transport, ip_end = places.transport, places.ip_end
    tcp["header_offset"] = transport
    tcp["seq"] = u32(chunk, transport + 4, True)
    tcp["flags"] = u16(chunk, transport + 12, True) & 0x0FFF
    tcp["payload_offset"] = payload
    tcp["payload_bytes"] = ip_end - payload
    tcp["payload_captured"] = max(min(places.end, ip_end) - payload, 0)
    tcp["kept"] = tcp["payload_bytes"] > 0 or (tcp["flags"] & (SYN | FIN | RST)) != 0
    if tcp["kept"]:
        tcp["direction"] = _put_connection(chunk, places, connection)
    return TCP_SEGMENT


@kernel
def parse_tcp_packets(chunk: np.ndarray, packets: np.ndarray, buckets: int, tcp_packets: TcpPackets) -> None:
    """Fill a row of `tcp_packets` for each of the packets of the chunk, PACKET[n]."""
    for i in range(len(packets)):
        packet, tcp, connection = packets[i], tcp_packets.rows[i], tcp_packets.connections[i]
        tcp["kept"] = False
        tcp["payload_captured"] = 0
        tcp["payload_bytes"] = 0
        if packet["link_type"] == UNREADABLE:
            tcp["verdict"] = MALFORMED
            continue
        tcp["verdict"] = _parse_tcp(chunk, packet, tcp, connection)
        if tcp["kept"]:
            tcp["bucket"] = bucket_of_connection(connection, buckets)


class TcpTable:
    """Memory for the TCP headers of a table of packets. It is used again for each table."""

    def __init__(self, buckets: int) -> None:
        self._buckets = buckets
        self._rows = np.empty(PACKETS_PER_TABLE, TCP_PACKET)
        self._connections = np.empty((PACKETS_PER_TABLE, CONNECTION_BYTES), np.uint8)

    def parse(self, chunk: np.ndarray, packets: np.ndarray) -> TcpPackets:
        """The headers of packets, PACKET[n] with n <= PACKETS_PER_TABLE. They are valid until the next call."""
        tcp_packets = TcpPackets(self._rows[: len(packets)], self._connections[: len(packets)])
        parse_tcp_packets(chunk, packets, self._buckets, tcp_packets)
        return tcp_packets
