"""In which order request logs are read, and with what."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.request_log_plan import are_request_logs
from tests.unit.capture.logged import heartbeat
from udfs.capture.index import CaptureIndex, index_capture
from udfs.capture.points import in_time_order
from udfs.capture.request_log_index import index_request_log
from udfs.errors import CaptureError


def index(path: Path, hour: int) -> CaptureIndex:
    path.write_text(heartbeat(1, time=f"2026-11-21 {hour}:00:00,000"))
    found = index_request_log(str(path), range_bytes=1 << 20, buckets=1)
    assert found is not None
    return found


def test_a_rotated_log_is_read_from_its_oldest_file_on(tmp_path: Path) -> None:
    """log4j keeps the newest lines in the file without a suffix, which comes first by name."""
    names = {"kafka-request.log": 13, "kafka-request.log.2026-11-21-11": 11, "kafka-request.log.2026-11-21-12": 12}
    indexes = [index(tmp_path / name, hour) for name, hour in names.items()]
    assert in_time_order(indexes) == (indexes[1], indexes[2], indexes[0])
    assert are_request_logs(indexes)


def test_packets_beside_request_logs_are_refused_by_name(tmp_path: Path, repository: Path) -> None:
    packets = index_capture(str(repository / "tests/captures/starve.pcap.zst"), range_bytes=1 << 20, buckets=1)
    assert not are_request_logs([packets])
    with pytest.raises(CaptureError, match=r"counted twice(?s:.*)starve\.pcap\.zst(?s:.*)broker\.log"):
        are_request_logs([packets, index(tmp_path / "broker.log", 10)])
