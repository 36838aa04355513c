"""Recognises a capture by the first bytes of its stream, and names what other files are."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from udfs.capture import pcap
from udfs.capture.compression import GZIP_MAGIC, ZSTD_MAGIC, Compression
from udfs.capture.faults import FaultReason
from udfs.capture.magics import PCAP_MAGICS, PCAPNG_MAGIC
from udfs.capture.packet_table import INTERFACE_COLUMNS
from udfs.capture.packet_walk import CaptureFormat
from udfs.errors import AlienError

HEAD_BYTES = 512
"""How many bytes are enough to recognise a file that is no capture."""
TAR_MAGIC_AT = 257

ALIENS = {
    b"\xa1\xb2\xcd\x34": "a capture in the patched pcap format; convert it with `editcap -F pcapng`",
    b"\x34\xcd\xb2\xa1": "a capture in the patched pcap format; convert it with `editcap -F pcapng`",
    b"snoop\x00": "a snoop capture; convert it with `editcap -F pcapng`",
    b"\x54\x52\x41\x43": "a NetScaler trace; convert it with `editcap -F pcapng`",
    GZIP_MAGIC: "gzip; decompress it once more",
    ZSTD_MAGIC: "zstd; decompress it once more",
    b"\xfd7zXZ\x00": "xz; decompress it first, refetch reads .gz and .zst",
    b"BZh": "bzip2; decompress it first, refetch reads .gz and .zst",
    b"\x04\x22\x4d\x18": "lz4; decompress it first, refetch reads .gz and .zst",
    b"PK\x03\x04": "a zip archive; unpack it first",
    b"PAR1": "a Parquet file",
    b"FEA1": "Feather of version 1; write the dump as Parquet, or as Arrow IPC in its file format",
    b"\xff\xff\xff\xff": "that of an Arrow IPC stream; write the dump as Parquet, or as Arrow IPC in its file format",
    b"{": "JSON text",
    b"<": "HTML or XML, as a failed download leaves",
    b"\x89PNG": "an image",
    b"\xff\xd8\xff": "an image",
    b"GIF8": "an image",
}
TEXT = re.compile(rb"[\t\n\r -~]{2,}")
BROKER_LOG = re.compile(rb"\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[,.]\d{3}\]? ")
"""The beginning of a line of log4j, with the patterns in Kafka's configuration files."""
NO_FORMAT = "of no known format"


@dataclass(frozen=True)
class FileHeader:
    """Where the records of a stream begin, and how to read them.

    interfaces: int64[n, 4] (`packet_table`); none for a pcapng stream, whose sections declare them
    fault:      why there are no records to read, if there are none
    """

    format: CaptureFormat
    big_endian: bool
    first_byte: int
    interfaces: np.ndarray
    fault: FaultReason | None = None


def read_file_header(head: bytes, path: str, compression: Compression) -> FileHeader:
    """The header of a stream that begins with `head` (HEAD_BYTES, or fewer if the stream is shorter).

    Raises AlienError if the stream is no capture.
    """
    undeclared = np.empty((0, INTERFACE_COLUMNS), np.int64)
    if not head:
        return FileHeader(CaptureFormat.NONE, False, 0, undeclared, FaultReason.FILE_EMPTY)
    if head.startswith(PCAPNG_MAGIC):
        return FileHeader(CaptureFormat.PCAPNG, False, 0, undeclared)
    if len(head) < len(PCAPNG_MAGIC) and any(magic.startswith(head) for magic in (*PCAP_MAGICS, PCAPNG_MAGIC)):
        return FileHeader(CaptureFormat.NONE, False, 0, undeclared, FaultReason.FILE_HEADER_CUT)
    if head[:4] not in PCAP_MAGICS:
        raise AlienError(_alien_message(head, path, compression))
    if len(head) < pcap.FILE_HEADER_BYTES:
        return FileHeader(CaptureFormat.PCAP, False, 0, undeclared, FaultReason.FILE_HEADER_CUT)
    big_endian, major, interfaces = pcap.parse_file_header(head)
    if major != pcap.MAJOR_VERSION:
        raise AlienError(
            f"{path}: pcap of major version {major}, expected {pcap.MAJOR_VERSION}. "
            "Convert it with `editcap -F pcapng`."
        )
    return FileHeader(CaptureFormat.PCAP, big_endian, pcap.FILE_HEADER_BYTES, interfaces)


def _alien_message(head: bytes, path: str, compression: Compression) -> str:
    inside = "" if compression is Compression.NONE else f"{compression.value} of something that is not a capture: "
    return (
        f"{path}: {inside}the content is {_meaning(head)} (first bytes {head[:4].hex(' ')}). "
        "Expected pcap or pcapng as tcpdump -w writes it, a broker's request log, or a frame dump."
    )


def _meaning(head: bytes) -> str:
    known = next((text for magic, text in ALIENS.items() if head.startswith(magic)), None)
    if known is not None:
        return known
    if head.startswith(b"ustar", TAR_MAGIC_AT):
        return "a tar archive; unpack it first"
    if not any(head):
        return "zeros, as a copy that was not finished has; copy it again"
    if BROKER_LOG.match(head):
        return (
            "a log of a broker, such as server.log, without requests; the request log has them, once the logger "
            "kafka.request.logger is at DEBUG (docs/capturing.md)"
        )
    return "text; `tcpdump -w FILE` writes a capture, and prints text without -w" if TEXT.fullmatch(head) else NO_FORMAT
