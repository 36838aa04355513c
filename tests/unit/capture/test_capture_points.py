"""Each byte of a capture counts once, however many files and capture points it has."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tests.unit.capture.capture_files import (
    Tables,
    at_client,
    by_clock,
    jittery,
    microseconds,
    rows_in_order,
    sample_capture,
    store,
    tables_of,
    without,
)
from tests.unit.capture.packet_builders import Packet, ethernet, ipv4, tcp
from udfs.capture.capture_points import FileOrder, file_orders, in_time_order
from udfs.capture.file_index import index_capture

Capture = tuple[int, list[Packet]]
ALL_EQUAL = ("exchanges", "fetch_partitions", "record_batches", "cluster_metadata", "quarantine")
HOUR = 3_600_000_000


@pytest.fixture(scope="module", params=["mixed", "starve"])
def capture(request: pytest.FixtureRequest, repository: Path) -> Capture:
    return sample_capture(repository, request.param)


@pytest.fixture(scope="module")
def whole(capture: Capture, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """The tables of the capture in one file."""
    return tables_of(rows_in_order([store(tmp_path_factory.mktemp("whole") / "whole.pcap", *capture)]))


def rotated(folder: Path, capture: Capture, names: list[str]) -> list[Path]:
    """The capture cut into files with equal numbers of packets."""
    link_type, packets = capture
    most = -(-len(packets) // len(names))
    return [store(folder / name, link_type, packets[i * most : (i + 1) * most]) for i, name in enumerate(names)]


def only(tables: Tables, *names: str) -> Tables:
    return {name: tables[name] for name in names}


def orders_of(paths: list[Path]) -> list[FileOrder]:
    indexes = in_time_order([index_capture(str(path), range_bytes=1 << 30, buckets=1) for path in paths])
    return list(file_orders(indexes))


def total(tables: Tables, column: str) -> int:
    return sum(row[column] for row in tables["connections"])


@pytest.mark.parametrize(
    "names",
    [
        [f"cap.pcap{i or ''}" for i in range(12)],
        [f"{random.Random(i).random()}.pcap" for i in range(5)],  # noqa: S311  (not for secrets)
    ],
    ids=["tcpdump -C", "any names"],
)
def test_rotated_files_give_the_tables_of_the_whole(
    capture: Capture, whole: Tables, tmp_path: Path, names: list[str]
) -> None:
    files = rotated(tmp_path, capture, names)
    assert {order.point for order in orders_of(files)} == {0}
    assert tables_of(rows_in_order(sorted(files))) == whole
    assert rows_in_order(reversed(files)) == rows_in_order(sorted(files))


@pytest.mark.parametrize("apart", [3_000, -40_000, HOUR], ids=["3 ms", "-40 ms", "an hour"])
def test_two_points_give_the_tables_of_the_first(capture: Capture, tmp_path: Path, apart: int) -> None:
    link_type, packets = capture
    one = store(tmp_path / "one.pcap", link_type, packets)
    other = store(tmp_path / "other.pcap", link_type, by_clock(packets, jittery(apart, 80, 1)))
    first = tables_of(rows_in_order([one if apart > 0 else other]))
    both = tables_of(rows_in_order([one, other]))
    assert facts_but_times(both) == facts_but_times(first)
    assert max(distances(both, first)) < 0.000_1
    assert sum(seconds > 0 for seconds in distances(both, first)) < 0.02 * len(distances(both, first))
    counts = ("framed_bytes", "unframed_bytes", "late_bytes", "missing_bytes", "requests")
    assert [total(both, name) for name in counts] == [total(first, name) for name in counts]
    payload = total(first, "payload_bytes")
    assert total(both, "payload_bytes") == 2 * payload
    assert total(both, "repeated_bytes") == payload + total(first, "repeated_bytes")
    with_payload = total(both, "doubled_packets") + total(first, "repeated_packets")
    assert total(both, "repeated_packets") == with_payload
    assert total(both, "doubled_packets") > total(first, "repeated_packets")
    (clock,) = {order.offset_ns for order in orders_of([one, other])} - {0}
    assert abs(clock // 1000 + abs(apart)) < 100


def test_what_one_point_lost_is_filled_from_the_other(capture: Capture, whole: Tables, tmp_path: Path) -> None:
    """Both points have rotated files, and each lost packets that the other has."""
    link_type, packets = capture
    chance = random.Random(5)  # noqa: S311  (not for secrets)
    numbers = range(len(packets))
    lost = {number for number in numbers if chance.random() < 0.04}
    lost_by_one = {number for number in lost if chance.random() < 0.5}
    one = rotated(tmp_path, (link_type, without(packets, lost_by_one)), [f"one{i}" for i in range(4)])
    copies = by_clock(packets, jittery(3_000, 80, 1))
    other = rotated(tmp_path, (link_type, without(copies, lost - lost_by_one)), [f"other{i}" for i in range(3)])
    both = tables_of(rows_in_order([*one, *other]))
    assert total(both, "missing_bytes") == total(whole, "missing_bytes")
    assert total(both, "framed_bytes") + total(both, "late_bytes") == total(whole, "framed_bytes")
    assert facts_but_times(both) == facts_but_times(whole)
    assert max(distances(both, whole)) < 0.000_1
    assert sum(seconds > 0 for seconds in distances(both, whole)) < 0.05 * len(distances(both, whole))


def test_both_ends_of_a_connection_count_once(capture: Capture, tmp_path: Path) -> None:
    """Packets take time from one end to the other, the clocks differ, and each end lost some packets."""
    link_type, packets = capture
    near, far = at_client(packets, 300), by_clock(packets, jittery(3_000, 20, 1))
    whole = tables_of(rows_in_order([store(tmp_path / "whole", link_type, near)]))
    lost_near, lost_far = set(range(3, len(packets), 29)), set(range(11, len(packets), 37))
    lost_near = {n for n in lost_near if near[n].data not in {far[m].data for m in lost_far}}
    ends = [
        store(tmp_path / "client", link_type, without(near, lost_near)),
        store(tmp_path / "broker", link_type, without(far, lost_far)),
    ]
    both = tables_of(rows_in_order(ends))
    assert facts_but_times(both) == facts_but_times(whole)
    assert max(distances(both, whole)) < 0.000_7
    assert sum(seconds > 0 for seconds in distances(both, whole)) < 0.05 * len(distances(both, whole))


def distances(tables: Tables, others: Tables) -> list[float]:
    """The differences between the times of equal exchanges, in seconds."""
    return [
        abs((ours[name] - theirs[name]).total_seconds())
        for ours, theirs in zip(tables["exchanges"], others["exchanges"], strict=True)
        for name in ("request_time", "response_time")
        if ours[name] is not None
    ]


def facts_but_times(tables: Tables) -> list[list[dict[str, Any]]]:
    return [
        [{name: value for name, value in row.items() if not name.endswith("_time")} for row in tables[table]]
        for table in ALL_EQUAL
    ]


def test_a_copy_of_a_file_counts_once(capture: Capture, whole: Tables, tmp_path: Path) -> None:
    files = [store(tmp_path / name, *capture) for name in ("one", "copy")]
    both = tables_of(rows_in_order(files))
    assert only(both, *ALL_EQUAL) == only(whole, *ALL_EQUAL)


def test_the_order_does_not_depend_on_how_files_are_cut_into_ranges(capture: Capture, tmp_path: Path) -> None:
    link_type, packets = capture
    one = store(tmp_path / "one", link_type, packets)
    other = store(tmp_path / "other", link_type, by_clock(packets, jittery(3_000, 80, 1)))
    assert rows_in_order([one, other], range_bytes=50_000) == rows_in_order([one, other])


@pytest.mark.parametrize("chunk", [{"rows": 7, "payload_bytes": 1}, {"rows": 10_000, "payload_bytes": 3_000}])
def test_the_tables_of_two_points_do_not_depend_on_the_cuts(
    capture: Capture, tmp_path: Path, chunk: dict[str, int]
) -> None:
    link_type, packets = capture
    packets = packets[:900]
    copies = by_clock(packets, jittery(3_000, 80, 1))
    lost = set(range(0, len(packets), 23))
    one = store(tmp_path / "one", link_type, without(packets, lost))
    other = store(tmp_path / "other", link_type, without(copies, set(range(5, len(packets), 31))))
    rows = rows_in_order([one, other])
    assert tables_of(rows, **chunk) == tables_of(rows)


def test_packets_that_an_interface_shows_twice_are_counted(capture: Capture, whole: Tables, tmp_path: Path) -> None:
    """`-i any` captures each packet again, a few microseconds later."""
    link_type, packets = capture
    again = by_clock(packets, lambda time: time + 7)
    mixed = sorted([*packets, *again], key=microseconds)
    path = store(tmp_path / "any.pcap", link_type, mixed)
    index = index_capture(str(path), range_bytes=1 << 30, buckets=1)
    once = rows_in_order([store(tmp_path / "once.pcap", link_type, packets)])
    assert index.doubled_packets == int((once["payload_bytes"].to_numpy() > 0).sum())
    assert only(tables_of(rows_in_order([path])), *ALL_EQUAL) == only(whole, *ALL_EQUAL)


def test_a_retransmission_in_the_next_file_makes_no_second_point(tmp_path: Path) -> None:
    """Without TCP's timestamp option it has the same bytes as the first packet."""
    sent = [Packet(ethernet(ipv4(tcp(bytes(100), seq=1 + 100 * i))), fraction=i * 1000) for i in range(200)]
    again = by_clock(sent[-3:], lambda time: time + 250_000)
    later = by_clock([Packet(ethernet(ipv4(tcp(bytes(100), seq=20_001 + 100 * i)))) for i in range(200)],
                     lambda time: time + 600_000)  # fmt: skip
    files = [store(tmp_path / "a", 1, sent), store(tmp_path / "b", 1, [*again, *later])]
    assert [(order.point, order.offset_ns) for order in orders_of(files)] == [(0, 0), (0, 0)]


