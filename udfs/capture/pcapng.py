"""pcapng (draft-ietf-opsawg-pcapng): sections of length-framed blocks.

Only section headers, interface descriptions and packets are read. Every other block (names, secrets, statistics,
custom) is skipped by its length. So is every option except an interface's clock. None of them is kept.
"""

from __future__ import annotations

import numpy as np

from udfs.capture.byte_order import u16, u32
from udfs.capture.packet_table import (
    AT_STOP,
    BIG_ENDIAN,
    BYTES_AHEAD,
    CROWDED,
    IMPLAUSIBLE,
    INTERFACE_COUNT,
    LINK_TYPE,
    LONGEST_RECORD,
    MOST_INTERFACES,
    NEEDS_BYTES,
    READABLE,
    RESOLUTION,
    SNAPLEN,
    STARTED,
    TABLE_FULL,
    TIME_OFFSET,
    UNREADABLE,
    WIDEST_SNAPLEN,
    Section,
)
from udfs.capture.timestamps import ticks_to_ns
from udfs.kernels.kernel import kernel
from udfs.kernels.prefetch import LINE_BYTES, prefetch_cells

SECTION_HEADER = 0x0A0D0D0A  # reads the same in either byte order
INTERFACE_DESCRIPTION, OLD_PACKET, SIMPLE_PACKET, ENHANCED_PACKET = 1, 2, 3, 6
BYTE_ORDER_MAGIC = 0x1A2B3C4D
IF_TSRESOL, IF_TSOFFSET = 9, 14
MICROSECONDS = 6
# Bytes of type and length before a block's body, and of the repeated length after it.
BLOCK_HEAD, BLOCK_TAIL = 8, 4
SHORTEST_BLOCK = 12


@kernel
def _block_byte_order(chunk: np.ndarray, at: int, section: Section) -> int:
    """1 = big endian, 0 = little endian, -1 = the block cannot be read."""
    if u32(chunk, at, False) != SECTION_HEADER:
        return section.state[BIG_ENDIAN] if section.state[STARTED] else -1
    if u32(chunk, at + BLOCK_HEAD, True) == BYTE_ORDER_MAGIC:
        return 1
    return 0 if u32(chunk, at + BLOCK_HEAD, False) == BYTE_ORDER_MAGIC else -1


@kernel
def _begin_section(chunk: np.ndarray, at: int, length: int, big_endian: bool, section: Section) -> bool:
    """Begin a section without interfaces. False if the block is too short or has another major version."""
    if length < 28 or u16(chunk, at + 12, big_endian) != 1:
        return False
    section.state[BIG_ENDIAN], section.state[INTERFACE_COUNT], section.state[STARTED] = big_endian, 0, 1
    return True


@kernel
def _read_clock(chunk: np.ndarray, at: int, end: int, big_endian: bool, interface: np.ndarray) -> bool:
    """Read if_tsresol and if_tsoffset from the options in `chunk[at:end]`. False if an option reaches beyond `end`."""
    while at + 4 <= end:
        code, size = u16(chunk, at, big_endian), u16(chunk, at + 2, big_endian)
        at += 4
        if code == 0:
            return True
        if at + size > end:
            return False
        if code == IF_TSRESOL and size == 1:
            interface[RESOLUTION] = chunk[at]
        if code == IF_TSOFFSET and size == 8:
            first, second = u32(chunk, at, big_endian), u32(chunk, at + 4, big_endian)
            interface[TIME_OFFSET] = first << 32 | second if big_endian else second << 32 | first
        at += (size + 3) & ~3
    return True


@kernel
def _add_interface(chunk: np.ndarray, at: int, length: int, section: Section) -> bool:
    """Append an interface to the section. False if the block contradicts itself."""
    if length < 20:
        return False
    state = section.state
    big_endian = state[BIG_ENDIAN] != 0
    interface = section.interfaces[state[INTERFACE_COUNT]]
    interface[LINK_TYPE] = u16(chunk, at + 8, big_endian)
    interface[SNAPLEN] = u32(chunk, at + 12, big_endian)
    interface[RESOLUTION], interface[TIME_OFFSET] = MICROSECONDS, 0
    state[INTERFACE_COUNT] += 1
    state[WIDEST_SNAPLEN] = max(state[WIDEST_SNAPLEN], interface[SNAPLEN])
    return _read_clock(chunk, at + 16, at + length - BLOCK_TAIL, big_endian, interface)


@kernel
def _set_unreadable(packet: np.void, at: int) -> None:
    packet["offset"], packet["captured"], packet["original"], packet["ts_ns"] = at, 0, 0, 0
    packet["link_type"] = UNREADABLE


