"""Opens stored captures, on this machine or at a URI, and reads them through a sliding window."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Protocol

import numpy as np
import pyarrow as pa

from udfs.capture.locations import file_system_and_path, is_uri
from udfs.errors import CaptureError

LEAST_WINDOW = 64
# How much of a remote file is read at once. The first read is short, because often only the head of a file is needed.
FIRST_READ_BYTES, MOST_READ_BYTES = 1 << 16, 4 << 20


class ByteStream(Protocol):
    """Anything that fills a buffer; fewer bytes than the buffer holds mean the end of the stream."""

    def readinto(self, buffer: memoryview, /) -> int: ...


class RemoteFile(io.RawIOBase):
    """A file on a pyarrow file system. It reads ahead, more each time, because each read is one network request."""

    def __init__(self, file: pa.NativeFile) -> None:
        super().__init__()
        self._file = file
        self._block = memoryview(b"")  # the last that was read
        self._at = 0  # where in it the next byte is
        self._next = FIRST_READ_BYTES

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]  # callers give a memoryview
        """Fill `buffer` with bytes that were read ahead, and return how many; 0 at the end of the file."""
        if self._at == len(self._block):
            self._block, self._at = memoryview(self._file.read(self._next)), 0
            self._next = min(2 * self._next, MOST_READ_BYTES)
        size = min(len(buffer), len(self._block) - self._at)
        buffer[:size] = self._block[self._at : self._at + size]
        self._at += size
        return size

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Go to a place in the file."""
        begin = self._file.tell() - len(self._block)
        whole = self._file.size() if whence == io.SEEK_END else 0
        place = offset + {io.SEEK_SET: 0, io.SEEK_CUR: begin + self._at, io.SEEK_END: whole}[whence]
        if begin <= place <= begin + len(self._block):
            self._at = place - begin
        else:
            self._block, self._at = memoryview(b""), 0
            self._file.seek(place)
        return place

    def close(self) -> None:
        self._file.close()
        super().close()


@contextmanager
def open_stored(path: str) -> Iterator[io.RawIOBase]:
    """Open a stored file by its path or URI. Raises CaptureError if opening it, or reading it in the block, fails."""
    try:
        with RemoteFile(open_seekable(path)) if is_uri(path) else open(path, "rb", buffering=0) as stored:
            yield stored
    except OSError as error:
        reason = error.strerror or str(error) or type(error).__name__
        message = f"{path}: cannot be read ({reason}). Check the path and that you may read the file."
        raise CaptureError(message) from error


def open_seekable(path: str) -> pa.NativeFile:
    """Open a stored file for Arrow's own readers. Raises OSError."""
    if not is_uri(path):
        return pa.OSFile(path, "r")
    system, name = file_system_and_path(path)
    return system.open_input_file(name)


def stored_bytes(path: str) -> int:
    """The size of a stored file. Raises OSError."""
    if not is_uri(path):
        return os.path.getsize(path)
    system, name = file_system_and_path(path)
    return int(system.get_file_info(name).size or 0)


class HashedFile(io.RawIOBase):
    """Reads a file once and in order, and computes the count and SHA-256 of its bytes.

    A thread hashes the bytes while the reader works on them, because hashing takes as long as all the rest.
    """

    def __init__(self, raw: io.RawIOBase, *, from_buffers: bool = False) -> None:
        """from_buffers: hash the caller's buffers without a copy; each must stay unchanged until the next is read."""
        super().__init__()
        self._raw = raw
        self._from_buffers = from_buffers
        self._digest = hashlib.sha256()
        self._beside = ThreadPoolExecutor(max_workers=1)
        self._hashed = self._beside.submit(self._digest.update, b"")
        self.size_bytes = 0

    @property
    def sha256(self) -> str:
        """Hex digest of what has been read."""
        self._hashed.result()
        return self._digest.hexdigest()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]  # BufferedReader gives a memoryview
        """Fill `buffer` and return how many bytes that was: fewer than it holds only at the end of the file."""
        size = 0
        while size < len(buffer) and (more := self._raw.readinto(buffer[size:])):
            size += more
        content = buffer[:size] if self._from_buffers else bytes(buffer[:size])
        self._hashed.result()  # one buffer at a time waits to be hashed
        self._hashed = self._beside.submit(self._digest.update, content)
        self.size_bytes += size
        return size

    def close(self) -> None:
        self._beside.shutdown()
        super().close()


class StreamWindow:
    """A part of a stream as a numpy array. It slides forward, and grows only if a record needs more room.

    chunk: uint8; `chunk[:end]` has the stream's bytes from offset `base` on
    """

    def __init__(self, stream: ByteStream, *, base: int, length: int | None, capacity: int) -> None:
        """base: stream offset of the stream's next byte; length: the most bytes to read, None for all."""
        self._stream = stream
        self._left = length
        self.base = base
        self.chunk = np.empty(max(capacity, LEAST_WINDOW), np.uint8)
        self._other = np.empty_like(self.chunk)
        self.end = 0

    def refill(self, consumed: int) -> bool:
        """Drop `chunk[:consumed]` and append more of the stream to the rest; False at the end of the stream.

        `chunk` becomes another array; the earlier one stays unchanged until the next call.
        """
        kept = self.end - consumed
        target = self._other if kept * 2 <= len(self._other) else np.empty(4 * kept, np.uint8)
        target[:kept] = self.chunk[consumed : self.end]
        self.chunk, self._other, self.base, self.end = target, self.chunk, self.base + consumed, kept
        room = len(self.chunk) - kept
        size = self._stream.readinto(self.chunk[kept : kept + self._within(room)].data)
        self._left = None if self._left is None else self._left - size
        self.end += size
        return size > 0

    def skip_rest(self) -> int:
        """Read to the end of the stream; returns how many bytes that were, without those in the window."""
        skipped = 0
        while self.refill(self.end):
            skipped += self.end
        return skipped

    def _within(self, size: int) -> int:
        return size if self._left is None else min(size, self._left)
