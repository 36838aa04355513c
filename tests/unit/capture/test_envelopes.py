"""A segment gives the same row in whatever it is sent: overlays, tunnels and port mirrors, also one inside another."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.capture.capture_files import rows_in_order, sample_capture, tables_of
from tests.unit.capture.envelopes import (
    ENVELOPES,
    ERSPAN,
    ERSPAN_3,
    FLANNEL_PORT,
    GENEVE_PORT,
    GRE,
    MPLS,
    SEQUENCE,
    TRANSPARENT_ETHERNET,
    UDP,
    VXLAN_PORT,
    Envelope,
    as_ipv6,
    erspan_2,
    erspan_3,
    geneve,
    gre,
    in_erspan,
    in_geneve,
    in_ip,
    in_mpls,
    in_pppoe,
    in_vxlan,
    over_ipv4,
    over_ipv6,
    udp,
    vxlan,
)
from tests.unit.capture.packet_builders import (
    ARP,
    Packet,
    ethernet,
    index,
    ipv4,
    ipv6,
    pcap,
    read_rows,
    rows_of,
    store,
    tcp,
)
from udfs.capture.tcp_headers import MOST_ENVELOPES

EACH_ENVELOPE = pytest.mark.parametrize("envelope", ENVELOPES.values(), ids=ENVELOPES.keys())
SHARED = sorted((Path(__file__).parents[4] / "shared" / "captures").glob("*.pcap"))
FIRST_PACKETS = 1000
UDP_HEADER_AT = 34
"""Where the UDP header is in a frame of Ethernet and IPv4."""


@pytest.fixture(scope="module")
def recorded(repository: Path) -> list[Packet]:
    """The beginning of a capture of a live cluster: Ethernet, IPv4."""
    _, packets = sample_capture(repository, "mixed")
    return packets[:FIRST_PACKETS]


def sent_in(envelope: Envelope, packets: Iterable[Packet], snaplen: int | None = None) -> list[Packet]:
    """The packets in their envelopes; of each packet inside, `snaplen` bytes are kept."""
    sent = []
    for packet in packets:
        data = envelope(packet.data)
        kept = len(data) if snaplen is None else len(data) - len(packet.data) + snaplen
        sent.append(replace(packet, data=data[:kept], original=len(data)))
    return sent


def plain(frame: bytes) -> bytes:
    return frame


def in_version_6(packets: Iterable[Packet]) -> list[Packet]:
    return [replace(packet, data=as_ipv6(packet.data), original=None) for packet in packets]


@EACH_ENVELOPE
def test_a_capture_in_envelopes_gives_the_silver_rows_of_the_plain_one(
    envelope: Envelope, recorded: list[Packet], tmp_path: Path
) -> None:
    without = tables_of(rows_in_order([store(tmp_path, pcap(recorded), "plain")]))
    within = tables_of(rows_in_order([store(tmp_path, pcap(sent_in(envelope, recorded)), "sent")]))
    assert len(without["exchanges"]) > 50
    assert within == without


@EACH_ENVELOPE
@pytest.mark.parametrize("snaplen", [14, 33, 40, 53, 54, 66, 100])
def test_a_packet_that_the_snaplen_cuts_gives_the_same_row_in_an_envelope_and_without(
    envelope: Envelope, snaplen: int, recorded: list[Packet], tmp_path: Path
) -> None:
    without = store(tmp_path, pcap(sent_in(plain, recorded, snaplen)), "plain")
    within = store(tmp_path, pcap(sent_in(envelope, recorded, snaplen)), "sent")
    assert index(within).counts == index(without).counts
    assert read_rows(within).equals(read_rows(without))


@EACH_ENVELOPE
def test_ipv6_in_an_envelope_gives_the_rows_of_plain_ipv6(
    envelope: Envelope, recorded: list[Packet], tmp_path: Path
) -> None:
    packets = in_version_6(recorded)
    without = store(tmp_path, pcap(packets), "plain")
    within = store(tmp_path, pcap(sent_in(envelope, packets)), "sent")
    assert index(within).counts.tcp == len(packets)
    assert read_rows(within).equals(read_rows(without))


@pytest.mark.skipif(not SHARED, reason="../shared/captures is not there")
@pytest.mark.parametrize("path", SHARED, ids=lambda path: path.stem)
def test_whole_captures_in_all_kinds_of_envelopes_give_the_rows_of_the_plain_ones(path: Path, tmp_path: Path) -> None:
    content = path.read_bytes()
    kinds, sent, at, number = list(ENVELOPES.values()), [content[:24]], 24, 0
    while at < len(content):
        seconds, fraction, captured, original = struct.unpack_from("<IIII", content, at)
        data = kinds[number % len(kinds)](content[at + 16 : at + 16 + captured])
        sent += [struct.pack("<IIII", seconds, fraction, len(data), len(data) + original - captured), data]
        at, number = at + 16 + captured, number + 1
    assert read_rows(store(tmp_path, b"".join(sent))).equals(read_rows(path))


def test_a_packet_captured_plain_and_in_its_envelope_counts_once(recorded: list[Packet], tmp_path: Path) -> None:
    """`-i any` on a node captures it on the pod's interface and, a little later, on the network card."""
    twice = [
        packet
        for first in recorded
        for packet in (first, *sent_in(in_vxlan, [replace(first, fraction=min(first.fraction + 20, 999_999))]))
    ]
    path = store(tmp_path, pcap(twice), "twice")
    once = tables_of(rows_in_order([store(tmp_path, pcap(recorded), "once")]))
    both = tables_of(rows_in_order([path]))
    assert both["exchanges"] == once["exchanges"]
    assert both["record_batches"] == once["record_batches"]
    assert index(path).doubled_packets == sum(row["payload_bytes"] > 0 for row in read_rows(path).to_pylist()) / 2
    repeated, sent = (sum(row[name] for row in once["connections"]) for name in ("repeated_bytes", "payload_bytes"))
    assert sum(row["repeated_bytes"] for row in both["connections"]) == repeated + sent


