"""Why a part of a capture could not be read."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class FaultReason(StrEnum):
    """The value is the text that users read: schemas.tables.fault_reasons says what each means."""

    NOT_A_CAPTURE = "not_a_capture"
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
    """One place at which reading stopped, or that was skipped.

    offset:         the byte: of the stored file for the `compression_*` reasons, else of the uncompressed stream; for a
                    frame dump the first row with this fault
    bytes_not_read: bytes from there to where packets go on, or to the end of the same file or stream
    unit:           what `offset` counts, `byte` or `row`
    """

    reason: FaultReason
    offset: int
    bytes_not_read: int
    unit: str = "byte"
