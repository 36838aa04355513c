"""The one place where stored captures are opened, and the window through which they are read."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import numpy as np

from udfs.errors import CaptureError

LEAST_WINDOW = 64


class ByteStream(Protocol):
    """Anything that fills a buffer; fewer bytes than asked for means the end."""

    def readinto(self, buffer: memoryview, /) -> int: ...


@contextmanager
def open_stored(path: str) -> Iterator[io.FileIO]:
    """The bytes of a stored file, unbuffered. CaptureError where opening it, or reading it inside the block, fails."""
    try:
        with open(path, "rb", buffering=0) as stored:
            yield stored
    except OSError as error:
        reason = error.strerror or type(error).__name__
        message = f"{path}: cannot be read ({reason}). Check the path and that you may read the file."
        raise CaptureError(message) from error


class HashedFile(io.RawIOBase):
    """Passes a file through, once and in order, and keeps the count and SHA-256 of its bytes."""

    def __init__(self, raw: io.FileIO) -> None:
        super().__init__()
        self._raw = raw
        self._digest = hashlib.sha256()
        self.size_bytes = 0

    @property
    def sha256(self) -> str:
        """Hex digest of what was read so far."""
        return self._digest.hexdigest()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview, /) -> int | None:  # type: ignore[override]  # BufferedReader gives a memoryview
        """Fill `buffer` from the file and return how far."""
        size = self._raw.readinto(buffer)
        if size:
            self._digest.update(buffer[:size])
            self.size_bytes += size
        return size


class StreamWindow:
    """A stretch of a stream as a numpy array that slides forward and grows only where a record needs more room.

    chunk: uint8 array, `chunk[:end]` holds the stream's bytes from offset `base` on
    """

    def __init__(self, stream: ByteStream, *, base: int, length: int | None, capacity: int) -> None:
        """base: stream offset of the stream's next byte; length: bytes to read at most, None for all."""
        self._stream = stream
        self._left = length
        self.base = base
        self.chunk = np.empty(max(capacity, LEAST_WINDOW), np.uint8)
        self.end = 0

    def refill(self, consumed: int) -> bool:
        """Let go of `chunk[:consumed]`, move the rest to the front and read on; False at the end of the stream."""
        kept = self.end - consumed
        target = self.chunk if kept * 2 <= len(self.chunk) else np.empty(2 * len(self.chunk), np.uint8)
        target[:kept] = self.chunk[consumed : self.end]
        self.chunk, self.base, self.end = target, self.base + consumed, kept
        room = len(self.chunk) - kept
        size = self._stream.readinto(self.chunk[kept : kept + self._within(room)].data)
        self._left = None if self._left is None else self._left - size
        self.end += size
        return size > 0

    def skip_rest(self) -> int:
        """Read to the end of the stream and return how many bytes that was, those in the window not counted."""
        skipped = 0
        while size := self._stream.readinto(self.chunk[: self._within(len(self.chunk))].data):
            self._left = None if self._left is None else self._left - size
            skipped += size
        self.end = 0
        return skipped

    def _within(self, size: int) -> int:
        return size if self._left is None else min(size, self._left)