def counts_of(folder: Path, *packets: Packet | bytes) -> dict[str, int]:
    counts = vars(index(store(folder, pcap(packets))).counts)
    return {name: n for name, n in counts.items() if n and name != "packets"}


def test_envelopes_are_opened_as_deep_as_any_network_sends_them_and_no_deeper(tmp_path: Path) -> None:
    frame = ethernet()
    for _ in range(MOST_ENVELOPES):
        frame = in_ip(frame)
    assert counts_of(tmp_path, frame) == {"tcp": 1}
    assert counts_of(tmp_path, in_ip(frame)) == {"not_tcp": 1}


@pytest.mark.parametrize("total", [0, None])
@pytest.mark.parametrize("length", [0, None])
def test_a_length_of_0_that_the_network_card_is_to_fill_in_means_up_to_the_end_of_the_packet(
    total: int | None, length: int | None, tmp_path: Path
) -> None:
    frame = ethernet(ipv4(udp(vxlan(ethernet(ipv4(total=total))), VXLAN_PORT, length), protocol=UDP, total=total))
    [row] = rows_of(tmp_path, pcap([frame]))
    assert (row["payload"], row["payload_bytes"]) == (b"kafka", 5)


def test_padding_of_the_outer_frame_is_no_payload_of_a_segment_without_a_length(tmp_path: Path) -> None:
    [row] = rows_of(tmp_path, pcap([in_ip(ethernet(ipv4(total=0))) + bytes(6)]))
    assert (row["payload"], row["payload_bytes"]) == (b"kafka", 5)


def test_a_packet_that_a_mirror_cuts_to_its_mtu_is_read_like_one_that_the_snaplen_cuts(tmp_path: Path) -> None:
    """The outer headers have the length that was sent, and the inner one has the length before the cut."""
    whole = ethernet(ipv4(tcp(b"k" * 100)))
    [row] = rows_of(tmp_path, pcap([in_vxlan(whole[:60])]))
    assert (row["payload"], row["payload_bytes"]) == (b"k" * 6, 100)


ANY_UDP = ENVELOPES.keys() & {"vxlan", "geneve", "vxlan_of_flannel", "vxlan_with_a_group_policy"}


