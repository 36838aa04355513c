"""Envelopes: IP packets that carry another packet, as overlays, tunnels and port mirrors send them.

The functions find the IP header of the inner packet in the payload of the outer one. A packet that is no envelope, or
whose envelope cannot be read, is NOT_TCP like a packet of any other protocol.
"""

from __future__ import annotations

import numpy as np

from udfs.capture.byte_order import u16, u32
from udfs.capture.link_layer import ETHERNET, ETHERTYPE_IPV4, after_ethertype, cut_verdict, find_network_header
from udfs.capture.packet_table import NOT_IP, NOT_TCP, TCP_SEGMENT
from udfs.kernels.kernel import kernel

IPV4_IN_IP, UDP, IPV6_IN_IP, GRE = 4, 17, 41, 47
UDP_HEADER, VXLAN_HEADER, GENEVE_HEADER = 8, 8, 8
VXLAN_PORTS = (4789, 8472)  # IANA's port, and Linux's earlier one, which overlays still use
GENEVE_PORT = 6081
VXLAN_FLAGS = 0x0800_0000  # "has an identifier" and no other (RFC 7348)
# With a group policy (draft-smith-vxlan-group-policy) flag G is set, D and A may be set, and 16 bits are the group's.
GROUP_FLAGS, GROUP_MASK = 0x8800_0000, 0xFFB7_0000
GENEVE_CONTROL_AND_RESERVED = 0xBF
GRE_CHECKSUM, GRE_KEY, GRE_SEQUENCE = 0x8000, 0x2000, 0x1000
TRANSPARENT_ETHERNET, ERSPAN, ERSPAN_3 = 0x6558, 0x88BE, 0x22EB
ERSPAN_2_HEADER, ERSPAN_3_HEADER, ERSPAN_3_SUBHEADER = 8, 12, 8


@kernel
def _behind_erspan(
    chunk: np.ndarray, at: int, end: int, wire_end: int, ethertype: int, has_sequence: bool
) -> tuple[int, int]:
    """(verdict, where the Ethernet frame in an ERSPAN packet begins) by draft-foschiano-erspan."""
    if ethertype == ERSPAN and not has_sequence:  # type I has no header
        return TCP_SEGMENT, at
    size = ERSPAN_2_HEADER if ethertype == ERSPAN else ERSPAN_3_HEADER
    if at + size > end:
        return cut_verdict(at + size, wire_end), at
    version = chunk[at] >> 4
    if ethertype == ERSPAN:
        return (TCP_SEGMENT if version == 1 else NOT_TCP), at + size
    flags = u16(chunk, at + 10, True)
    if flags & 1:
        size += ERSPAN_3_SUBHEADER
    is_frame = (flags >> 10 & 0x1F) == 0
    return (TCP_SEGMENT if version == 2 and is_frame else NOT_TCP), at + size


@kernel
def _behind_gre(chunk: np.ndarray, at: int, end: int, wire_end: int) -> tuple[int, int, int]:
    """(verdict, where the payload of a GRE packet begins, its ethertype) by RFC 2784 and RFC 2890.

    Packets with source routes (RFC 1701) and those of PPTP's version 1 (RFC 2637) are not read.
    """
    if at + 4 > end:
        return cut_verdict(at + 4, wire_end), at, 0
    flags, ethertype = u16(chunk, at, True), u16(chunk, at + 2, True)
    if flags & ~(GRE_CHECKSUM | GRE_KEY | GRE_SEQUENCE):
        return NOT_TCP, at, 0
    at += 4
    for option in (GRE_CHECKSUM, GRE_KEY, GRE_SEQUENCE):
        if flags & option:
            at += 4
    if ethertype != ERSPAN and ethertype != ERSPAN_3:
        return TCP_SEGMENT, at, ethertype
    verdict, frame = _behind_erspan(chunk, at, end, wire_end, ethertype, (flags & GRE_SEQUENCE) != 0)
    return verdict, frame, TRANSPARENT_ETHERNET