def test_rotated_files_of_two_points_are_assigned_to_their_own_point(capture: Capture, tmp_path: Path) -> None:
    """Both points began a new file at about the same time, so only the names show which file continues which."""
    link_type, packets = capture
    copies = by_clock(packets, jittery(3_000, 80, 1))
    one = rotated(tmp_path, (link_type, packets), ["broker1.pcap", "broker1.pcap1", "broker1.pcap2"])
    other = rotated(tmp_path, (link_type, copies), ["broker2.pcap", "broker2.pcap1", "broker2.pcap2"])
    indexes = in_time_order([index_capture(str(p), range_bytes=1 << 30, buckets=1) for p in [*one, *other]])
    points = [order.point for order in file_orders(indexes)]
    names = [Path(index.path).name[:7] for index in indexes]
    assert {(name, point) for name, point in zip(names, points, strict=True)} == {("broker1", 0), ("broker2", 1)}


def test_files_without_times_keep_their_order(tmp_path: Path) -> None:
    stamped = store(tmp_path / "stamped", 1, [Packet(ethernet(), seconds=5)])
    unstamped = store(tmp_path / "a", 1, [Packet(ethernet(), seconds=0, fraction=0)])
    indexes = in_time_order([index_capture(str(p), range_bytes=1 << 30, buckets=1) for p in (unstamped, stamped)])
    assert [Path(index.path).name for index in indexes] == ["stamped", "a"]
    assert [order.point for order in file_orders(indexes)] == [0, 0]


def test_the_fingerprint_of_a_packet_cut_in_its_options_depends_on_no_byte_after_the_cut(tmp_path: Path) -> None:
    whole = ethernet(ipv4(tcp(b"kafka", options=bytes(range(12)))))
    cut = Packet(whole[: -len(b"kafka") - 4], original=len(whole))
    digests = []
    for n in range(2):
        other = Packet(ethernet(ipv4(tcp(b"kafka", seq=7 + n))), seconds=1_700_000_001 + n)
        index = index_capture(str(store(tmp_path / f"{n}.pcap", 1, [cut, other])), range_bytes=1 << 30, buckets=1)
        digests.append(set(index.sample.digests.tolist()))
    assert len(digests[0] & digests[1]) == 1
