"""Packets that were captured twice: in one file, by `-i any` on two interfaces, or at two capture points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from udfs.capture.digests import SEED, digest_on, mixed
from udfs.capture.packet_table import PACKETS_PER_TABLE
from udfs.capture.tcp_headers import CONNECTION_BYTES, TCP_HEADER
from udfs.columns.arrays import Bytes, Ints, Records
from udfs.kernels.kernel import kernel

SAMPLED = 4096
RECENT = 1 << 14
# TCP does not send anything again so soon: Linux waits 200 ms (TCP_RTO_MIN) unless acknowledgements tell of a loss.
AT_ONCE_NS = 10_000_000


@dataclass(frozen=True, eq=False)
class PacketSample:
    """The packets of a file with the smallest fingerprints: two files that saw the same packets sample the same ones.

    digests: uint64[n], ascending, each once, n <= SAMPLED; times: int64[n], ns, of the first packet with the digest
    """

    digests: np.ndarray
    times: Ints


NO_SAMPLE = PacketSample(np.empty(0, np.uint64), np.empty(0, np.int64))


@kernel
def fingerprint(chunk: Bytes, header: int, options_end: int, direction: int, connection: Bytes) -> np.uint64:
    """A hash of what a TCP packet has wherever it is captured: endpoints, sequence and acknowledgement number, options.

    Options have the time stamps by which a retransmission differs (RFC 7323). Left out is what a network card changes:
    the checksum, and the length where it cuts or joins segments.
    """
    digest = digest_on(SEED ^ np.uint64(direction), connection, 0, CONNECTION_BYTES)
    digest = digest_on(digest, chunk, header + 4, header + 12)
    return mixed(digest_on(digest, chunk, header + TCP_HEADER, options_end))


@kernel
def count_doubled(
    chunk: Bytes,
    packets: Records,
    tcp_packets: Records,
    connections: Bytes,
    recent: Ints,
    limit: np.uint64,
    digests: np.ndarray,
    times: Ints,
) -> tuple[int, int]:
    """(how many packets with payload came twice at once, how many packets are chosen); of the chosen `digests` and
    `times` are written, uint64[n] and int64[n]: those that have a time and a digest below `limit`.

    packets: PACKET[n]; tcp_packets: TCP_PACKET[n]; connections: uint8[n, 36]; recent: int64[RECENT, 2], digest and ns
    """
    doubled = chosen = 0
    for i in range(len(packets)):
        tcp, time = tcp_packets[i], packets[i]["ts_ns"]
        if not tcp["kept"]:
            continue
        captured_to = packets[i]["offset"] + packets[i]["captured"]  # a snaplen may cut the options
        options_end = min(tcp["payload_offset"], captured_to)
        digest = fingerprint(chunk, tcp["header_offset"], options_end, tcp["direction"], connections[i])
        if digest < limit and time != 0:
            digests[chosen], times[chosen] = digest, time
            chosen += 1
        slot, known = int(digest % np.uint64(RECENT)), np.int64(digest)
        if recent[slot, 0] == known and abs(time - recent[slot, 1]) < AT_ONCE_NS and tcp["payload_bytes"] > 0:
            doubled += 1
        recent[slot, 0], recent[slot, 1] = known, time
    return doubled, chosen


class Fingerprints:
    """Running sample of a capture's packets, and the count of those that it holds twice."""

    def __init__(self) -> None:
        self.doubled_packets = 0
        self._recent = np.zeros((RECENT, 2), np.int64)
        self._digests = np.empty(PACKETS_PER_TABLE, np.uint64)
        self._times = np.empty(PACKETS_PER_TABLE, np.int64)
        self._sample = NO_SAMPLE
        self._held: list[PacketSample] = []
        self._limit = np.uint64(np.iinfo(np.uint64).max)

    def add(self, chunk: Bytes, packets: Records, tcp_packets: Records, connections: Bytes) -> None:
        """Take in `packets` (PACKET[n], n <= PACKETS_PER_TABLE) of `chunk`, with what TcpTable.parse made of them."""
        digests, times = self._digests[: len(packets)], self._times[: len(packets)]
        doubled, chosen = count_doubled(
            chunk, packets, tcp_packets, connections, self._recent, self._limit, digests, times
        )
        self.doubled_packets += doubled
        if chosen:
            self._held.append(PacketSample(digests[:chosen].copy(), times[:chosen].copy()))
            if sum(len(held.digests) for held in self._held) > SAMPLED:
                self._sample_held()

    @property
    def sample(self) -> PacketSample:
        """The sample of all packets so far."""
        self._sample_held()
        return self._sample

    def _sample_held(self) -> None:
        parts = [self._sample, *self._held]
        times = np.concatenate([part.times for part in parts])
        digests, first = np.unique(np.concatenate([part.digests for part in parts]), return_index=True)
        self._sample = PacketSample(digests[:SAMPLED], times[first[:SAMPLED]])
        self._held = []
        if len(digests) >= SAMPLED:
            self._limit = self._sample.digests[-1]
