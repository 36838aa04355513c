"""Recognises request logs and captures by their first bytes, without loading the kernels that read the rest."""

from __future__ import annotations

import io
import re

from udfs.capture.compression import open_uncompressed, stored_compression
from udfs.capture.magics import begins_capture
from udfs.capture.storage import open_stored

REQUEST_LOG = "request_log"
"""The format's name in the table `captures`."""
UTC = "UTC"
"""The zone of times that name none, unless the user states another one: log4j writes local times without their zone."""
MARKER = "Completed request:{"
# The text forms before KIP-673: that of Kafka 1.0 to 2.7, that of 0.10 and 0.11, which begins like JSON, and older
# ones.
FREE_TEXT = re.compile(rb"Completed request:\s*(RequestHeader\(|\{api_key=|Name:)")
JSON = re.compile(re.escape(MARKER.encode()) + rb"(?!api_key=)")
HEAD_BYTES = 1 << 20
READ_BYTES = 1 << 16


def is_capture_or_log(path: str) -> bool:
    """Whether a file begins like a capture or is a request log in JSON. Raises CaptureError if it cannot be read."""
    with open_stored(path) as stored:
        head = head_of_file(stored)
    return begins_capture(head) or JSON.search(head) is not None


def head_of_file(stored: io.RawIOBase) -> bytes:
    """The first bytes of a file, uncompressed; the file stays open."""
    compression = stored_compression(stored)
    buffered = io.BufferedReader(stored, READ_BYTES)
    stream = open_uncompressed(buffered, compression, [])
    head = bytearray(HEAD_BYTES)
    content = bytes(head[: stream.readinto(memoryview(head))])
    buffered.detach()
    return content
