"""What each link type, IP header and TCP header means for the payload, and how packets without one are counted."""

from __future__ import annotations

import struct
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.unit.capture.packet_builders import (
    ACK,
    ARP,
    BROKER,
    BROKER6,
    CLIENT,
    CLIENT6,
    FIN,
    IPV6,
    RST,
    SYN,
    Packet,
    endpoint,
    ethernet,
    index,
    ipv4,
    ipv6,
    pcap,
    rows_of,
    store,
    tcp,
)

LINK_LAYERS: dict[str, tuple[int, bytes]] = {
    "ethernet": (1, ethernet()),
    "ethernet_ipv6": (1, ethernet(ipv6(), ethertype=IPV6)),
    "vlan": (1, ethernet(vlans=[0x8100])),
    "stacked_vlans": (1, ethernet(vlans=[0x88A8, 0x8100])),
    "vlan_before_802_1ad": (1, ethernet(vlans=[0x9100, 0x8100])),
    "linux_cooked_v1": (113, bytes(14) + b"\x08\x00" + ipv4()),
    "linux_cooked_v1_ipv6": (113, bytes(14) + b"\x86\xdd" + ipv6()),
    "linux_cooked_v2": (276, b"\x08\x00" + bytes(18) + ipv4()),
    "linux_cooked_v2_ipv6": (276, b"\x86\xdd" + bytes(18) + ipv6()),
    "linux_cooked_v2_vlan": (276, b"\x81\x00" + bytes(18) + b"\x00\x07\x08\x00" + ipv4()),
    "raw_ipv4": (101, ipv4()),
    "raw_ipv6": (101, ipv6()),
    "raw_as_dlt_12": (12, ipv4()),
    "raw_as_dlt_14": (14, ipv6()),
    "ipv4": (228, ipv4()),
    "ipv6": (229, ipv6()),
    "null_little_endian": (0, b"\x02\x00\x00\x00" + ipv4()),
    "null_big_endian": (0, b"\x00\x00\x00\x02" + ipv4()),
    "null_ipv6_macos": (0, b"\x1e\x00\x00\x00" + ipv6()),
    "loop": (108, b"\x00\x00\x00\x02" + ipv4()),
    "loop_ipv6_freebsd": (108, b"\x00\x00\x00\x1c" + ipv6()),
}


@pytest.mark.parametrize(("link_type", "packet"), LINK_LAYERS.values(), ids=LINK_LAYERS.keys())
def test_the_payload_is_found_after_the_headers_of_every_link_layer(
    tmp_path: Path, link_type: int, packet: bytes
) -> None:
    [row] = rows_of(tmp_path, pcap([packet], link_type=link_type))
    assert (row["payload"], row["payload_bytes"]) == (b"kafka", 5)


