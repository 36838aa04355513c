"""Packets that were captured twice: in one file by `-i any` on two interfaces, or at two capture points."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.capture.digests import SEED, continue_digest, mix_bits
from udfs.capture.packet_table import PACKETS_PER_TABLE
from udfs.capture.tcp_headers import CONNECTION_BYTES, TCP_HEADER, TcpPackets
from udfs.columns.arrays import Bytes, Ints, Records
from udfs.kernels.kernel import kernel

SAMPLED = 4096
RECENT = 1 << 14
# TCP retransmits nothing so soon: Linux waits 200 ms (TCP_RTO_MIN) unless acknowledgements report a loss.
AT_ONCE_NS = 10_000_000


class PacketSample(NamedTuple):
    """The packets of a file with the smallest fingerprints. Files that share packets have the same ones in their
    samples.

    digests: uint64[n], ascending, each once, n <= SAMPLED; times: int64[n], ns, of the first packet with the digest
    """

    digests: np.ndarray
    times: Ints


NO_SAMPLE = PacketSample(np.empty(0, np.uint64), np.empty(0, np.int64))


@kernel
def fingerprint(chunk: Bytes, header: int, options_end: int, direction: int, connection: Bytes) -> np.uint64:
    """A hash of what is the same wherever a TCP packet is captured: endpoints, sequence numbers and options.

    The options have time stamps, which differ in a retransmission (RFC 7323). The hash leaves out what a network card
    changes: the checksum, and the length if it cuts or joins segments.

    chunk: uint8, bytes of the file. header, options_end: where the TCP header begins and its options end in `chunk`.
    connection: uint8[36], both endpoints.
    """
    digest = continue_digest(SEED ^ np.uint64(direction), connection, 0, CONNECTION_BYTES)
    digest = continue_digest(digest, chunk, header + 4, header + 12)
    return mix_bits(continue_digest(digest, chunk, header + TCP_HEADER, options_end))


@kernel
def count_doubled(
    chunk: Bytes, packets: Records, tcp_packets: TcpPackets, recent: Ints, limit: np.uint64, chosen: PacketSample
) -> tuple[int, int]:
    """(how many packets with payload were captured twice within AT_ONCE_NS, how many packets are chosen for the
    sample).

    A packet is chosen if it has a time and a digest below `limit`; both are written to `chosen`, which has n rows.
    packets: PACKET[n], in the chunk. recent: int64[RECENT, 2], digests and times in ns of the packets before.
    """
    doubled = n_chosen = 0
    for i in range(len(packets)):
        tcp, time = tcp_packets.rows[i], packets[i]["ts_ns"]
        if not tcp["kept"]:
            continue
        captured_to = packets[i]["offset"] + packets[i]["captured"]  # a snaplen may cut the options
        options_end = min(tcp["payload_offset"], captured_to)
        connection = tcp_packets.connections[i]
        digest = fingerprint(chunk, tcp["header_offset"], options_end, tcp["direction"], connection)
        if digest < limit and time != 0:
            chosen.digests[n_chosen], chosen.times[n_chosen] = digest, time
            n_chosen += 1
        slot, known = int(digest % np.uint64(RECENT)), np.int64(digest)
        if recent[slot, 0] == known and abs(time - recent[slot, 1]) < AT_ONCE_NS and tcp["payload_bytes"] > 0:
            doubled += 1
        recent[slot, 0], recent[slot, 1] = known, time
    return doubled, n_chosen


class Fingerprints:
    """A growing sample of a capture's packets, and the number of packets that the capture has twice."""

    def __init__(self) -> None:
        self.doubled_packets = 0
        self._recent = np.zeros((RECENT, 2), np.int64)
        self._chosen = PacketSample(np.empty(PACKETS_PER_TABLE, np.uint64), np.empty(PACKETS_PER_TABLE, np.int64))
        self._sample = NO_SAMPLE
        self._waiting: list[PacketSample] = []
        self._limit = np.uint64(np.iinfo(np.uint64).max)

    def add(self, chunk: Bytes, packets: Records, tcp_packets: TcpPackets) -> None:
        """Add packets in the chunk, PACKET[n] with n <= PACKETS_PER_TABLE, with their headers."""
        doubled, n = count_doubled(chunk, packets, tcp_packets, self._recent, self._limit, self._chosen)
        self.doubled_packets += doubled
        if n:
            self._waiting.append(PacketSample(self._chosen.digests[:n].copy(), self._chosen.times[:n].copy()))
            if sum(len(part.digests) for part in self._waiting) > SAMPLED:
                self._sample_waiting()

    @property
    def sample(self) -> PacketSample:
        """The sample of all packets that were added."""
        self._sample_waiting()
        return self._sample

    def _sample_waiting(self) -> None:
        """Add the packets chosen since the last time to the sample, and lower the limit."""
        parts = [self._sample, *self._waiting]
        times = np.concatenate([part.times for part in parts])
        digests, first = np.unique(np.concatenate([part.digests for part in parts]), return_index=True)
        self._sample = PacketSample(digests[:SAMPLED], times[first[:SAMPLED]])
        self._waiting = []
        if len(digests) >= SAMPLED:
            self._limit = self._sample.digests[-1]
