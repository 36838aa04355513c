"""The arrays that the kernels of capture files share: packets of a chunk, their section, and kinds of packets."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

PACKET = np.dtype(
    [
        ("offset", np.int64),  # of the link-layer header in the chunk
        ("captured", np.int64),  # bytes in the chunk
        ("original", np.int64),  # bytes on the wire
        ("ts_ns", np.int64),  # 0 if the capture has no time (simple packet block)
        ("link_type", np.int64),  # LINKTYPE_ number, or UNREADABLE
    ]
)
UNREADABLE = -1
"""Link type of a packet record that contradicts itself, names no known interface, or has a time beyond int64 ns."""

# Why a walk over a chunk ended; READABLE while it goes on.
AT_STOP, TABLE_FULL, NEEDS_BYTES, IMPLAUSIBLE, CROWDED, READABLE = range(6)

# Slots of a section's state.
BIG_ENDIAN, INTERFACE_COUNT, STARTED, WIDEST_SNAPLEN = range(4)
SECTION_SLOTS = 4

# Columns of a section's interfaces. SNAPLEN is 0 for no limit, RESOLUTION is if_tsresol (6 = microseconds,
# 9 = nanoseconds, bit 7 set = a power of two), TIME_OFFSET is in seconds.
LINK_TYPE, SNAPLEN, RESOLUTION, TIME_OFFSET = range(4)
INTERFACE_COLUMNS = 4
MOST_INTERFACES = 1024


class Section(NamedTuple):
    """The section of a capture that is being read; a classic pcap file is one section with one interface.

    state: int64[SECTION_SLOTS]. interfaces: int64[MOST_INTERFACES, INTERFACE_COLUMNS].
    """

    state: np.ndarray
    interfaces: np.ndarray


LONGEST_RECORD = 16 << 20
"""A packet record or block that claims more bytes than this is damage. Wireshark refuses such blocks, too."""

# What kind of packet a packet is.
TCP_SEGMENT, NOT_IP, NOT_TCP, FRAGMENT, MALFORMED, HEADERS_CUT, UNKNOWN_LINK_TYPE = range(7)
VERDICTS = 7

PACKETS_PER_TABLE = 16_384
BYTES_AHEAD = 2048
"""How far ahead a walk prefetches. It goes from length to length, so the processor cannot predict what is read next."""
