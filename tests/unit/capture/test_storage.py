"""How stored bytes are read: windows over a stream, remote files, and the digest of a file that is read once."""

from __future__ import annotations

import hashlib
import io
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.capture.packet_builders import index, packets_of, pcap, store
from udfs.capture.compression import estimated_unpacked_bytes
from udfs.capture.file_index import WINDOW_BYTES
from udfs.capture.storage import FIRST_READ_BYTES, HashedFile, RemoteFile, StreamWindow

CONTENT = np.random.default_rng(7).bytes(FIRST_READ_BYTES * 5)
PLACES = st.integers(0, len(CONTENT) + 10)
SEEKS = st.tuples(st.just("seek"), PLACES) | st.tuples(st.sampled_from(["back", "from the end"]), PLACES)
STEPS = st.lists(SEEKS | st.tuples(st.just("read"), st.integers(0, FIRST_READ_BYTES * 2)), max_size=12)


def remote(content: bytes) -> tuple[RemoteFile, list[int]]:
    """A remote file, and the sizes of the reads that it was asked for."""
    asked: list[int] = []

    class Asked(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            asked.append(size or 0)
            return super().read(size)

    return RemoteFile(pa.PythonFile(Asked(content), mode="r")), asked


def read_on(file: RemoteFile, end: int) -> bytes:
    """Read up to `end`, or up to the end of the file if that comes first."""
    return file.read(end - file.tell()) or b""


def sought(file: io.IOBase, step: str, by: int) -> int:
    """Go to a place; returns it."""
    if step == "back":
        return file.seek(-min(by, file.tell()), io.SEEK_CUR)
    return file.seek(-min(by, len(CONTENT)), io.SEEK_END) if step == "from the end" else file.seek(by)


@given(STEPS)
def test_a_remote_file_reads_as_one_on_this_machine(steps: list[tuple[str, int]]) -> None:
    ours, theirs = remote(CONTENT)[0], io.BytesIO(CONTENT)
    for step, size in steps:
        if step == "read":
            assert b"".join(iter(partial(read_on, ours, theirs.tell() + size), b"")) == theirs.read(size)
        else:
            assert sought(ours, step, size) == sought(theirs, step, size)
        assert ours.tell() == theirs.tell()


def test_going_back_to_bytes_that_were_read_asks_a_remote_file_for_nothing() -> None:
    file, asked = remote(CONTENT)
    for _ in range(3):
        assert file.read(8) == CONTENT[:8]
        file.seek(0)
    assert asked == [FIRST_READ_BYTES]


@given(
    st.integers(1, 300),
    st.lists(st.floats(0, 1), min_size=1, max_size=40),
)
def test_a_window_has_the_stream_s_bytes_and_leaves_the_last_ones_alone(capacity: int, shares: list[float]) -> None:
    """This holds however many of them are no longer needed, and however long records are."""
    content = CONTENT[:5_000]
    window = StreamWindow(io.BytesIO(content), base=0, length=None, capacity=capacity)
    for share in shares:
        before, seen = window.chunk, window.chunk.tobytes()
        goes_on = window.refill(int(share * window.end))
        assert before.tobytes() == seen
        assert window.chunk[: window.end].tobytes() == content[window.base : window.base + window.end]
        if not goes_on:
            assert window.base + window.end == len(content)
    left = len(content) - window.base - window.end
    assert window.skip_rest() == left


def test_the_digest_is_of_all_bytes_of_a_damaged_file(tmp_path: Path) -> None:
    noise = np.random.default_rng(8).bytes(5 * WINDOW_BYTES + 77)
    content = pcap(packets_of(b"one", b"two")) + b"\xff" * 64 + noise
    read = index(store(tmp_path, content))
    assert read.faults
    assert (read.sha256, read.size_bytes) == (hashlib.sha256(content).hexdigest(), len(content))


def test_a_hashed_file_fills_a_buffer_in_part_only_at_its_end() -> None:
    file, _ = remote(CONTENT)
    with HashedFile(file, from_buffers=True) as hashed:
        pieces = [bytearray(FIRST_READ_BYTES * 2) for _ in range(3)]
        sizes = [hashed.readinto(memoryview(piece)) for piece in pieces]
        assert sizes == [FIRST_READ_BYTES * 2, FIRST_READ_BYTES * 2, FIRST_READ_BYTES]
        assert b"".join(pieces)[: len(CONTENT)] == CONTENT
        assert hashed.sha256 == hashlib.sha256(CONTENT).hexdigest()


def test_a_file_that_is_gone_counts_as_an_empty_one(tmp_path: Path) -> None:
    assert estimated_unpacked_bytes(str(tmp_path / "gone.pcap")) == 0
