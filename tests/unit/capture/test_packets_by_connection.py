"""Packets held in memory give the same frames as packets that Spark sorts."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.fuzz.checks import comparable
from tests.unit.capture.capture_files import rows_in_order, sample_capture, store
from tests.unit.capture.conversations import answers, asks, batch, packets, request, response
from tests.unit.capture.packet_builders import Packet, ethernet, ipv4, pcap, tcp
from tests.unit.facts.brokers import tables_held, tables_of
from udfs.capture import packet_store
from udfs.capture.capture_points import FileOrder
from udfs.capture.file_index import index_capture
from udfs.capture.packet_store import BYTES, PACKETS, Content, MemoryBudget, PacketStore
from udfs.capture.packets_by_connection import packets_by_connection
from udfs.errors import CaptureError

ROOMY = 1 << 30


def stored(path: Path, *, file_bytes: int = 0) -> PacketStore:
    packets = PacketStore(MemoryBudget(ROOMY), file_bytes)
    index_capture(str(path), range_bytes=ROOMY, buckets=1, on_packets=packets.add)
    return packets


def many_connections(folder: Path, count: int) -> Path:
    """Packets of this many connections in turns; each packet has its number as payload."""
    data = [ethernet(ipv4(tcp(str(i % count).encode(), source=1024 + i % count, seq=i))) for i in range(3 * count)]
    return store(folder / "many.pcap", 1, [Packet(d, fraction=i) for i, d in enumerate(data)])


@pytest.mark.parametrize("name", ["mixed", "starve"])
@pytest.mark.parametrize("parts", [1, 2, 7, 10_000])
def test_a_capture_in_memory_gives_the_rows_of_the_capture_in_any_number_of_parts(
    repository: Path, tmp_path: Path, name: str, parts: int
) -> None:
    path = store(tmp_path / "capture.pcap", *sample_capture(repository, name))
    whole = tables_of([rows_in_order([path])], rows=ROOMY, payload_bytes=ROOMY)
    found = tables_held(packets_by_connection([stored(path).content], in_order=True), parts)
    assert comparable(found) == comparable(whole)


@pytest.mark.parametrize("name", ["mixed", "starve"])
def test_rows_do_not_depend_on_what_memory_held_before(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path = store(tmp_path / "capture.pcap", *sample_capture(repository, name))
    found = []
    for byte in (0x00, 0x01, 0xFF):

        def filled(shape: int | tuple[int, ...], dtype: npt.DTypeLike = float, byte: int = byte) -> npt.NDArray[Any]:
            array = np.zeros(shape, dtype)
            array.view(np.uint8)[...] = byte
            return array

        monkeypatch.setattr(np, "empty", filled)
        monkeypatch.setattr(packet_store, "unwritten_array", filled)
        packets = packets_by_connection([stored(path).content], in_order=True)
        frames = packets.frames(range(len(packets.content.endpoints)))
        of_frames = [rows.tolist() for rows in (frames.requests, frames.responses, frames.losses)]
        found.append((of_frames, comparable(tables_held(packets, 3))))
    assert found[0] == found[1] == found[2]


def test_parts_have_each_connection_once_and_about_the_same_cost(tmp_path: Path) -> None:
    packets = packets_by_connection([stored(many_connections(tmp_path, 1000)).content], in_order=True)
    for most in (1, 2, 3, 7):
        parts = packets.parts(most)
        assert (parts[0].start, parts[-1].stop, len(parts)) == (0, 1000, most)
        assert all(first.stop == second.start for first, second in pairwise(parts))
        assert max(map(len, parts)) - min(map(len, parts)) <= 2


@pytest.mark.parametrize("file_bytes", [0, 1 << 20], ids=["room made as needed", "room made at once"])
def test_connections_are_numbered_in_the_order_of_their_first_packets(tmp_path: Path, file_bytes: int) -> None:
    count = 20_000
    content = stored(many_connections(tmp_path, count), file_bytes=file_bytes).content
    assert np.array_equal(content.packets["connection"], np.arange(3 * count) % count)
    assert content.amounts[:, PACKETS].tolist() == [3] * count
    assert content.amounts[:, BYTES].tolist() == [3 * len(str(i)) for i in range(count)]
    ports = {int.from_bytes(ends[16:18], "big") for ends in content.endpoints} | {
        int.from_bytes(ends[34:36], "big") for ends in content.endpoints
    }
    assert ports >= set(range(1024, 1024 + count))
    last = content.packets[-1]
    assert content.payload[last["source"] : last["source"] + last["captured"]].tobytes() == str(count - 1).encode()


def test_a_connection_in_several_files_is_one(repository: Path, tmp_path: Path) -> None:
    link_type, records = sample_capture(repository, "mixed")
    third = len(records) // 3
    files = [
        store(tmp_path / f"{n}.pcap", link_type, records[n * third : (n + 1) * third if n < 2 else None])
        for n in range(3)
    ]
    whole = tables_of([rows_in_order(files)], rows=ROOMY, payload_bytes=ROOMY)
    for in_order in (True, False):
        contents: list[Content] = [stored(path).content for path in files]
        assert tables_held(packets_by_connection(contents, in_order=in_order), 2)["exchanges"] == whole["exchanges"]


def test_packets_from_batches_are_held_like_those_from_files(tmp_path: Path) -> None:
    turns = [segment for n in range(20) for segment in (asks(request(n)), answers(response(n)))]
    rows = batch(packets(turns))
    by_batches = PacketStore(MemoryBudget(ROOMY))
    for at in range(0, rows.num_rows, 7):
        by_batches.add_batch(rows.slice(at, 7))
    found = tables_held(packets_by_connection([by_batches.content], in_order=True), 1)
    assert found["exchanges"] == tables_of([rows])["exchanges"]


def test_a_files_packets_get_the_times_and_order_of_its_place_among_the_files(tmp_path: Path) -> None:
    data = ethernet(ipv4(tcp(b"x")))
    content = pcap([Packet(data, seconds, 0) for seconds in (5, 0, 9)])
    path = tmp_path / "clock.pcap"
    path.write_bytes(content)
    packets = stored(path)
    packets.place(FileOrder(point=2, offset_ns=100, after_ns=6_000_000_000, delay_ns=7))
    found = packets.content.packets
    assert found["time"].tolist() == [5_000_000_100, 0, 9_000_000_100], "a packet without a time stays without"
    assert found["sort_time"].tolist() == [6_000_000_007, 6_000_000_007, 9_000_000_107]
    assert found["point"].tolist() == [2, 2, 2]


def test_more_packets_than_memory_may_hold_are_refused(tmp_path: Path) -> None:
    path = many_connections(tmp_path, 1000)
    packets = PacketStore(MemoryBudget(10_000))
    with pytest.raises(CaptureError, match=r"more than 10,000 bytes of memory.* the job `ingest`"):
        index_capture(str(path), range_bytes=ROOMY, buckets=1, on_packets=packets.add)