@kernel
def _behind_vxlan(chunk: np.ndarray, at: int, end: int, wire_end: int) -> tuple[int, int, int]:
    if at + VXLAN_HEADER > end:
        return cut_verdict(at + VXLAN_HEADER, wire_end), at, 0
    flags = u32(chunk, at, True)
    is_vxlan = (flags == VXLAN_FLAGS or (flags & GROUP_MASK) == GROUP_FLAGS) and chunk[at + 7] == 0
    return (TCP_SEGMENT if is_vxlan else NOT_TCP), at + VXLAN_HEADER, TRANSPARENT_ETHERNET


@kernel
def _behind_geneve(chunk: np.ndarray, at: int, end: int, wire_end: int) -> tuple[int, int, int]:
    """(verdict, where the payload of a GENEVE packet begins, its ethertype) by RFC 8926.

    Control packets, which one end of the tunnel sends to the other (flag O), are not read.
    """
    if at + GENEVE_HEADER > end:
        return cut_verdict(at + GENEVE_HEADER, wire_end), at, 0
    version, words = chunk[at] >> 6, int(np.int64(chunk[at] & 0x3F))
    is_geneve = version == 0 and (chunk[at + 1] & GENEVE_CONTROL_AND_RESERVED) == 0 and chunk[at + 7] == 0
    return (TCP_SEGMENT if is_geneve else NOT_TCP), at + GENEVE_HEADER + words * 4, u16(chunk, at + 2, True)


@kernel
def _behind_udp(chunk: np.ndarray, at: int, end: int, wire_end: int) -> tuple[int, int, int]:
    """(verdict, where the payload of VXLAN or GENEVE begins, its ethertype). More than the UDP port is checked."""
    if at + UDP_HEADER > end:
        return NOT_TCP, at, 0
    port, length = u16(chunk, at + 2, True), u16(chunk, at + 4, True)
    if length == 0:  # as for IP
        length = wire_end - at
    if length < UDP_HEADER + VXLAN_HEADER or at + length > wire_end:
        return NOT_TCP, at, 0
    if port in VXLAN_PORTS:
        return _behind_vxlan(chunk, at + UDP_HEADER, end, wire_end)
    if port == GENEVE_PORT:
        return _behind_geneve(chunk, at + UDP_HEADER, end, wire_end)
    return NOT_TCP, at, 0


@kernel
def _behind_envelope(chunk: np.ndarray, at: int, end: int, wire_end: int, ethertype: int) -> tuple[int, int]:
    """(TCP_SEGMENT or why the payload of an envelope has no IP header, where the IP header begins)."""
    if ethertype == TRANSPARENT_ETHERNET:
        verdict, network = find_network_header(chunk, at, end, wire_end, ETHERNET)
    else:
        verdict, network = after_ethertype(chunk, at, end, wire_end, ethertype)
    if verdict == NOT_IP:
        return NOT_TCP, network
    if verdict != TCP_SEGMENT:
        return verdict, network
    if network >= end:
        return cut_verdict(network + 1, wire_end), network
    return (TCP_SEGMENT if chunk[network] >> 4 in (4, 6) else NOT_TCP), network


@kernel
def open_envelope(chunk: np.ndarray, protocol: int, at: int, end: int, wire_end: int) -> tuple[int, int]:
    """(TCP_SEGMENT or why there is no inner packet, where the IP header of the inner packet begins).

    chunk[at:end]: the captured part of the outer packet's payload. wire_end: where the payload ended on the wire.
    protocol: that of the payload, which is not TCP.
    """
    verdict, ethertype = TCP_SEGMENT, ETHERTYPE_IPV4  # also for IPv6: only the version in the header counts
    if protocol == UDP:
        verdict, at, ethertype = _behind_udp(chunk, at, end, wire_end)
    elif protocol == GRE:
        verdict, at, ethertype = _behind_gre(chunk, at, end, wire_end)
    elif protocol != IPV4_IN_IP and protocol != IPV6_IN_IP:
        return NOT_TCP, at
    if verdict != TCP_SEGMENT:
        return verdict, at
    return _behind_envelope(chunk, at, end, wire_end, ethertype)
