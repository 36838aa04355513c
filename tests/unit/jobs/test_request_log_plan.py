"""In which order request logs are read, and what they have in common with packets."""

from __future__ import annotations

from pathlib import Path

from jobs.captures.capture_index import BUCKETS
from jobs.captures.capture_plan import plan_capture
from tests.request_logs import index_request_log
from tests.unit.capture.logged import heartbeat
from udfs.capture.capture_points import in_time_order
from udfs.capture.file_index import CaptureIndex, index_capture
from udfs.capture.request_log_head import REQUEST_LOG


def index(path: Path, hour: int) -> CaptureIndex:
    path.write_text(heartbeat(1, time=f"2026-11-21 {hour}:00:00,000"))
    found = index_request_log(str(path), range_bytes=1 << 20, buckets=BUCKETS)
    assert found is not None
    return found


def packets(repository: Path) -> CaptureIndex:
    return index_capture(str(repository / "tests/captures/starve.pcap.zst"), range_bytes=1 << 20, buckets=BUCKETS)


def test_a_rotated_log_is_read_from_its_oldest_file_on(tmp_path: Path) -> None:
    """log4j keeps the newest lines in the file without a suffix, which comes first by name."""
    names = {"kafka-request.log": 13, "kafka-request.log.2026-11-21-11": 11, "kafka-request.log.2026-11-21-12": 12}
    indexes = [index(tmp_path / name, hour) for name, hour in names.items()]
    assert in_time_order(indexes) == (indexes[1], indexes[2], indexes[0])
    assert not plan_capture(tuple(indexes), 2).has_packets


def test_packets_and_request_logs_are_one_set_that_depends_on_both(tmp_path: Path, repository: Path) -> None:
    log, capture = index(tmp_path / "broker.log", 10), packets(repository)
    both, one, other = (plan_capture(files, 2) for files in ((log, capture), (log,), (capture,)))
    assert len({both.capture_id, one.capture_id, other.capture_id}) == 3
    assert both.has_packets
    assert {both.indexes[file_no].format for file_no, _ in both.logs.ranges} == {REQUEST_LOG}
    assert {both.indexes[file_no].format for file_no, _ in both.packets.ranges} == {"pcap"}
    assert len({order.point for order in both.orders}) == 2


def test_packets_are_put_in_order_as_if_no_log_were_there(tmp_path: Path, repository: Path) -> None:
    capture = packets(repository)
    for hour in (10, 20):
        both = plan_capture((index(tmp_path / "broker.log", hour), capture), 2)
        assert both.orders[both.indexes.index(capture)] == plan_capture((capture,), 2).orders[0]


def test_a_capture_without_packets_beside_logs_counts_as_logs_alone(tmp_path: Path) -> None:
    (tmp_path / "empty.pcap").touch()
    nothing = index_capture(str(tmp_path / "empty.pcap"), range_bytes=1 << 20, buckets=BUCKETS)
    assert not plan_capture((nothing, index(tmp_path / "broker.log", 10)), 2).has_packets
    assert plan_capture((nothing,), 2).has_packets


def test_a_log_that_is_given_twice_is_read_once(tmp_path: Path) -> None:
    plan = plan_capture((index(tmp_path / "one", 10), index(tmp_path / "two", 10), index(tmp_path / "three", 11)), 2)
    assert [file_no for file_no, _ in plan.logs.ranges] == [0, 2]
    assert plan.copies == {1}
