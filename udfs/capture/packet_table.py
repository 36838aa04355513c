"""The arrays that capture kernels share: packets found in a chunk, the section they are in, what a packet can hold."""

from __future__ import annotations

import numpy as np

PACKET = np.dtype(
    [
        ("offset", np.int64),  # of the link-layer header in the chunk
        ("captured", np.int64),  # bytes in the chunk
        ("original", np.int64),  # bytes on the wire
        ("ts_ns", np.int64),  # 0 where the capture holds no time (simple packet block)
        ("link_type", np.int64),  # LINKTYPE_ number, or UNREADABLE
    ]
)
UNREADABLE = -1
"""Link type of a packet record that contradicts itself, names no known interface or has a time beyond int64 ns."""

# What ended a walk over a chunk; READABLE where nothing did yet.
AT_STOP, TABLE_FULL, NEEDS_BYTES, IMPLAUSIBLE, CROWDED, READABLE = range(6)

# Slots of a section's state, int64.
BIG_ENDIAN, INTERFACES, STARTED, WIDEST_SNAPLEN = range(4)
SECTION_SLOTS = 4

# Columns of a section's interfaces, int64[n, 4]; a classic pcap file has exactly one interface. SNAPLEN is 0 for no
# limit, RESOLUTION is if_tsresol (6 = microseconds, 9 = nanoseconds, bit 7 set = a power of two), TIME_OFFSET seconds.
LINK_TYPE, SNAPLEN, RESOLUTION, TIME_OFFSET = range(4)
INTERFACE_COLUMNS = 4
MOST_INTERFACES = 1024

LONGEST_RECORD = 16 << 20
"""Longest packet record or block believed, in bytes. Wireshark refuses longer pcapng blocks as well."""

# What a packet turned out to be.
TCP_SEGMENT, NOT_IP, NOT_TCP, FRAGMENT, MALFORMED, HEADERS_CUT, UNKNOWN_LINK_TYPE = range(7)
VERDICTS = 7

PACKETS_PER_TABLE = 16_384
BYTES_AHEAD = 2048
"""A walk goes from length to length, and a processor cannot tell what is read next: it is asked for so far ahead."""
