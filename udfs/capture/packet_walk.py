"""Reads a stream of packet records, a table of packets at a time."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

import numpy as np

from udfs.capture.faults import CaptureFault, FaultReason
from udfs.capture.packet_table import (
    AT_STOP,
    BIG_ENDIAN,
    CROWDED,
    INTERFACE_COLUMNS,
    INTERFACE_COUNT,
    MOST_INTERFACES,
    NEEDS_BYTES,
    PACKET,
    PACKETS_PER_TABLE,
    READABLE,
    SECTION_SLOTS,
    SNAPLEN,
    STARTED,
    TABLE_FULL,
    WIDEST_SNAPLEN,
    Section,
)
from udfs.capture.pcap import find_records, walk_pcap
from udfs.capture.pcapng import walk_pcapng
from udfs.capture.storage import StreamWindow

TO_THE_END = 1 << 62


class CaptureFormat(StrEnum):
    """Layout of the uncompressed stream; NONE for a file that is empty or is not read."""

    PCAP = "pcap"
    PCAPNG = "pcapng"
    NONE = "none"


Walk = Callable[[np.ndarray, int, int, int, Section, np.ndarray], tuple[int, int, int]]
WALKS: dict[CaptureFormat, Walk] = {CaptureFormat.PCAP: walk_pcap, CaptureFormat.PCAPNG: walk_pcapng}
IMPLAUSIBLE_REASON = {
    CaptureFormat.PCAP: FaultReason.PACKET_HEADER_IMPLAUSIBLE,
    CaptureFormat.PCAPNG: FaultReason.BLOCK_MALFORMED,
}


class PacketWalk:
    """A position in a capture's records, and the section in force there.

    packet_no: number of the next packet in the file
    format:    layout of the stream
    packets:   PACKET[n], those of the last `advance`, at offsets in `window.chunk`
    skipped:   the bytes that `skip_damage` has skipped
    """

    def __init__(
        self,
        window: StreamWindow,
        capture_format: CaptureFormat,
        *,
        big_endian: bool,
        interfaces: np.ndarray,
        packet_no: int = 0,
        at: int = 0,
    ) -> None:
        """interfaces: int64[n, 4], those of the section with the next record; none if a section header comes first.

        at: where in the window's chunk the first record begins.
        """
        self.window = window
        self.packet_no = packet_no
        self.packets = np.empty(0, PACKET)
        self.format = capture_format
        self.skipped: list[CaptureFault] = []
        self._at = at
        self._status = TABLE_FULL
        self._table = np.empty(PACKETS_PER_TABLE, PACKET)
        self._section = Section(
            state=np.zeros(SECTION_SLOTS, np.int64),
            interfaces=np.zeros((MOST_INTERFACES, INTERFACE_COLUMNS), np.int64),
        )
        state = self._section.state
        state[[BIG_ENDIAN, INTERFACE_COUNT, STARTED]] = big_endian, len(interfaces), self.offset > 0
        state[WIDEST_SNAPLEN] = interfaces[:, SNAPLEN].max(initial=0)
        self._section.interfaces[: len(interfaces)] = interfaces

    @property
    def offset(self) -> int:
        """Stream offset of the next record."""
        return self.window.base + self._at

    @property
    def pending_bytes(self) -> int:
        """Bytes in the window from the next record on."""
        return self.window.end - self._at

    @property
    def big_endian(self) -> bool:
        return bool(self._section.state[BIG_ENDIAN])

    @property
    def interfaces(self) -> np.ndarray:
        """int64[n, 4]: interfaces of the section that the next record is in."""
        return self._section.interfaces[: self._section.state[INTERFACE_COUNT]].copy()

    @property
    def snaplen(self) -> int:
        """Largest snaplen that any interface has declared so far, 0 if none has."""
        return int(self._section.state[WIDEST_SNAPLEN])

    @property
    def at_stop(self) -> bool:
        return self._status == AT_STOP

    def fault(self) -> FaultReason | None:
        """Why the walk ended, after `advance` has returned False; None if the stream ended with a whole record."""
        if self._status == NEEDS_BYTES:
            return FaultReason.PACKET_CUT if self.pending_bytes else None
        return FaultReason.TOO_MANY_INTERFACES if self._status == CROWDED else IMPLAUSIBLE_REASON[self.format]

    def advance(self, stop: int = TO_THE_END) -> bool:
        """Read the next packets that begin before stream offset `stop`, and more of the stream if needed.

        False if nothing more can be read. `packets` may be empty when `at_stop` is set.
        """
        while True:
            count, self._at, self._status = WALKS[self.format](
                self.window.chunk,
                self.window.end,
                self._at,
                stop - self.window.base,
                self._section,
                self._table,
            )
            self.packet_no += count
            self.packets = self._table[:count]
            if count or self._status == AT_STOP:
                return True
            if self._status != NEEDS_BYTES:
                return False
            more = self.window.refill(self._at)
            self._at = 0
            if not more:
                return False

    def skip_damage(self) -> bool:
        """Go on where packets begin again after an implausible header. To be called after `advance` has returned False.

        Returns False if they do not begin again, or if this format does not allow that. Then nothing is skipped, and
        the rest of the stream is read.
        """
        reason, begin = self.fault(), self.offset
        if reason is not FaultReason.PACKET_HEADER_IMPLAUSIBLE:
            return False
        at, next_record, is_last = self._at + 1, NEEDS_BYTES, False
        while next_record == NEEDS_BYTES:
            is_last = not self.window.refill(at)
            at, next_record = find_records(self.window.chunk, self.window.end, 0, self._section, is_last)
        if next_record != READABLE:
            self._at = begin - self.window.base  # the window has moved
            return False
        self._at, self._status = at, TABLE_FULL
        self.skipped.append(CaptureFault(reason, begin, self.offset - begin))
        return True
