"""Ethernet frames in the envelopes of overlays, tunnels and port mirrors, laid out as RFCs and drafts describe them."""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Callable

from tests.unit.capture.packet_builders import IPV4, IPV6, ethernet, ipv4, ipv6

Envelope = Callable[[bytes], bytes]
"""From an Ethernet frame of IPv4 or IPv6 to the Ethernet frame in which it is sent."""

ETHERNET_HEADER = 14
VXLAN_PORT, FLANNEL_PORT, GENEVE_PORT = 4789, 8472, 6081
UDP, GRE = 17, 47
TRANSPARENT_ETHERNET, ERSPAN, ERSPAN_3, MPLS, MPLS_MULTICAST, PPPOE = 0x6558, 0x88BE, 0x22EB, 0x8847, 0x8848, 0x8864
CHECKSUM, KEY, SEQUENCE = 0x8000, 0x2000, 0x1000


def ethertype_of(frame: bytes) -> int:
    return int.from_bytes(frame[ETHERNET_HEADER - 2 : ETHERNET_HEADER], "big")


def packet_of(frame: bytes) -> bytes:
    return frame[ETHERNET_HEADER:]


def length_field(size: int) -> int:
    """The 16-bit field for a length; 0 if it does not fit, as in packets that the network card cuts into segments."""
    return size if size < 1 << 16 else 0


def over_ipv4(payload: bytes, protocol: int) -> bytes:
    total = length_field(20 + len(payload))
    return ethernet(ipv4(payload, protocol=protocol, total=total, source="192.0.2.1", target="192.0.2.2"))


def over_ipv6(payload: bytes, protocol: int) -> bytes:
    length = length_field(len(payload))
    packet = ipv6(payload, following=protocol, length=length, source="2001:db8:9::1", target="2001:db8:9::2")
    return ethernet(packet, ethertype=IPV6)


def udp(payload: bytes, port: int, length: int | None = None, source: int = 61000) -> bytes:
    length = length_field(8 + len(payload)) if length is None else length
    return struct.pack(">HHHH", source, port, length, 0) + payload


def vxlan(frame: bytes, flags: int = 0x0800_0000, vni: int = 7, reserved: int = 0) -> bytes:
    return struct.pack(">II", flags, vni << 8 | reserved) + frame


