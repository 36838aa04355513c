"""Counts the packets of a capture by kind."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from udfs.capture.fingerprints import Fingerprints
from udfs.capture.packet_table import (
    FRAGMENT,
    HEADERS_CUT,
    MALFORMED,
    NOT_IP,
    NOT_TCP,
    TCP_SEGMENT,
    UNKNOWN_LINK_TYPE,
    UNREADABLE,
    VERDICTS,
)
from udfs.capture.tcp_headers import TcpPackets, TcpTable
from udfs.kernels.kernel import kernel

LINK_TYPES = 1 << 16
# Slots of a PacketCounter's totals, int64.
CAPTURED, ON_WIRE, WITHOUT_TIME, EARLIEST, LATEST = range(5)
INT64 = np.iinfo(np.int64)


@dataclass(frozen=True)
class PacketCounts:
    """Packets by kind; `packets` is the sum of all others except `without_time`.

    tcp:               whole TCP headers, including those in envelopes (`udfs.capture.envelopes`)
    not_ip, not_tcp:   other protocols, including envelopes that cannot be opened
    fragments:         pieces of fragmented TCP packets, first ones included
    malformed:         headers that contradict themselves or the packet's length
    headers_cut:       headers cut off by the snaplen
    unknown_link_type: from an interface whose link type refetch cannot read
    without_time:      packets of any kind for which the capture has no time
    """

    packets: int
    tcp: int
    not_ip: int
    not_tcp: int
    fragments: int
    malformed: int
    headers_cut: int
    unknown_link_type: int
    without_time: int


NO_PACKETS = PacketCounts(
    packets=0, tcp=0, not_ip=0, not_tcp=0, fragments=0, malformed=0, headers_cut=0, unknown_link_type=0, without_time=0
)


@kernel
def count_packets(
    packets: np.ndarray,
    tcp_rows: np.ndarray,
    verdicts: np.ndarray,
    bucket_payload_bytes: np.ndarray,
    link_types: np.ndarray,
    totals: np.ndarray,
) -> None:
    """Add a table of packets (PACKET[n], TCP_PACKET[n]) to the counts, in place.

    verdicts: int64[VERDICTS]; bucket_payload_bytes: int64[buckets]; link_types: bool[LINK_TYPES]; totals: int64[5]
    """
    for i in range(len(packets)):
        packet, tcp = packets[i], tcp_rows[i]
        verdicts[tcp["verdict"]] += 1
        if packet["link_type"] != UNREADABLE:
            link_types[packet["link_type"]] = True
        if packet["ts_ns"] == 0:
            totals[WITHOUT_TIME] += 1
        else:
            totals[EARLIEST] = min(totals[EARLIEST], packet["ts_ns"])
            totals[LATEST] = max(totals[LATEST], packet["ts_ns"])
        if tcp["verdict"] == TCP_SEGMENT and tcp["kept"]:
            totals[CAPTURED] += tcp["payload_captured"]
            totals[ON_WIRE] += tcp["payload_bytes"]
            bucket_payload_bytes[tcp["bucket"]] += tcp["payload_captured"]


class PacketCounter:
    """Running counts of a capture.

    bucket_payload_bytes: int64[buckets], captured TCP payload by bucket of the connection
    fingerprints:         a sample of the packets, and how many of them the capture has twice
    """

    def __init__(self, buckets: int) -> None:
        self.bucket_payload_bytes = np.zeros(buckets, np.int64)
        self.fingerprints = Fingerprints()
        self._headers = TcpTable(buckets)
        self._verdicts = np.zeros(VERDICTS, np.int64)
        self._link_types = np.zeros(LINK_TYPES, np.bool_)
        self._totals = np.array([0, 0, 0, INT64.max, INT64.min], np.int64)

    def add(self, chunk: np.ndarray, packets: np.ndarray) -> TcpPackets:
        """Count packets of the chunk, PACKET[n]; returns their headers, which are valid until the next call."""
        tcp = self._headers.parse(chunk, packets)
        self.fingerprints.add(chunk, packets, tcp)
        count_packets(packets, tcp.rows, self._verdicts, self.bucket_payload_bytes, self._link_types, self._totals)
        return tcp

    @property
    def counts(self) -> PacketCounts:
        """How many packets of each kind were added."""
        return PacketCounts(
            packets=int(self._verdicts.sum()),
            tcp=int(self._verdicts[TCP_SEGMENT]),
            not_ip=int(self._verdicts[NOT_IP]),
            not_tcp=int(self._verdicts[NOT_TCP]),
            fragments=int(self._verdicts[FRAGMENT]),
            malformed=int(self._verdicts[MALFORMED]),
            headers_cut=int(self._verdicts[HEADERS_CUT]),
            unknown_link_type=int(self._verdicts[UNKNOWN_LINK_TYPE]),
            without_time=int(self._totals[WITHOUT_TIME]),
        )

    @property
    def payload_bytes(self) -> tuple[int, int]:
        """(TCP payload bytes as captured, TCP payload bytes on the wire)."""
        return int(self._totals[CAPTURED]), int(self._totals[ON_WIRE])

    @property
    def link_types(self) -> tuple[int, ...]:
        """Link types of the packets that were added, ascending."""
        return tuple(np.flatnonzero(self._link_types).tolist())

    @property
    def span(self) -> tuple[int, int] | tuple[None, None]:
        """Earliest and latest time in ns; None if no packet has a time."""
        earliest, latest = int(self._totals[EARLIEST]), int(self._totals[LATEST])
        return (None, None) if earliest > latest else (earliest, latest)