@pytest.mark.parametrize("name", sorted(ENVELOPES.keys() - {"vlan", "vlans"}))
def test_headers_of_an_envelope_lost_to_the_snaplen_are_not_called_malformed(name: str, tmp_path: Path) -> None:
    whole = ENVELOPES[name](ethernet())
    cuts = [Packet(whole[:kept], original=len(whole)) for kept in range(len(whole) - len(b"kafka"))]
    counts = counts_of(tmp_path, *cuts)
    udp_headers = counts.pop("not_tcp", 0)
    assert counts == {"headers_cut": len(cuts) - udp_headers}
    assert udp_headers % 8 == 0  # without its UDP header a packet is as any UDP
    if name in ANY_UDP:
        assert udp_headers == 8


@pytest.mark.parametrize("name", sorted(ENVELOPES.keys() - {"vlan", "vlans"}))
def test_an_envelope_that_is_shorter_than_it_says_is_never_read_as_a_segment(name: str, tmp_path: Path) -> None:
    whole = ENVELOPES[name](ethernet())
    cut = [whole[:kept] for kept in range(14, len(whole) - len(b"kafka"))]
    counts = counts_of(tmp_path, *cut)
    assert counts.keys() <= {"malformed", "headers_cut", "not_tcp"}
    assert sum(counts.values()) == len(cut)


def test_fragments_of_a_segment_in_an_envelope_are_fragments(tmp_path: Path) -> None:
    assert counts_of(tmp_path, in_vxlan(ethernet(ipv4(fragment=0x2000)))) == {"fragments": 1}


def test_a_header_that_contradicts_itself_is_malformed_in_an_envelope_too(tmp_path: Path) -> None:
    assert counts_of(tmp_path, in_vxlan(ethernet(ipv4(words=4)))) == {"malformed": 1}
    assert counts_of(tmp_path, in_erspan(ethernet(ipv4(tcp(data_offset=4))))) == {"malformed": 1}


FRAME = ethernet()
NOT_FOLLOWED: dict[str, bytes] = {
    "fragment_of_a_vxlan_packet": ethernet(ipv4(udp(vxlan(FRAME), VXLAN_PORT), protocol=UDP, fragment=0x2000)),
    "fragment_of_gre": ethernet(ipv4(gre(ipv4(), 0x0800), protocol=GRE, fragment=0x2000)),
    "fragment_of_ip_in_ip": ethernet(ipv4(ipv4(), protocol=4, fragment=1)),
    "encrypted": over_ipv4(bytes(60), 50),
    "ethernet_in_ip": over_ipv4(b"\x30\x00" + FRAME, 97),
    "vxlan_at_another_port": over_ipv4(udp(vxlan(FRAME), 4790), UDP),
    "vxlan_from_its_port": over_ipv4(udp(vxlan(FRAME), 5000, source=VXLAN_PORT), UDP),
    "vxlan_without_an_identifier": over_ipv4(udp(vxlan(FRAME, 0), VXLAN_PORT), UDP),
    "vxlan_with_another_flag": over_ipv4(udp(vxlan(FRAME, 0x0C00_0000), VXLAN_PORT), UDP),
    "vxlan_with_reserved_bits": over_ipv4(udp(vxlan(FRAME, 0x0800_0001), VXLAN_PORT), UDP),
    "vxlan_with_a_reserved_byte": over_ipv4(udp(vxlan(FRAME, reserved=1), VXLAN_PORT), UDP),
    "vxlan_with_reserved_bits_beside_a_group": over_ipv4(udp(vxlan(FRAME, 0x8890_0001), VXLAN_PORT), UDP),
    "vxlan_of_arp": in_vxlan(ethernet(bytes(28), ethertype=ARP)),
    "vxlan_of_a_packet_of_version_5": in_vxlan(ethernet(b"\x55" + ipv4()[1:])),
    "vxlan_of_udp": in_vxlan(ethernet(ipv4(protocol=17))),
    "udp_longer_than_its_packet": over_ipv4(udp(vxlan(FRAME), VXLAN_PORT, 9 + 8 + len(FRAME)), UDP),
    "udp_too_short_for_vxlan": over_ipv4(udp(vxlan(FRAME), VXLAN_PORT, 15), UDP),
    "geneve_of_another_version": over_ipv4(udp(geneve(FRAME, TRANSPARENT_ETHERNET, first=0x4000), GENEVE_PORT), UDP),
    "geneve_for_the_tunnel_itself": over_ipv4(udp(geneve(FRAME, TRANSPARENT_ETHERNET, first=0x80), GENEVE_PORT), UDP),
    "geneve_with_reserved_bits": over_ipv4(udp(geneve(FRAME, TRANSPARENT_ETHERNET, first=1), GENEVE_PORT), UDP),
    "geneve_with_a_reserved_byte": over_ipv4(udp(geneve(FRAME, TRANSPARENT_ETHERNET, reserved=1), GENEVE_PORT), UDP),
    "geneve_of_another_protocol": over_ipv4(udp(geneve(FRAME, ARP), GENEVE_PORT), UDP),
    "gre_with_a_route": over_ipv4(gre(ipv4(), 0x0800, 0x4000), GRE),
    "gre_of_pptp": over_ipv4(gre(ipv4(), 0x880B, 0x3001), GRE),
    "gre_of_another_protocol": over_ipv4(gre(ipv4(), ARP), GRE),
    "gre_of_ethernet_of_arp": over_ipv4(gre(ethernet(bytes(28), ethertype=ARP), TRANSPARENT_ETHERNET), GRE),
    "erspan_of_another_version": over_ipv4(gre(erspan_2(FRAME, version=2), ERSPAN, SEQUENCE), GRE),
    "erspan_3_of_another_version": over_ipv4(gre(erspan_3(FRAME, version=1), ERSPAN_3, SEQUENCE), GRE),
    "erspan_3_of_no_frame": over_ipv4(gre(erspan_3(FRAME, frame_type=2), ERSPAN_3, SEQUENCE), GRE),
    "udp_fragment_over_ipv6": over_ipv6(struct.pack(">BBHI", UDP, 0, 1, 1) + udp(vxlan(FRAME), VXLAN_PORT), 44),
    "labels_before_no_ip_packet_in_gre": over_ipv4(gre(b"\0\1\1\x40" + bytes(40), MPLS), GRE),
}  # fmt: skip


