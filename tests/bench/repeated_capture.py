"""A capture over and over, as if more clients and brokers had done the same at later times."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from udfs.capture.pcap import FILE_HEADER_BYTES, RECORD_HEADER_BYTES
from udfs.wire.arrays import Bytes, Ints

ETHERNET_HEADER = 14
SECOND_BYTES_OF_ADDRESSES = 13, 17
"""In an IPv4 header; the first and the last two bytes tell hosts of the capture apart."""
MOST_ROUNDS = 255


def repeat(capture: Path, target: Path, size: int) -> None:
    """Write a pcap file of at least `size` bytes: each round has addresses of its own and begins when the last ended.

    capture: little-endian pcap of Ethernet and IPv4. Raises ValueError where the size takes more rounds than there
    are addresses.
    """
    whole = np.fromfile(capture, np.uint8)
    header, records = whole[:FILE_HEADER_BYTES], whole[FILE_HEADER_BYTES:]
    rounds = -(-size // records.size)
    if rounds > MOST_ROUNDS:
        raise ValueError(f"{size} bytes are {rounds} rounds of {capture.name}, and {MOST_ROUNDS} are possible")
    at = starts_of(records)
    seconds = records[at[:, None] + np.arange(4)].copy().view("<u4")
    lasts = int(seconds.max() - seconds.min()) + 1
    with target.open("wb") as file:
        header.tofile(file)
        for number in range(rounds):
            records[at[:, None] + np.arange(4)] = (seconds + np.uint32(number * lasts)).view(np.uint8)
            for place in SECOND_BYTES_OF_ADDRESSES:
                records[at + RECORD_HEADER_BYTES + ETHERNET_HEADER + place] = number + 1
            records.tofile(file)


def starts_of(records: Bytes) -> Ints:
    """Where each record begins."""
    starts, at = [], 0
    while at < records.size:
        starts.append(at)
        at += RECORD_HEADER_BYTES + int(records[at + 8 : at + 12].view("<u4")[0])
    return np.array(starts)