def extension(following: int, size: int = 8) -> bytes:
    return bytes([following, size // 8 - 1]) + bytes(size - 2)


def fragment_header(following: int, offset_and_flags: int) -> bytes:
    return struct.pack(">BBHI", following, 0, offset_and_flags, 1)


NETWORK_LAYERS: dict[str, bytes] = {
    "ipv4_options": ipv4(options=bytes(8)),
    "tcp_options": ipv4(tcp(options=bytes(12))),
    "hop_by_hop": ipv6(extension(6) + tcp(), following=0),
    "routing": ipv6(extension(6, 24) + tcp(), following=43),
    "destination_options": ipv6(extension(6, 16) + tcp(), following=60),
    "authentication": ipv6(bytes([6, 4]) + bytes(22) + tcp(), following=51),
    "whole_in_one_fragment": ipv6(fragment_header(6, 0) + tcp(), following=44),
    "a_chain": ipv6(extension(43) + extension(60) + extension(6) + tcp(), following=0),
    "ipv4_length_left_to_the_card": ipv4(total=0),
    "ipv6_length_left_to_the_card": ipv6(length=0),
}


@pytest.mark.parametrize("packet", NETWORK_LAYERS.values(), ids=NETWORK_LAYERS.keys())
def test_the_payload_is_found_after_options_and_extension_headers(tmp_path: Path, packet: bytes) -> None:
    [row] = rows_of(tmp_path, pcap([packet], link_type=101))
    assert (row["payload"], row["payload_bytes"]) == (b"kafka", 5)


NO_PAYLOAD: dict[str, tuple[str, int, bytes]] = {
    "arp": ("not_ip", 1, ethernet(bytes(28), ethertype=ARP)),
    "vlan_arp": ("not_ip", 1, ethernet(bytes(28), ethertype=ARP, vlans=[0x8100])),
    "802_3_length": ("not_ip", 1, ethernet(bytes(40), ethertype=40)),
    "null_of_another_family": ("not_ip", 0, b"\x07\x00\x00\x00" + ipv4()),
    "ip_version_5": ("not_ip", 101, b"\x55" + ipv4()[1:]),
    "udp": ("not_tcp", 1, ethernet(ipv4(protocol=17))),
    "udp_over_ipv6": ("not_tcp", 101, ipv6(following=17)),
    "icmp_behind_an_extension": ("not_tcp", 101, ipv6(extension(58) + bytes(8), following=0)),
    "udp_fragment": ("not_tcp", 1, ethernet(ipv4(protocol=17, fragment=0x2000))),
    "udp_fragment_over_ipv6": ("not_tcp", 101, ipv6(fragment_header(17, 8) + bytes(8), following=44)),
    "first_fragment": ("fragments", 1, ethernet(ipv4(fragment=0x2000))),
    "later_fragment": ("fragments", 1, ethernet(ipv4(fragment=0x0001))),
    "first_fragment_over_ipv6": ("fragments", 101, ipv6(fragment_header(6, 1) + tcp(), following=44)),
    "later_fragment_over_ipv6": ("fragments", 101, ipv6(fragment_header(6, 8) + bytes(8), following=44)),
    "short_ipv4_header": ("malformed", 1, ethernet(ipv4(words=4))),
    "ipv4_length_below_its_header": ("malformed", 1, ethernet(ipv4(total=19))),
    "ipv4_length_within_the_tcp_header": ("malformed", 1, ethernet(ipv4(total=39))),
    "tcp_header_below_20_bytes": ("malformed", 1, ethernet(ipv4(tcp(data_offset=4)))),
    "tcp_options_beyond_the_packet": ("malformed", 1, ethernet(ipv4(tcp(data_offset=15)))),
    "extension_beyond_the_packet": ("malformed", 101, ipv6(b"\x06\xff" + bytes(6), following=0)),
    "ethernet_header_too_short": ("malformed", 1, ethernet()[:13]),
    "vlan_tag_too_short": ("malformed", 1, bytes(12) + b"\x81\x00\x00"),
    "ipv4_header_too_short": ("malformed", 1, ethernet()[:33]),
    "ipv6_header_too_short": ("malformed", 101, ipv6()[:39]),
    "nothing_behind_ethernet": ("malformed", 1, ethernet(b"")),
    "unknown_link_type": ("unknown_link_type", 147, ethernet()),
}


@pytest.mark.parametrize(("count", "link_type", "packet"), NO_PAYLOAD.values(), ids=NO_PAYLOAD.keys())
def test_packets_without_a_payload_are_counted_by_what_they_are(
    tmp_path: Path, count: str, link_type: int, packet: bytes
) -> None:
    path = store(tmp_path, pcap([packet], link_type=link_type))
    counts = index(path).counts
    assert {name: n for name, n in vars(counts).items() if n} == {"packets": 1, count: 1}
    assert rows_of(tmp_path, path.read_bytes()) == []


@pytest.mark.parametrize(("length", "original"), [(0, 59), (13, 14), (33, 34), (35, 59), (53, 54)])
def test_headers_lost_to_the_snaplen_are_not_called_malformed(tmp_path: Path, length: int, original: int) -> None:
    cut = Packet(ethernet()[:length], original=original)
    counts = index(store(tmp_path, pcap([cut]))).counts
    assert (counts.headers_cut, counts.malformed, counts.tcp) == (1, 0, 0)


def test_payload_that_the_snaplen_cut_still_counts_as_sent_on_the_wire(tmp_path: Path) -> None:
    whole = ethernet(ipv4(tcp(b"k" * 100, options=bytes(12))))
    cuts = [Packet(whole[:length], original=len(whole)) for length in (54, 60, 66, 70, 166)]
    rows = rows_of(tmp_path, pcap(cuts))
    assert [len(row["payload"]) for row in rows] == [0, 0, 0, 4, 100]
    assert {row["payload_bytes"] for row in rows} == {100}


def test_the_ip_length_counts_if_a_tool_cut_the_packet_and_its_original_length(tmp_path: Path) -> None:
    [row] = rows_of(tmp_path, pcap([ethernet(ipv4(tcp(b"k" * 100)))[:60]]))
    assert (row["payload"], row["payload_bytes"]) == (b"k" * 6, 100)


def test_ethernet_padding_is_no_payload(tmp_path: Path) -> None:
    bare_ack = ethernet(ipv4(tcp(b"")))
    padded = [bare_ack + bytes(6), ethernet(ipv4(tcp(b"k"))) + bytes(5)]
    rows = rows_of(tmp_path, pcap(padded))
    assert [(row["payload"], row["payload_bytes"]) for row in rows] == [(b"k", 1)]


@pytest.mark.parametrize("size", [65_495, 200_000])
def test_offloaded_segments_may_be_as_long_as_ip_allows_and_longer(tmp_path: Path, size: int) -> None:
    total = 40 + size if size < 65_536 else 0
    [row] = rows_of(tmp_path, pcap([ethernet(ipv4(tcp(b"k" * size), total=total))]))
    assert (row["payload_bytes"], row["payload"]) == (size, b"k" * size)


@pytest.mark.parametrize(
    ("flags", "kept"), [(ACK, 0), (SYN, 1), (SYN | ACK, 1), (FIN | ACK, 1), (RST, 1), (0x8C8, 0), (0x8C2, 1)]
)
def test_only_packets_that_change_a_connection_are_kept(tmp_path: Path, flags: int, kept: int) -> None:
    rows = rows_of(tmp_path, pcap([ethernet(ipv4(tcp(b"", flags=flags)))]))
    assert [row["flags"] for row in rows] == [flags] * kept


def connection_row(folder: Path, packet: bytes) -> dict[str, Any]:
    [row] = rows_of(folder, pcap([packet], link_type=101))
    return row


def test_both_directions_have_one_connection_and_bucket(tmp_path: Path) -> None:
    there = connection_row(tmp_path, ipv4(tcp(source=50000, target=9092)))
    back = connection_row(tmp_path, ipv4(tcp(source=9092, target=50000), source=BROKER, target=CLIENT))
    assert there["connection"] == back["connection"] == endpoint(CLIENT, 50000) + endpoint(BROKER, 9092)
    assert there["bucket"] == back["bucket"]
    assert (there["direction"], back["direction"]) == (0, 1)


def test_ports_order_the_endpoints_of_one_host(tmp_path: Path) -> None:
    row = connection_row(tmp_path, ipv6(tcp(source=50000, target=9092), source=CLIENT6, target=CLIENT6))
    assert row["connection"] == endpoint(CLIENT6, 9092) + endpoint(CLIENT6, 50000)
    assert row["direction"] == 1


def test_a_connection_to_itself_has_direction_0(tmp_path: Path) -> None:
    row = connection_row(tmp_path, ipv6(tcp(source=9092, target=9092), source=BROKER6, target=BROKER6))
    assert row["direction"] == 0


def test_connections_are_spread_over_the_buckets(tmp_path: Path) -> None:
    ports = range(32_768, 33_568)
    rows = rows_of(tmp_path, pcap([ethernet(ipv4(tcp(source=port))) for port in ports]), buckets=8)
    held = Counter(row["bucket"] for row in rows)
    assert set(held) == set(range(8))
    assert max(held.values()) < 1.5 * len(ports) / 8


def test_both_directions_of_a_connection_are_in_one_bucket(tmp_path: Path) -> None:
    there, back = ipv4(tcp()), ipv4(tcp(source=9092, target=50000), source=BROKER, target=CLIENT)
    one, other = rows_of(tmp_path, pcap([ethernet(there), ethernet(back)]), buckets=1_000_003)
    assert one["bucket"] == other["bucket"]
