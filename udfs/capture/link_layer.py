"""Finds the IP header in a packet, for each link type that tcpdump writes (https://www.tcpdump.org/linktypes.html)."""

from __future__ import annotations

import numpy as np

from udfs.capture.byte_order import u16, u32
from udfs.capture.packet_table import HEADERS_CUT, MALFORMED, NOT_IP, TCP_SEGMENT, UNKNOWN_LINK_TYPE
from udfs.kernels.kernel import kernel

NULL, ETHERNET, DLT_RAW, DLT_RAW_OPENBSD, RAW = 0, 1, 12, 14, 101
LOOP, LINUX_SLL, IPV4, IPV6, LINUX_SLL2 = 108, 113, 228, 229, 276

ETHERTYPE_IPV4, ETHERTYPE_IPV6 = 0x0800, 0x86DD
VLAN_TAGS = (0x8100, 0x88A8, 0x9100)  # 802.1Q, 802.1ad and the tag used before 802.1ad
ETHERTYPE_MPLS = (0x8847, 0x8848)  # unicast; multicast, or labels that the receiver assigned (RFC 5332)
ETHERTYPE_PPPOE_SESSION = 0x8864
PPPOE_SESSION = 0x1100  # version, type and code
PPP_IPV4, PPP_IPV6 = 0x0021, 0x0057
AF_INET = 2
AF_INET6 = (10, 23, 24, 28, 30)  # Linux, Windows, NetBSD, FreeBSD, macOS


@kernel
def cut_verdict(needed: int, wire_end: int) -> int:
    """The verdict on a packet whose captured bytes end before `needed`: cut by the snaplen, or sent too short."""
    return HEADERS_CUT if needed <= wire_end else MALFORMED


@kernel
def _after_labels(chunk: np.ndarray, at: int, end: int, wire_end: int) -> tuple[int, int]:
    """(TCP_SEGMENT or why not, where a stack of MPLS labels ends) by RFC 3032. What follows should be an IP header."""
    is_last = False
    while not is_last:
        if at + 4 > end:
            return cut_verdict(at + 4, wire_end), at
        is_last = (chunk[at + 2] & 1) != 0
        at += 4
    return TCP_SEGMENT, at


@kernel
def _after_pppoe(chunk: np.ndarray, at: int, end: int, wire_end: int) -> tuple[int, int]:
    """(TCP_SEGMENT or why not, where the header of a PPPoE session and PPP's protocol number end) by RFC 2516."""
    if at + 8 > end:
        return cut_verdict(at + 8, wire_end), at
    carries_ip = u16(chunk, at, True) == PPPOE_SESSION and u16(chunk, at + 6, True) in (PPP_IPV4, PPP_IPV6)
    return (TCP_SEGMENT if carries_ip else NOT_IP), at + 8


@kernel
def after_ethertype(chunk: np.ndarray, at: int, end: int, wire_end: int, ethertype: int) -> tuple[int, int]:
    """(TCP_SEGMENT or why there is no IP header, where it begins) after an ethertype that ends at `at`."""
    while ethertype in VLAN_TAGS:
        if at + 4 > end:
            return cut_verdict(at + 4, wire_end), at
        ethertype = u16(chunk, at + 2, True)
        at += 4
    if ethertype in (ETHERTYPE_IPV4, ETHERTYPE_IPV6):
        return TCP_SEGMENT, at
    if ethertype in ETHERTYPE_MPLS:
        return _after_labels(chunk, at, end, wire_end)
    if ethertype == ETHERTYPE_PPPOE_SESSION:
        return _after_pppoe(chunk, at, end, wire_end)
    return NOT_IP, at


@kernel
def _after_family(chunk: np.ndarray, at: int) -> tuple[int, int]:
    """(TCP_SEGMENT or NOT_IP, where the IP header begins) after an address family at `at`.

    The family is in the byte order of the machine that captured, which may differ from that of the file.
    """
    family = u32(chunk, at, False)
    if family > 0xFFFF:
        family = u32(chunk, at, True)
    return (TCP_SEGMENT if family == AF_INET or family in AF_INET6 else NOT_IP), at + 4


@kernel
def _header_bytes(link_type: int) -> int:
    """Bytes of a link type's own header, before the IP header or a VLAN tag; -1 for an unknown link type."""
    if link_type == ETHERNET:
        return 14
    if link_type == LINUX_SLL:
        return 16
    if link_type == LINUX_SLL2:
        return 20
    if link_type in (NULL, LOOP):
        return 4
    return 0 if link_type in (DLT_RAW, DLT_RAW_OPENBSD, RAW, IPV4, IPV6) else -1


@kernel
def find_network_header(chunk: np.ndarray, at: int, end: int, wire_end: int, link_type: int) -> tuple[int, int]:
    """(TCP_SEGMENT or why there is no IP header, where it begins) in the packet at `chunk[at:end]`."""
    size = _header_bytes(link_type)
    if size < 0:
        return UNKNOWN_LINK_TYPE, at
    if at + size > end:
        return cut_verdict(at + size, wire_end), at
    if size == 4:
        return _after_family(chunk, at)
    if size == 0:
        return TCP_SEGMENT, at
    # Linux cooked capture v2 begins with the ethertype; the others end with it.
    ethertype = u16(chunk, at if link_type == LINUX_SLL2 else at + size - 2, True)
    return after_ethertype(chunk, at + size, end, wire_end, ethertype)
