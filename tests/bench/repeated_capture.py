"""Repeats a capture, as if more clients and brokers had done the same at later times."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from tests.unit.capture.capture_files import records_of
from udfs.capture.pcap import FILE_HEADER_BYTES, RECORD_HEADER_BYTES
from udfs.columns.arrays import Ints

ETHERNET_HEADER = 14
ADDRESSES = ETHERNET_HEADER + 12, ETHERNET_HEADER + 16
SECOND_BYTES = 255
"""How many values the second byte of an address gets, from 1 on, before the first byte changes. The last two bytes stay
the same and distinguish the capture's hosts. So do the first bytes, because all of them change by the same amount."""
MOST_ROUNDS = 256 * SECOND_BYTES


def repeat(capture: Path, target: Path, size: int) -> int:
    """Write a pcap file of at least `size` bytes. Each round has its own addresses, and begins when the last round
    ended. Returns the number of rounds.

    capture: little-endian pcap of Ethernet and IPv4. Raises ValueError if the size needs more rounds than there are
    addresses.
    """
    whole = np.fromfile(capture, np.uint8)
    header, records = whole[:FILE_HEADER_BYTES], whole[FILE_HEADER_BYTES:]
    rounds = -(-size // records.size)
    if rounds > MOST_ROUNDS:
        raise ValueError(f"{size} bytes are {rounds} rounds of {capture.name}, and {MOST_ROUNDS} are possible")
    at = record_starts(whole.tobytes())
    seconds = records[at[:, None] + np.arange(4)].copy().view("<u4")
    addresses = (at + RECORD_HEADER_BYTES)[:, None] + np.array(ADDRESSES)
    firsts = records[addresses].copy()
    lasts = int(seconds.max() - seconds.min()) + 1
    with target.open("wb") as file:
        header.tofile(file)
        for number in range(rounds):
            records[at[:, None] + np.arange(4)] = (seconds + np.uint32(number * lasts)).view(np.uint8)
            changes, second = divmod(number, SECOND_BYTES)
            records[addresses] = firsts + np.uint8(changes)
            records[addresses + 1] = second + 1
            records.tofile(file)
        os.fsync(file.fileno())  # otherwise the system would write it during a measurement
    return rounds


def record_starts(capture: bytes) -> Ints:
    """Where each packet's record begins after the file's header: int64[packets]."""
    sizes = [RECORD_HEADER_BYTES + len(packet.data) for packet in records_of(capture)[1]]
    return np.cumsum([0, *sizes[:-1]])
