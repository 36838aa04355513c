"""Wrappers of message sets are read, and those that cannot be read have a reason."""

from __future__ import annotations

import gzip
import struct
import zlib

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.wire.reference import be
from udfs.wire.message_sets import FAULTS, Unwrapped, short_xxh32, unwrap_batches
from udfs.wire.record_batches import walk_batches
from udfs.wire.records import Budget, RecordsFault

GZIP, LZ4, ZSTD = 1, 3, 4
LOG_APPEND_TIME = 0x08
TIME_MS = 1_700_000_000_000


def entry(magic: int, offset: int, value: bytes, attributes: int = 0, key: bytes | None = None, at: int = 0) -> bytes:
    """An entry of a message set. at: its timestamp, less TIME_MS."""
    timestamp = be("q", TIME_MS + at) if magic == 1 else b""
    keyed = be("i", -1) if key is None else be("i", len(key)) + key
    guarded = be("bb", magic, attributes) + timestamp + keyed + be("i", len(value)) + value
    return be("qi", offset, 4 + len(guarded)) + struct.pack(">I", zlib.crc32(guarded)) + guarded


def inner(magic: int, *offsets: int) -> bytes:
    return b"".join(entry(magic, offset, b"value", at=offset) for offset in offsets)


def wrapper(magic: int, offset: int, content: bytes, attributes: int = 0, key: bytes | None = None) -> bytes:
    """A wrapper with a message set in gzip."""
    return entry(magic, offset, gzip.compress(content, 1, mtime=0), attributes | GZIP, key, at=1000)


def read(content: bytes) -> Unwrapped:
    arena = np.frombuffer(content, np.uint8)
    return unwrap_batches(arena, walk_batches(arena, np.array([0]), np.array([len(arena)])), lambda _: Budget())


def fault_of(content: bytes) -> RecordsFault | None:
    """Why the first entry cannot be read, None if it can. An entry that cannot be read has no offset and no count."""
    found = read(content)
    code = int(found.fault[0])
    if code >= 0:
        batches = found.batches
        assert (batches.base_offset[0], batches.record_count[0], found.uncompressed[0]) == (-1, -1, -1)
    return None if code < 0 else FAULTS[code]


def offsets_of(content: bytes) -> tuple[int, int, int]:
    """(first offset, last less first offset, number of messages) of the first entry."""
    batches = read(content).batches
    return int(batches.base_offset[0]), int(batches.last_offset_delta[0]), int(batches.record_count[0])


def test_format_0_has_the_offsets_of_its_messages_and_no_times() -> None:
    found = read(wrapper(0, 12, inner(0, 10, 11, 12)))
    assert offsets_of(wrapper(0, 12, inner(0, 10, 11, 12))) == (10, 2, 3)
    assert (found.batches.base_timestamp[0], found.batches.max_timestamp[0]) == (-1, -1)
    assert found.uncompressed[0] == len(inner(0, 10, 11, 12))


def test_format_1_counts_offsets_back_from_that_of_the_wrapper() -> None:
    assert offsets_of(wrapper(1, 112, inner(1, 0, 1, 2))) == (110, 2, 3)
    assert offsets_of(wrapper(1, 112, inner(1, 1, 5))) == (108, 4, 2), "compaction leaves holes"


def test_a_producer_may_leave_the_wrappers_offset_0() -> None:
    assert offsets_of(wrapper(1, 0, inner(1, 0, 1, 2))) == (0, 2, 3)


def test_times_are_the_messages_own_or_that_of_the_append() -> None:
    created, appended = (read(wrapper(1, 9, inner(1, 0, 1), attributes)).batches for attributes in (0, LOG_APPEND_TIME))
    assert (created.base_timestamp[0], created.max_timestamp[0]) == (TIME_MS, TIME_MS + 1000)
    assert (appended.base_timestamp[0], appended.max_timestamp[0]) == (TIME_MS + 1000, TIME_MS + 1000)


def test_a_key_of_the_wrapper_is_skipped() -> None:
    assert offsets_of(wrapper(1, 7, inner(1, 0, 1), key=b"key")) == (6, 1, 2)


def test_a_message_that_is_cut_off_is_left_out() -> None:
    """Kafka's DataLogInputStream does so, too. In format 1, the last whole message then gets the wrapper's offset."""
    assert offsets_of(wrapper(0, 12, inner(0, 10, 11, 12)[:-1])) == (10, 1, 2)


