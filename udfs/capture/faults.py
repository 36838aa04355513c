"""Why a part of a capture could not be read."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class FaultReason(StrEnum):
    """The value is the text that users read.

    file_empty:                there is not one byte, or none once uncompressed
    file_header_cut:           the file ends within the pcap file header
    packet_cut:                the file ends within a packet record or block
    packet_header_implausible: bytes that cannot be a pcap record header; what follows cannot be found again
    block_malformed:           bytes that cannot be a pcapng block
    too_many_interfaces:       a pcapng section declares more than 1,024
    compression_cut:           the file ends within a gzip member or zstd frame; every stored byte was taken in
    compression_damaged:       bytes that are no gzip or zstd data, or fail its checks
    compression_excessive:     the file expands more than 1,024 times, beyond the first GiB
    row_without_value:          rows of a frame dump in which a column that every row needs is null
    direction_unknown:          rows of a frame dump that are neither `request` nor `response`
    timestamp_implausible:      rows of a frame dump from before 1970 or after 2116
    address_malformed:          rows of a frame dump with an address that is no IP address and port
    rows_damaged:               rows of a frame dump that cannot be read
    """

    FILE_EMPTY = "file_empty"
    FILE_HEADER_CUT = "file_header_cut"
    PACKET_CUT = "packet_cut"
    PACKET_HEADER_IMPLAUSIBLE = "packet_header_implausible"
    BLOCK_MALFORMED = "block_malformed"
    TOO_MANY_INTERFACES = "too_many_interfaces"
    COMPRESSION_CUT = "compression_cut"
    COMPRESSION_DAMAGED = "compression_damaged"
    COMPRESSION_EXCESSIVE = "compression_excessive"
    ROW_WITHOUT_VALUE = "row_without_value"
    DIRECTION_UNKNOWN = "direction_unknown"
    TIMESTAMP_IMPLAUSIBLE = "timestamp_implausible"
    ADDRESS_MALFORMED = "address_malformed"
    ROWS_DAMAGED = "rows_damaged"


@dataclass(frozen=True)
class CaptureFault:
    """One place where reading stopped.

    offset:         byte at which it stopped: of the stored file for the `compression_*` reasons, else of the
                    uncompressed stream; of a frame dump the first such row
    bytes_not_read: bytes from there to the end of the same file or stream; they gave no packet
    """

    reason: FaultReason
    offset: int
    bytes_not_read: int
    unit: str = "byte"
