"""The index of the request log at a path."""

from __future__ import annotations

from pathlib import Path

from udfs.capture.file_index import CaptureIndex
from udfs.capture.request_log_head import UTC
from udfs.capture.request_log_index import index_stored_log
from udfs.capture.storage import open_stored


def index_request_log(path: str | Path, *, range_bytes: int, buckets: int, zone: str = UTC) -> CaptureIndex | None:
    """Open a request log, read it and return its index; None if the file is not a request log."""
    with open_stored(str(path)) as stored:
        return index_stored_log(stored, str(path), range_bytes=range_bytes, buckets=buckets, zone=zone)
