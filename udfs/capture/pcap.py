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
    READABLE,
    RESOLUTION,
    SNAPLEN,
    TABLE_FULL,
    Section,
)
from udfs.capture.timestamps import POWERS_OF_TEN
from udfs.kernels.kernel import kernel
from udfs.kernels.prefetch import LINE_BYTES, prefetch_cells

FILE_HEADER_BYTES = 24
MAJOR_VERSION = 2
RECORD_HEADER_BYTES = 16
USUAL_SNAPLEN = 262_144
"""libpcap's MAXIMUM_SNAPLEN: records up to this length are valid even if the file's snaplen is smaller."""
CHAIN_LENGTH, CHAIN_SECONDS = 5, 24 * 3600
"""Packets go on where this many plausible records follow each other, each at most this many seconds from the one
before."""


def parse_file_header(header: bytes) -> tuple[bool, int, np.ndarray]:
    """(whether a classic pcap file is big endian, its major version, its one interface as int64[1, 4]).

    header: the file's first 24 bytes, which begin with one of PCAP_MAGICS. The upper half of the link type field, with
    the length of frame check sequences, is dropped.
    """
    order, resolution = PCAP_MAGICS[header[:4]]
    major, _, _, _, snaplen, network = struct.unpack(order + "HHiIII", header[4:FILE_HEADER_BYTES])
    return order == ">", major, np.array([[network & 0xFFFF, snaplen, resolution, 0]], np.int64)


@kernel
def longest_packet(snaplen: int) -> int:
    """The most bytes that a record may claim to have in a file with this snaplen."""
    return min(max(snaplen, USUAL_SNAPLEN), LONGEST_RECORD)


@kernel
def walk_pcap(
    chunk: np.ndarray, end: int, at: int, stop: int, section: Section, packets: np.ndarray
) -> tuple[int, int, int]:
    """Fill `packets` (PACKET[n]) from the records of `chunk[at:end]` that begin before `stop`.

    Returns (packets filled, where the next record begins, why the walk ended): AT_STOP, TABLE_FULL, NEEDS_BYTES (the
    next record reaches beyond `end`) or IMPLAUSIBLE. A record header is implausible if its packet is longer than the
    snaplen allows or than it was on the wire, if it has no bytes, or if its fraction of a second is two seconds or
    more. This format has no other sign of damage. Writers that round may write a fraction of a whole second, which is
    carried into the seconds, as libpcap's users do.
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
        prefetch_cells(chunk, at + BYTES_AHEAD, LINE_BYTES)
        if at + RECORD_HEADER_BYTES > end:
            return count, at, NEEDS_BYTES
        fraction = u32(chunk, at + 4, big_endian)
        captured = u32(chunk, at + 8, big_endian)
        original = u32(chunk, at + 12, big_endian)
        if captured > longest or captured > original or original == 0 or fraction >= 2 * ticks_per_second:
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


@kernel
def _begins_chain(chunk: np.ndarray, end: int, at: int, section: Section, is_last: bool) -> tuple[bool, bool]:
    """(whether packets begin at `at`, whether more of the stream is needed to tell).

    They do if CHAIN_LENGTH plausible records follow each other, or fewer up to the very end of the stream, where the
    last one may be cut. Other bytes may look like a record, so records of a chain must have at least one byte, a usual
    length, and a time within CHAIN_SECONDS of the time before.
    """
    big_endian = section.state[BIG_ENDIAN] != 0
    ticks_per_second = np.int64(POWERS_OF_TEN[section.interfaces[0, RESOLUTION]])
    before = -1
    for _ in range(CHAIN_LENGTH):
        if at == end and is_last and before >= 0:
            return True, False
        if at + RECORD_HEADER_BYTES > end:
            return False, not is_last
        seconds, fraction = u32(chunk, at, big_endian), u32(chunk, at + 4, big_endian)
        captured, original = u32(chunk, at + 8, big_endian), u32(chunk, at + 12, big_endian)
        is_sized = 0 < captured <= original and original <= USUAL_SNAPLEN
        if not is_sized or fraction >= 2 * ticks_per_second or (before >= 0 and abs(seconds - before) > CHAIN_SECONDS):
            return False, False
        before = seconds
        at += RECORD_HEADER_BYTES + captured
    return at <= end or is_last, at > end and not is_last


@kernel
def find_records(chunk: np.ndarray, end: int, at: int, section: Section, is_last: bool) -> tuple[int, int]:
    """Where in `chunk[at:end]` records go on after bytes that are no records, and READABLE, NEEDS_BYTES or IMPLAUSIBLE.

    READABLE: they begin at this place. NEEDS_BYTES: they may begin there, but more of the stream is needed to tell.
    IMPLAUSIBLE: there are none. is_last: whether the stream ends at `end`.
    """
    while at + RECORD_HEADER_BYTES <= end:
        begins, may_begin = _begins_chain(chunk, end, at, section, is_last)
        if begins:
            return at, READABLE
        if may_begin:
            return at, NEEDS_BYTES
        at += 1
    return at, IMPLAUSIBLE if is_last else NEEDS_BYTES