@kernel
def _add_packet(chunk: np.ndarray, at: int, length: int, old: bool, section: Section, packet: np.void) -> None:
    """Fill `packet` from an enhanced packet block or the obsolete packet block (whose interface id has 16 bits)."""
    _set_unreadable(packet, at)
    if length < 28 + BLOCK_TAIL:
        return
    big_endian = section.state[BIG_ENDIAN] != 0
    number = u16(chunk, at + 8, big_endian) if old else u32(chunk, at + 8, big_endian)
    captured = u32(chunk, at + 20, big_endian)
    if number >= section.state[INTERFACE_COUNT] or captured > length - 28 - BLOCK_TAIL:
        return
    interface = section.interfaces[number]
    high, low = u32(chunk, at + 12, big_endian), u32(chunk, at + 16, big_endian)
    ts_ns, fits = ticks_to_ns(high, low, interface[RESOLUTION], interface[TIME_OFFSET])
    if fits:
        packet["offset"], packet["captured"] = at + 28, captured
        packet["original"] = max(u32(chunk, at + 24, big_endian), captured)
        packet["ts_ns"], packet["link_type"] = ts_ns, interface[LINK_TYPE]


@kernel
def _add_simple_packet(chunk: np.ndarray, at: int, length: int, section: Section, packet: np.void) -> None:
    """Fill `packet` from a simple packet block: interface 0, no time; the snaplen gives the captured length."""
    _set_unreadable(packet, at)
    if length < 12 + BLOCK_TAIL or section.state[INTERFACE_COUNT] == 0:
        return
    original = u32(chunk, at + 8, section.state[BIG_ENDIAN] != 0)
    captured = min(original, length - 12 - BLOCK_TAIL)
    interface = section.interfaces[0]
    if interface[SNAPLEN] > 0:
        captured = min(captured, interface[SNAPLEN])
    packet["offset"], packet["captured"], packet["original"] = at + 12, captured, original
    packet["link_type"] = interface[LINK_TYPE]


@kernel
def _frame_block(chunk: np.ndarray, end: int, at: int, big_endian: int) -> tuple[int, int]:
    """(length of the block at `at`, READABLE or why it is not)."""
    if big_endian < 0:
        return 0, IMPLAUSIBLE
    length = u32(chunk, at + 4, big_endian == 1)
    if length < SHORTEST_BLOCK or length % 4 or length > LONGEST_RECORD:
        return 0, IMPLAUSIBLE
    if at + length > end:
        return 0, NEEDS_BYTES
    if u32(chunk, at + length - BLOCK_TAIL, big_endian == 1) != length:
        return 0, IMPLAUSIBLE
    return length, READABLE


@kernel
def _take_declaration(chunk: np.ndarray, at: int, length: int, kind: int, big_endian: int, section: Section) -> int:
    """Read a section header or interface description, and ignore other blocks; READABLE or why the block is not."""
    if kind == SECTION_HEADER and not _begin_section(chunk, at, length, big_endian == 1, section):
        return IMPLAUSIBLE
    if kind == INTERFACE_DESCRIPTION:
        if section.state[INTERFACE_COUNT] == MOST_INTERFACES:
            return CROWDED
        if not _add_interface(chunk, at, length, section):
            return IMPLAUSIBLE
    return READABLE


@kernel
def _take_packet(chunk: np.ndarray, at: int, length: int, kind: int, section: Section, packet: np.void) -> int:
    """Fill `packet` if the block is a packet; returns the number of packets, 1 or 0."""
    if kind == SIMPLE_PACKET:
        _add_simple_packet(chunk, at, length, section, packet)
        return 1
    if kind in (ENHANCED_PACKET, OLD_PACKET):
        _add_packet(chunk, at, length, kind == OLD_PACKET, section, packet)
        return 1
    return 0


@kernel
def walk_pcapng(
    chunk: np.ndarray, end: int, at: int, stop: int, section: Section, packets: np.ndarray
) -> tuple[int, int, int]:
    """Fill `packets` (PACKET[n]) from the blocks of `chunk[at:end]` that begin before `stop`, and update the section.

    Returns (packets filled, where the next block begins, why the walk ended): AT_STOP, TABLE_FULL, NEEDS_BYTES (the
    next block reaches beyond `end`), IMPLAUSIBLE (its two lengths, byte order or options contradict each other) or
    CROWDED (more than MOST_INTERFACES in a section). A packet block whose lengths agree but whose content contradicts
    itself is filled in as UNREADABLE, and the walk goes on.
    """
    count = 0
    while at < stop:
        if count == len(packets):
            return count, at, TABLE_FULL
        if at + SHORTEST_BLOCK > end:
            return count, at, NEEDS_BYTES
        prefetch_cells(chunk, at + BYTES_AHEAD, LINE_BYTES)
        big_endian = _block_byte_order(chunk, at, section)
        length, status = _frame_block(chunk, end, at, big_endian)
        if status == READABLE:
            kind = u32(chunk, at, big_endian == 1)
            status = _take_declaration(chunk, at, length, kind, big_endian, section)
        if status != READABLE:
            return count, at, status
        count += _take_packet(chunk, at, length, kind, section, packets[count])
        at += length
    return count, at, AT_STOP
