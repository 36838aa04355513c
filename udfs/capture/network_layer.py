"""IPv4 (RFC 791) and IPv6 (RFC 8200) headers: where the payload begins and ends, and its protocol."""

from __future__ import annotations

import numpy as np

from udfs.capture.byte_order import u16
from udfs.capture.link_layer import cut_verdict
from udfs.capture.packet_table import FRAGMENT, MALFORMED, NOT_IP, NOT_TCP, TCP_SEGMENT
from udfs.kernels.kernel import kernel

PROTOCOL_TCP = 6
HOP_BY_HOP, ROUTING, FRAGMENT_HEADER, AUTHENTICATION, DESTINATION_OPTIONS = 0, 43, 44, 51, 60
EXTENSIONS = (HOP_BY_HOP, ROUTING, FRAGMENT_HEADER, AUTHENTICATION, DESTINATION_OPTIONS)
IPV4_HEADER, IPV6_HEADER = 20, 40


@kernel
def _ipv4(chunk: np.ndarray, at: int, end: int, wire_end: int) -> tuple[int, int, int, int]:
    if at + IPV4_HEADER > end:
        return cut_verdict(at + IPV4_HEADER, wire_end), at, at, 0
    header = (int(np.int64(chunk[at])) & 0x0F) * 4
    total = u16(chunk, at + 2, True)
    if header < IPV4_HEADER or (total != 0 and total < header):
        return MALFORMED, at, at, 0
    protocol = int(np.int64(chunk[at + 9]))
    if u16(chunk, at + 6, True) & 0x3FFF:  # more fragments follow, or this is not the first
        return (FRAGMENT if protocol == PROTOCOL_TCP else NOT_TCP), at, at, protocol
    return TCP_SEGMENT, at + header, at + total if total else wire_end, protocol


@kernel
def _extension_bytes(chunk: np.ndarray, at: int, kind: int) -> int:
    if kind == FRAGMENT_HEADER:
        return 8
    if kind == AUTHENTICATION:
        return (int(np.int64(chunk[at + 1])) + 2) * 4
    return (int(np.int64(chunk[at + 1])) + 1) * 8


@kernel
def _skip_extensions(chunk: np.ndarray, at: int, end: int, wire_end: int, following: int) -> tuple[int, int, int]:
    """(TCP_SEGMENT or why not, where the IPv6 extension headers end, the protocol after them)."""
    while following in EXTENSIONS:
        if at + 8 > end:
            return cut_verdict(at + 8, wire_end), at, following
        kind, following = following, int(np.int64(chunk[at]))
        if kind == FRAGMENT_HEADER and u16(chunk, at + 2, True) & 0xFFF9:
            return (FRAGMENT if following == PROTOCOL_TCP or following in EXTENSIONS else NOT_TCP), at, following
        at += _extension_bytes(chunk, at, kind)
    return TCP_SEGMENT, at, following


@kernel
def _ipv6(chunk: np.ndarray, at: int, end: int, wire_end: int) -> tuple[int, int, int, int]:
    first = at + IPV6_HEADER
    if first > end:
        return cut_verdict(first, wire_end), at, at, 0
    length = u16(chunk, at + 4, True)
    verdict, transport, protocol = _skip_extensions(chunk, first, end, wire_end, int(np.int64(chunk[at + 6])))
    return verdict, transport, first + length if length else wire_end, protocol


@kernel
def find_transport_header(chunk: np.ndarray, at: int, end: int, wire_end: int) -> tuple[int, int, int, int, bool]:
    """(verdict, where the payload begins, where it ends on the wire, its protocol, whether the packet is IPv6).

    The verdict is TCP_SEGMENT for a payload of any protocol; with another verdict, there is no payload to read.
    chunk[at:end]: the captured part of the packet from its IP header on. wire_end: where the packet ended on the wire.
    The payload's end follows from the IP length, which leaves out Ethernet padding. The length is 0 if the network card
    had to cut the packet (TSO, or larger than 64 KiB); the payload then reaches to the end.
    """
    if at >= end:
        return cut_verdict(at + 1, wire_end), at, at, 0, False
    version = chunk[at] >> 4
    if version == 4:
        verdict, transport, ip_end, protocol = _ipv4(chunk, at, end, wire_end)
        return verdict, transport, ip_end, protocol, False
    if version == 6:
        verdict, transport, ip_end, protocol = _ipv6(chunk, at, end, wire_end)
        return verdict, transport, ip_end, protocol, True
    return NOT_IP, at, at, 0, False
