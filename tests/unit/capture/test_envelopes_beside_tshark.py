"""tshark, which has its own code to open envelopes, gives the same segments."""

from __future__ import annotations

import ipaddress
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from tests.unit.capture.capture_files import sample_capture
from tests.unit.capture.envelopes import ENVELOPES, FLANNEL_PORT, as_ipv6
from tests.unit.capture.packet_builders import pcap, read_rows, store

pytestmark = pytest.mark.skipif(not shutil.which("tshark"), reason="tshark is not installed")

Segment = tuple[int, str, int, str, int, int, str]
"""Packet number, source and target with their ports, sequence number, payload in hexadecimal digits."""


def tshark_segments(path: Path, version: str) -> list[Segment]:
    """The innermost segment of each packet that has payload; `version` is tshark's name for the innermost IP."""
    fields = ("frame.number", f"{version}.src", "tcp.srcport", f"{version}.dst", "tcp.dstport", "tcp.seq_raw")
    command = ["tshark", "-n", "-r", str(path), "-d", f"udp.port=={FLANNEL_PORT},vxlan", "-Y", "tcp.len > 0"]
    command += ["-T", "fields", "-E", "occurrence=l", *(part for name in fields for part in ("-e", name))]
    told = subprocess.run([*command, "-e", "tcp.payload"], capture_output=True, text=True, check=True).stdout
    rows = [line.split("\t") for line in told.splitlines()]
    return [(int(a) - 1, b, int(c), d, int(e), int(f), g) for a, b, c, d, e, f, g in rows]


def refetch_segments(path: Path) -> list[Segment]:
    return [segment_of(row) for row in read_rows(path).to_pylist() if row["payload_bytes"]]


def segment_of(row: dict[str, Any]) -> Segment:
    low, high = row["connection"][:18], row["connection"][18:]
    ends = [endpoint(end) for end in ((low, high) if row["direction"] == 0 else (high, low))]
    return (row["packet_no"], *ends[0], *ends[1], row["seq"], row["payload"].hex())


def endpoint(packed: bytes) -> tuple[str, int]:
    address = ipaddress.IPv6Address(packed[:16])
    return str(address.ipv4_mapped or address), int.from_bytes(packed[16:], "big")


@pytest.mark.parametrize(("version", "convert"), [("ip", bytes), ("ipv6", as_ipv6)])
def test_tshark_finds_the_same_segments_in_every_envelope(
    version: str, convert: Callable[[bytes], bytes], repository: Path, tmp_path: Path
) -> None:
    _, packets = sample_capture(repository, "mixed")
    kinds = zip(cycle(ENVELOPES.values()), packets, strict=False)
    sent = [replace(packet, data=envelope(convert(packet.data)), original=None) for envelope, packet in kinds]
    path = store(tmp_path, pcap(sent))
    found = refetch_segments(path)
    assert len(found) > 50 * len(ENVELOPES)
    assert found == tshark_segments(path, version)
