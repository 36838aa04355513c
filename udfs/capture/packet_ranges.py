"""Divides a capture into ranges of whole packet records. A task can read each range on its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from udfs.capture.compression import Compression
from udfs.capture.packet_table import INTERFACE_COLUMNS
from udfs.capture.packet_walk import PacketWalk

MOST_SKIPPED, MOST_SKIPPED_COMPRESSED = 1_000, 20
"""How many times damage is skipped in a file. It is less often in a compressed file, because there each range is
decompressed from the file's beginning."""


@dataclass(frozen=True)
class PacketRange:
    """A range of packet records of one capture, and all that is needed to read it; plain values only.

    first_byte, length: in the uncompressed stream
    first_packet:       number in the file of the first packet
    latest_ns:          latest time of a packet of the file before the range; 0 if there is none
    interfaces:         little endian int64[n, 4] (`packet_table`) of the section in force at `first_byte`
    """

    path: str
    compression: str
    format: str
    big_endian: bool
    first_byte: int
    length: int
    first_packet: int
    latest_ns: int = 0
    interfaces: bytes = b""

    def interface_table(self) -> np.ndarray:
        """`interfaces` as int64[n, 4]."""
        return np.frombuffer(self.interfaces, "<i8").reshape(-1, INTERFACE_COLUMNS)


def cut_ranges(
    walk: PacketWalk,
    visit: Callable[[PacketWalk], object],
    *,
    path: str,
    compression: Compression,
    range_bytes: int,
) -> list[PacketRange]:
    """Walk to the end, call `visit` after each step, and return the ranges. Together they cover everything that was
    walked and not skipped (`walk.skipped`).

    A range ends before the first record that begins `range_bytes` or more after its first byte, and before damage.
    """
    ranges = []
    latest = 0
    most = MOST_SKIPPED if compression is Compression.NONE else MOST_SKIPPED_COMPRESSED
    begun = _begin_range(walk, path, compression, latest)
    while True:
        is_read = walk.advance(begun.first_byte + range_bytes)
        if is_read:
            visit(walk)
            latest = int(walk.packets["ts_ns"].max(initial=latest))
        if not is_read or walk.at_stop:
            ranges.append(_end_range(begun, walk))
            if not is_read and (len(walk.skipped) == most or not walk.skip_damage()):
                return [r for r in ranges if r.length > 0]
            begun = _begin_range(walk, path, compression, latest)


def _begin_range(walk: PacketWalk, path: str, compression: Compression, latest_ns: int) -> PacketRange:
    return PacketRange(
        path=path,
        compression=compression.value,
        format=walk.format.value,
        big_endian=walk.big_endian,
        first_byte=walk.offset,
        length=0,
        first_packet=walk.packet_no,
        latest_ns=latest_ns,
        interfaces=walk.interfaces.astype("<i8").tobytes(),
    )


def _end_range(begun: PacketRange, walk: PacketWalk) -> PacketRange:
    return replace(begun, length=walk.offset - begun.first_byte)