def geneve(payload: bytes, protocol: int, options: bytes = b"", first: int = 0, reserved: int = 0) -> bytes:
    head = struct.pack(">HHI", first | len(options) // 4 << 8, protocol, 7 << 8 | reserved)
    return head + options + payload


def gre(payload: bytes, protocol: int, flags: int = 0) -> bytes:
    fields = b"".join(bytes([0, 0, 0, 9]) for flag in (CHECKSUM, KEY, SEQUENCE) if flags & flag)
    return struct.pack(">HH", flags, protocol) + fields + payload


def erspan_2(frame: bytes, version: int = 1) -> bytes:
    return struct.pack(">HHI", version << 12 | 42, 3, 5) + frame


def erspan_3(frame: bytes, version: int = 2, frame_type: int = 0, subheader: bytes = b"") -> bytes:
    last = 0x8000 | frame_type << 10 | bool(subheader)
    return struct.pack(">HHIHH", version << 12 | 42, 3, 1_000_000, 0, last) + subheader + frame


def labels(packet: bytes, count: int) -> bytes:
    """A packet after MPLS labels. Each has a label, a traffic class of 3 bits, a mark of the last one, and a TTL."""
    stack = [(16 + i) << 12 | (i == count - 1) << 8 | 64 for i in range(count)]
    return struct.pack(f">{count}I", *stack) + packet


def tagged(frame: bytes, *tags: int) -> bytes:
    """The frame with VLAN tags of these ethertypes."""
    return frame[:12] + b"".join(struct.pack(">HH", tag, 7) for tag in tags) + frame[12:]


def in_mpls(frame: bytes, count: int = 1, ethertype: int = MPLS) -> bytes:
    return ethernet(labels(packet_of(frame), count), ethertype=ethertype)


def in_pppoe(frame: bytes, head: int = 0x1100, protocol: int | None = None) -> bytes:
    packet = packet_of(frame)
    if protocol is None:
        protocol = {IPV4: 0x0021, IPV6: 0x0057}[ethertype_of(frame)]
    return ethernet(struct.pack(">HHHH", head, 5, length_field(2 + len(packet)), protocol) + packet, ethertype=PPPOE)


def ip_number(frame: bytes) -> int:
    """The protocol number of the frame's IP packet if another IP packet carries it."""
    return {IPV4: 4, IPV6: 41}[ethertype_of(frame)]


def in_vxlan(frame: bytes, port: int = VXLAN_PORT) -> bytes:
    return over_ipv4(udp(vxlan(frame), port), UDP)


def in_geneve(frame: bytes) -> bytes:
    return over_ipv4(udp(geneve(frame, TRANSPARENT_ETHERNET), GENEVE_PORT), UDP)


def behind_a_load_balancer(frame: bytes) -> bytes:
    """The frame as AWS's Gateway Load Balancer sends it in Geneve: without Ethernet header, with three options."""
    options = struct.pack(">HBBQ", 0x0108, 1, 2, 1) + struct.pack(">HBBQ", 0x0108, 2, 2, 2)
    options += struct.pack(">HBBI", 0x0108, 3, 1, 3)
    return over_ipv4(udp(geneve(packet_of(frame), ethertype_of(frame), options), GENEVE_PORT), UDP)


def in_ip(frame: bytes) -> bytes:
    return over_ipv4(packet_of(frame), ip_number(frame))


def in_erspan(frame: bytes) -> bytes:
    return over_ipv4(gre(erspan_2(frame), ERSPAN, SEQUENCE), GRE)


ENVELOPES: dict[str, Envelope] = {
    "vlan": lambda frame: tagged(frame, 0x8100),
    "vlans": lambda frame: tagged(frame, 0x88A8, 0x8100),
    "mpls": in_mpls,
    "mpls_of_three_labels": lambda frame: in_mpls(frame, 3),
    "mpls_multicast": lambda frame: in_mpls(frame, 1, MPLS_MULTICAST),
    "pppoe": in_pppoe,
    "vxlan": in_vxlan,
    "vxlan_of_flannel": lambda frame: in_vxlan(frame, FLANNEL_PORT),
    "vxlan_with_a_group_policy": lambda frame: over_ipv4(udp(vxlan(frame, 0x8808_0123), VXLAN_PORT), UDP),
    "vxlan_over_ipv6": lambda frame: over_ipv6(udp(vxlan(frame), VXLAN_PORT), UDP),
    "vxlan_in_a_vlan": lambda frame: tagged(in_vxlan(frame), 0x8100),
    "vlan_in_vxlan": lambda frame: in_vxlan(tagged(frame, 0x8100)),
    "vlans_in_vxlan": lambda frame: in_vxlan(tagged(frame, 0x88A8, 0x8100)),
    "geneve": in_geneve,
    "geneve_of_a_load_balancer": behind_a_load_balancer,
    "geneve_over_ipv6": lambda frame: over_ipv6(udp(geneve(frame, TRANSPARENT_ETHERNET), GENEVE_PORT), UDP),
    "vlan_in_geneve": lambda frame: in_geneve(tagged(frame, 0x8100)),
    "gre": lambda frame: over_ipv4(gre(packet_of(frame), ethertype_of(frame)), GRE),
    "gre_with_all_fields": lambda frame: over_ipv4(
        gre(packet_of(frame), ethertype_of(frame), CHECKSUM | KEY | SEQUENCE), GRE
    ),
    "gre_over_ipv6": lambda frame: over_ipv6(gre(packet_of(frame), ethertype_of(frame)), GRE),
    "gre_of_ethernet": lambda frame: over_ipv4(gre(frame, TRANSPARENT_ETHERNET), GRE),
    "gre_of_ethernet_with_a_key": lambda frame: over_ipv4(gre(frame, TRANSPARENT_ETHERNET, KEY), GRE),
    "gre_of_mpls": lambda frame: over_ipv4(gre(labels(packet_of(frame), 2), MPLS), GRE),
    "erspan_1": lambda frame: over_ipv4(gre(frame, ERSPAN), GRE),
    "erspan_2": in_erspan,
    "erspan_2_over_ipv6": lambda frame: over_ipv6(gre(erspan_2(frame), ERSPAN, SEQUENCE), GRE),
    "erspan_3": lambda frame: over_ipv4(gre(erspan_3(frame), ERSPAN_3, SEQUENCE), GRE),
    "erspan_3_with_a_subheader": lambda frame: over_ipv4(
        gre(erspan_3(frame, subheader=bytes(8)), ERSPAN_3, SEQUENCE), GRE
    ),
    "vlan_in_erspan": lambda frame: in_erspan(tagged(frame, 0x8100)),
    "ip_in_ipv4": in_ip,
    "ip_in_ipv6": lambda frame: over_ipv6(packet_of(frame), ip_number(frame)),
    "ip_in_ipv6_with_options": lambda frame: over_ipv6(
        bytes([ip_number(frame), 0, 1, 4, 0, 0, 0, 0]) + packet_of(frame), 60
    ),
    "overlay_in_a_mirror": lambda frame: in_vxlan(in_vxlan(frame, FLANNEL_PORT)),
    "overlay_in_a_switch_s_mirror": lambda frame: in_erspan(in_geneve(frame)),
    "mirror_behind_a_load_balancer": lambda frame: behind_a_load_balancer(in_vxlan(in_ip(frame))),
    "four_deep": lambda frame: in_vxlan(tagged(in_geneve(in_ip(in_erspan(frame))), 0x8100)),
}  # fmt: skip


def as_ipv6(frame: bytes) -> bytes:
    """A frame of IPv4 without options, as a frame of IPv6."""
    packet = packet_of(frame)
    total = int.from_bytes(packet[2:4], "big")
    source, target = (str(ipaddress.IPv6Address(bytes.fromhex("20010db8") + bytes(8) + packet[at : at + 4]))
                      for at in (12, 16))  # fmt: skip
    return ethernet(ipv6(packet[20:total], source=source, target=target), ethertype=IPV6)