@pytest.mark.parametrize("packet", NOT_FOLLOWED.values(), ids=NOT_FOLLOWED.keys())
def test_packets_that_are_no_envelope_or_cannot_be_opened_count_as_not_tcp(packet: bytes, tmp_path: Path) -> None:
    assert counts_of(tmp_path, packet) == {"not_tcp": 1}


NOT_IP: dict[str, bytes] = {
    "labels_before_no_ip_packet": in_mpls(ethernet(bytes(40))),
    "pppoe_discovery": in_pppoe(FRAME, head=0x1109),
    "pppoe_of_another_version": in_pppoe(FRAME, head=0x2100),
    "pppoe_of_its_own_messages": in_pppoe(FRAME, protocol=0xC021),
}


@pytest.mark.parametrize("packet", NOT_IP.values(), ids=NOT_IP.keys())
def test_a_link_layer_that_carries_something_else_is_not_ip(packet: bytes, tmp_path: Path) -> None:
    assert counts_of(tmp_path, packet) == {"not_ip": 1}


@pytest.mark.parametrize("port", [VXLAN_PORT, FLANNEL_PORT, GENEVE_PORT])
@pytest.mark.parametrize("over", [over_ipv4, over_ipv6])
def test_other_udp_traffic_at_the_port_of_an_envelope_is_not_opened(
    port: int, over: Callable[[bytes, int], bytes], tmp_path: Path
) -> None:
    chance = random.Random(port)  # noqa: S311  (no secret depends on it)
    packets = [over(udp(chance.randbytes(chance.randrange(200)), port), UDP) for _ in range(5000)]
    assert counts_of(tmp_path, *packets) == {"not_tcp": len(packets)}


def test_one_changed_byte_of_a_vxlan_header_makes_it_other_traffic(tmp_path: Path) -> None:
    whole = in_vxlan(FRAME)
    for at in (*range(UDP_HEADER_AT + 8, UDP_HEADER_AT + 12), UDP_HEADER_AT + 15):
        changed = whole[:at] + bytes([whole[at] ^ 0x20]) + whole[at + 1 :]
        assert counts_of(tmp_path, changed) == {"not_tcp": 1}


def test_tunnels_of_either_version_carry_the_other(tmp_path: Path) -> None:
    frames = [over_ipv4(ipv6(), 41), over_ipv6(ipv4(), 4), in_geneve(over_ipv6(ipv6(), 41))]
    assert [row["payload"] for row in rows_of(tmp_path, pcap(frames))] == [b"kafka"] * 3
