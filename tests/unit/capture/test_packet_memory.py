"""Kernels that read headers touch no byte outside the captured part of a packet."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tests.unit.capture.envelopes import ENVELOPES, as_ipv6
from tests.unit.capture.packet_builders import ethernet
from tests.unit.wire.forbidden_pages import arenas, page_between_forbidden_ones, run_apart
from udfs.capture.packet_table import PACKET
from udfs.capture.tcp_headers import CONNECTION_BYTES, TCP_PACKET, TcpPackets, parse_tcp_packets


def damaged_packets() -> Iterator[tuple[bytes, int]]:
    """(captured part, length on the wire) of packets in every envelope: cut at each byte, and each byte changed."""
    for frame in (ethernet(), as_ipv6(ethernet())):
        for whole in (frame, *(envelope(frame) for envelope in ENVELOPES.values())):
            for at in range(len(whole)):
                yield whole[:at], at
                yield whole[:at], len(whole) + 100
                for byte in (b"\x3f", b"\xff"):
                    yield whole[:at] + byte + whole[at + 1 :], len(whole)
                    yield (whole[:at] + byte + whole[at + 1 :])[: at + 12], len(whole)


def parse_between_forbidden_pages() -> None:
    """Parse packets in memory in which no byte around their captured part can be read."""
    page = page_between_forbidden_ones()
    tcp_packets = TcpPackets(np.zeros(1, TCP_PACKET), np.zeros((1, CONNECTION_BYTES), np.uint8))
    for captured, original in damaged_packets():
        packets = np.array([(0, len(captured), original, 0, 1)], PACKET)
        for chunk in arenas(captured, page):
            parse_tcp_packets(chunk, packets, 8, tcp_packets)


def test_no_kernel_reads_outside_the_captured_part_of_a_packet(repository: Path) -> None:
    run = run_apart(parse_between_forbidden_pages, repository)
    assert run.returncode == 0, run.stderr[-2000:]


def test_a_kernel_that_reads_a_header_which_is_not_there_would_be_noticed(repository: Path, tmp_path: Path) -> None:
    before = "import udfs.capture.envelopes as envelopes; envelopes.GENEVE_HEADER = 0"
    run = run_apart(parse_between_forbidden_pages, repository, before, NUMBA_CACHE_DIR=str(tmp_path))
    assert run.returncode == -signal.SIGSEGV, run.stderr[-2000:]