def test_entries_that_are_not_compressed_stay_as_they_are() -> None:
    found = read(inner(1, 5, 6))
    assert found.batches.base_offset.tolist() == [5, 6]
    assert found.uncompressed.tolist() == found.fault.tolist() == [-1, -1]


WHOLE = wrapper(1, 12, inner(1, 0, 1, 2))
UNREADABLE = {
    "cut": (WHOLE[:-1], RecordsFault.CUT),
    "cut before its attributes": (WHOLE[:17], RecordsFault.CUT),
    "changed": (WHOLE[:-1] + b"\x55", RecordsFault.CORRUPT),
    "zstd": (entry(1, 2, pa.compress(inner(1, 0), codec="zstd", asbytes=True), ZSTD), RecordsFault.UNKNOWN_CODEC),
    "an unknown codec": (entry(1, 2, b"x", 7), RecordsFault.UNKNOWN_CODEC),
    "not gzip": (entry(1, 2, b"nothing of the kind", GZIP), RecordsFault.UNREADABLE),
    "a short lz4 frame": (entry(0, 2, b"\x04\x22\x4d\x18\x68", LZ4), RecordsFault.UNREADABLE),
    "a bomb": (wrapper(1, 2, bytes(80 << 20)), RecordsFault.EXCESSIVE),
    "empty": (wrapper(1, 2, b""), RecordsFault.BAD_RECORDS),
    "a wrapper in a wrapper": (wrapper(1, 5, wrapper(1, 1, inner(1, 0, 1))), RecordsFault.BAD_RECORDS),
    "no message set": (wrapper(1, 5, b"\0" * 100), RecordsFault.BAD_RECORDS),
    "offsets that fall": (wrapper(0, 5, inner(0, 7, 5)), RecordsFault.BAD_RECORDS),
    "offsets far apart": (wrapper(0, 5, inner(0, 0, 1 << 40)), RecordsFault.BAD_RECORDS),
    "offsets before 0": (wrapper(1, 1, inner(1, 0, 1, 2)), RecordsFault.BAD_RECORDS),
}


@pytest.mark.parametrize("kind", UNREADABLE)
def test_a_wrapper_that_cannot_be_read_has_its_reason(kind: str) -> None:
    content, reason = UNREADABLE[kind]
    assert fault_of(content) is reason


def test_a_key_longer_than_the_wrapper_is_refused() -> None:
    guarded = be("bb", 1, GZIP) + be("qi", TIME_MS, 1 << 30) + be("i", 3) + b"abc"
    content = be("qi", 5, 4 + len(guarded)) + struct.pack(">I", zlib.crc32(guarded)) + guarded
    assert fault_of(content) is RecordsFault.BAD_RECORDS


@given(st.binary(max_size=300), st.integers(0, 1), st.integers(1, 7), st.booleans())
def test_any_content_is_a_set_or_refused(content: bytes, magic: int, codec: int, packed: bool) -> None:
    value = gzip.compress(content, 1, mtime=0) if packed else content
    found = read(entry(magic, 5, value, GZIP if packed else codec))
    assert (found.fault[0] >= 0) == (found.batches.record_count[0] < 0)


@pytest.mark.parametrize(("content", "expected"), [(b"", 0x02CC5D05), (b"a", 0x550D7456), (b"abc", 0x32D153FF)])
def test_xxh32_of_few_bytes(content: bytes, expected: int) -> None:
    assert short_xxh32(content) == expected


@pytest.mark.parametrize("tells_size", [False, True])
def test_the_header_checksum_of_an_lz4_frame_is_corrected_whatever_it_was(tells_size: bool) -> None:
    content = inner(0, 10, 11)
    frame = pa.compress(content, codec="lz4", asbytes=True)
    if tells_size:
        frame = frame[:4] + bytes([frame[4] | 0x08, frame[5]]) + struct.pack("<q", len(content)) + frame[6:]
    at = 14 if tells_size else 6
    for checksum in (0, 1, 255):
        wrong = frame[:at] + bytes([checksum]) + frame[at + 1 :]
        assert offsets_of(entry(0, 11, wrong, LZ4)) == (10, 1, 2)
