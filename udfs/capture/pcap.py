"""Classic pcap (draft-ietf-opsawg-pcap): a 24-byte file header, then packets, each with a 16-byte record header."""

from __future__ import annotations

import struct

import numpy as np

from udfs.capture.byte_order import u32
from udfs.capture.magics import PCAP_MAGICS
from udfs.capture.packet_table import (
    AT_STOP,
    BIG_ENDIAN,
    BYTES_AHEAD,
    IMPLAUSIBLE,
    LINK_TYPE,
    LONGEST_RECORD,
    NEEDS_BYTES,
    RESOLUTION,
    SNAPLEN,
    TABLE_FULL,
    Section,
)
from udfs.capture.timestamps import POWERS_OF_TEN
from udfs.kernels.kernel import kernel
from udfs.kernels.prefetch import LINE_BYTES, ask_for

FILE_HEADER_BYTES = 24
MAJOR_VERSION = 2
RECORD_HEADER_BYTES = 16
USUAL_SNAPLEN = 262_144
"""libpcap's MAXIMUM_SNAPLEN: records up to this length are valid whatever the file's snaplen is."""


def parse_file_header(header: bytes) -> tuple[bool, int, np.ndarray]:
    """(whether a classic pcap file is big endian, its major version, its one interface as int64[1, 4]).

    header: the file's first 24 bytes, which begin with one of PCAP_MAGICS. The upper half of the link type field, the
    length of frame check sequences, is dropped.
    """
    order, resolution = PCAP_MAGICS[header[:4]]
    major, _, _, _, snaplen, network = struct.unpack(order + "HHiIII", header[4:FILE_HEADER_BYTES])
    return order == ">", major, np.array([[network & 0xFFFF, snaplen, resolution, 0]], np.int64)


@kernel
def longest_packet(snaplen: int) -> int:
    """The most bytes that a record may claim to hold in a file of this snaplen."""
    return min(max(snaplen, USUAL_SNAPLEN), LONGEST_RECORD)


@kernel
def walk_pcap(
    chunk: np.ndarray, end: int, at: int, stop: int, section: Section, packets: np.ndarray
) -> tuple[int, int, int]:
    """Fill `packets` (PACKET[n]) from the records of `chunk[at:end]` that begin before `stop`.

    Returns (packets filled, where the next record begins, why the walk ended): AT_STOP, TABLE_FULL, NEEDS_BYTES (the
    next record reaches beyond `end`) or IMPLAUSIBLE. A record header is implausible when its packet is longer than the
    snaplen allows or than it was on the wire, had no bytes, or its fraction of a second is a second or more: there is
    no other sign of damage in this format.
    """
    big_endian = section.state[BIG_ENDIAN] != 0
    interface = section.interfaces[0]
    longest = longest_packet(interface[SNAPLEN])
    ticks_per_second = np.int64(POWERS_OF_TEN[interface[RESOLUTION]])
    ns_per_tick = 1_000_000_000 // ticks_per_second
    count = 0
    while at < stop:
        if count == len(packets):
            return count, at, TABLE_FULL
        ask_for(chunk, at + BYTES_AHEAD, LINE_BYTES)
        if at + RECORD_HEADER_BYTES > end:
            return count, at, NEEDS_BYTES
        fraction = u32(chunk, at + 4, big_endian)
        captured = u32(chunk, at + 8, big_endian)
        original = u32(chunk, at + 12, big_endian)
        if captured > longest or captured > original or original == 0 or fraction >= ticks_per_second:
            return count, at, IMPLAUSIBLE
        following = at + RECORD_HEADER_BYTES + captured
        if following > end:
            return count, at, NEEDS_BYTES
        packet = packets[count]
        packet["offset"] = at + RECORD_HEADER_BYTES
        packet["captured"] = captured
        packet["original"] = original
        packet["ts_ns"] = u32(chunk, at, big_endian) * 1_000_000_000 + fraction * ns_per_tick
        packet["link_type"] = interface[LINK_TYPE]
        count += 1
        at = following
    return count, at, AT_STOP
