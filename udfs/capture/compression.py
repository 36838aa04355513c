"""Compressed captures as a stream. The first bytes of a file show how it is compressed; its name does not count."""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from enum import StrEnum
from typing import Protocol

import zstandard

from udfs.capture.faults import CaptureFault, FaultReason
from udfs.capture.storage import ByteStream, open_stored, stored_bytes
from udfs.errors import CaptureError

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
ZSTD_SKIPPABLE = b"\x2a\x4d\x18"  # after a byte 0x50 to 0x5f (RFC 8878 3.1.2)

# How many compressed bytes a decompressor gets at once. This limits what one call can return: gzip expands at most 1032
# times, and zstd expands a block of 4 bytes to 128 KiB.
GZIP_STEP, ZSTD_STEP = 16_384, 2_048
ZSTD_WINDOW = 128 << 20  # `zstd --long=27`, the largest that zstd's own tool decompresses without an option
LEAST_LIMIT = 1 << 30
MOST_EXPANSION = 1_024
USUAL_EXPANSION = 10  # of captures, to estimate their size


class Compression(StrEnum):
    """How a file is stored."""

    NONE = "none"
    GZIP = "gzip"
    ZSTD = "zstd"


class Decompressor(Protocol):
    """The common interface of zlib's and zstandard's decompression objects, each for one gzip member or zstd frame."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /) -> bytes: ...


def stored_compression(stored: io.RawIOBase) -> Compression:
    """How an open file is compressed. The file is at its beginning, before and after the call."""
    head = stored.read(len(ZSTD_MAGIC)) or b""
    stored.seek(0)
    if head.startswith(GZIP_MAGIC):
        return Compression.GZIP
    if head.startswith(ZSTD_MAGIC) or (head[1:4] == ZSTD_SKIPPABLE and head[0] >> 4 == 5):
        return Compression.ZSTD
    return Compression.NONE


def estimated_unpacked_bytes(path: str) -> int:
    """An estimate of a file's uncompressed bytes: USUAL_EXPANSION times its size if it is compressed.

    0 if the file cannot be opened: whoever reads it will report why.
    """
    with suppress(CaptureError), open_stored(path) as stored:
        return stored_bytes(path) * (1 if stored_compression(stored) is Compression.NONE else USUAL_EXPANSION)
    return 0


def _gzip_member() -> Decompressor:
    return zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)


def _zstd_frame() -> Decompressor:
    return zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW).decompressobj()


CODECS: dict[Compression, tuple[int, Callable[[], Decompressor]]] = {
    Compression.GZIP: (GZIP_STEP, _gzip_member),
    Compression.ZSTD: (ZSTD_STEP, _zstd_frame),
}


def decompress(stored: io.BufferedIOBase, compression: Compression, faults: list[CaptureFault]) -> Iterator[bytes]:
    """The uncompressed bytes of a stored file, all its gzip members or zstd frames, in blocks.

    The blocks depend only on the file. A file that is cut or damaged, or that expands more than MOST_EXPANSION times
    after the first GiB, gives the bytes before that place, and a fault is added to `faults`.
    """
    step, begin = CODECS[compression]
    decompressor: Decompressor | None = None
    read = given = 0
    while data := stored.read(step):
        begun = read
        read += len(data)
        while data:
            decompressor = decompressor or begin()
            try:
                block = decompressor.decompress(data)
            except (zlib.error, zstandard.ZstdError):
                faults.append(_compression_fault(FaultReason.COMPRESSION_DAMAGED, begun, read, stored))
                return
            given += len(block)
            if given > max(LEAST_LIMIT, MOST_EXPANSION * read):
                faults.append(_compression_fault(FaultReason.COMPRESSION_EXCESSIVE, begun, read, stored))
                return
            yield block
            data = decompressor.unused_data if decompressor.eof else b""
            decompressor = None if decompressor.eof else decompressor
    if decompressor is not None:
        faults.append(CaptureFault(FaultReason.COMPRESSION_CUT, read, 0))


def _compression_fault(reason: FaultReason, offset: int, read: int, stored: io.BufferedIOBase) -> CaptureFault:
    """A fault in the compressed bytes [offset, read). The rest of the file is read to count its bytes."""
    rest = read - offset
    while data := stored.read(1 << 20):
        rest += len(data)
    return CaptureFault(reason, offset, rest)


class DecompressedStream:
    """The bytes of `blocks` as a readable stream."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._rest = memoryview(b"")

    def readinto(self, buffer: memoryview, /) -> int:
        """Fill `buffer` and return how many bytes that was: fewer than it holds only at the end of the stream."""
        filled = 0
        while filled < len(buffer):
            if not self._rest:
                block = next(self._blocks, None)
                if block is None:
                    break
                self._rest = memoryview(block)
                continue
            part = self._rest[: len(buffer) - filled]
            buffer[filled : filled + len(part)] = part
            self._rest = self._rest[len(part) :]
            filled += len(part)
        return filled


def open_uncompressed(stored: io.BufferedIOBase, compression: Compression, faults: list[CaptureFault]) -> ByteStream:
    """The uncompressed bytes of a stored file. Damage to the compression ends the stream and is added to `faults`."""
    if compression is Compression.NONE:
        return stored
    return DecompressedStream(decompress(stored, compression, faults))
