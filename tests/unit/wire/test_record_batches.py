"""Batches of a `records` field in every format: whole, cut and broken."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.wire.reference import be, lay_in_arena
from udfs.wire.checksums import CRC32, CRC32C, checksum
from udfs.wire.faults import DecodeFault
from udfs.wire.record_batches import RecordBatches, walk_batches


def crc32c(content: bytes) -> int:
    remainder = 0xFFFFFFFF
    for byte in content:
        remainder ^= byte
        for _ in range(8):
            remainder = remainder >> 1 ^ (0x82F63B78 if remainder & 1 else 0)
    return remainder ^ 0xFFFFFFFF


def record_batch(base_offset: int = 100, attributes: int = 0, records: bytes = b"\0" * 20, count: int = 3) -> bytes:
    """A batch of magic 2."""
    guarded = be("hiqqqhii", attributes, count - 1, 1_700_000_000_000, 1_700_000_000_009, 7, 2, 40, count) + records
    return be("qiib", base_offset, 9 + len(guarded), 5, 2) + crc32c(guarded).to_bytes(4, "big") + guarded


def message(magic: int, offset: int = 100, attributes: int = 0, value: bytes = b"value") -> bytes:
    """An entry of a message set, without key."""
    timestamp = be("q", 1_700_000_000_000) if magic == 1 else b""
    guarded = be("bb", magic, attributes) + timestamp + be("ii", -1, len(value)) + value
    return be("qi", offset, 4 + len(guarded)) + zlib.crc32(guarded).to_bytes(4, "big") + guarded


def walk_spans(*spans: bytes) -> RecordBatches:
    arena, starts, ends = lay_in_arena(list(spans), b"\xee")
    return walk_batches(arena, starts, ends - starts)


def columns(batches: RecordBatches, *names: str) -> list[list[int]]:
    return [getattr(batches, name).tolist() for name in names]


def test_a_record_batch_is_read_from_its_header() -> None:
    batch = record_batch(attributes=0x04 | 0x08 | 0x10)
    found = walk_spans(batch)
    assert {name: getattr(found, name).tolist() for name in found.__slots__ if name != "start"} == {
        "parent": [0],
        "fault": [DecodeFault.OK],
        "size": [len(batch)],
        "available": [len(batch)],
        "is_cut": [0],
        "magic": [2],
        "base_offset": [100],
        "last_offset_delta": [2],
        "record_count": [3],
        "codec": [4],
        "timestamp_type": [1],
        "is_transactional": [1],
        "is_control": [0],
        "base_timestamp": [1_700_000_000_000],
        "max_timestamp": [1_700_000_000_009],
        "producer_id": [7],
        "producer_epoch": [2],
        "base_sequence": [40],
        "partition_leader_epoch": [5],
        "crc_valid": [1],
    }


@pytest.mark.parametrize("magic", [0, 1])
def test_an_entry_of_a_message_set_is_one_record(magic: int) -> None:
    found = walk_spans(message(magic, offset=7))
    assert columns(found, "base_offset", "magic", "codec", "record_count", "last_offset_delta", "crc_valid") == [
        [7], [magic], [0], [1], [0], [1]
    ]  # fmt: skip
    assert found.base_timestamp.tolist() == [1_700_000_000_000 if magic else -1]
    assert found.timestamp_type.tolist() == [0 if magic else -1]


def test_a_compressed_wrapper_is_one_row_that_does_not_say_how_many_records_it_has() -> None:
    found = walk_spans(message(1, offset=9, attributes=2))
    assert columns(found, "base_offset", "codec", "record_count", "last_offset_delta") == [[9], [2], [-1], [-1]]


def test_formats_may_follow_each_other_in_one_partition() -> None:
    found = walk_spans(message(0, 1) + message(1, 2) + record_batch(3) + record_batch(6), b"", record_batch(9))
    assert columns(found, "parent", "magic", "base_offset") == [[0, 0, 0, 0, 2], [0, 1, 2, 2, 2], [1, 2, 3, 6, 9]]


def test_a_batch_that_does_not_match_its_checksum_is_marked() -> None:
    batch, entry = bytearray(record_batch()), bytearray(message(1))
    batch[-1] ^= 1
    entry[-1] ^= 1
    assert walk_spans(bytes(batch), bytes(entry), record_batch()).crc_valid.tolist() == [0, 0, 1]


def test_the_leader_epoch_is_not_in_the_checksum() -> None:
    batch = bytearray(record_batch())
    batch[15] ^= 1
    assert walk_spans(bytes(batch)).crc_valid.tolist() == [1]


@pytest.mark.parametrize("kept", range(1, 81))
def test_a_cut_batch_has_the_fields_that_are_left_of_its_header(kept: int) -> None:
    batch = record_batch()
    found = walk_spans(record_batch(50) + batch[:kept])
    assert columns(found, "is_cut", "available", "crc_valid", "fault") == [[0, 1], [len(batch), kept], [1, -1], [0, 0]]
    assert found.base_offset[1] == (100 if kept >= 8 else -1)
    assert found.size[1] == (len(batch) if kept >= 12 else -1)
    assert found.magic[1] == (2 if kept >= 17 else -1)
    assert found.codec[1] == (0 if kept >= 23 else -1)
    assert found.record_count[1] == (3 if kept >= 61 else -1)


# First bytes, fault, size.
GARBAGE = {
    "a size below any record's": (be("qi", 0, 13) + bytes(20), DecodeFault.BAD_BATCH_SIZE, 25),
    "a negative size": (be("qi", 0, -100) + bytes(20), DecodeFault.BAD_BATCH_SIZE, -88),
    "a size of zero": (be("qi", 0, 0) + bytes(20), DecodeFault.BAD_BATCH_SIZE, 12),
    "a magic nobody knows": (be("qiib", 0, 49, 0, 3) + bytes(44), DecodeFault.BAD_MAGIC, 61),
    "a record batch smaller than its header": (be("qiib", 0, 48, 0, 2) + bytes(43), DecodeFault.BAD_BATCH_SIZE, 60),
    "a message smaller than its header": (be("qiib", 0, 21, 0, 1) + bytes(20), DecodeFault.BAD_BATCH_SIZE, 33),
}


@pytest.mark.parametrize("what", GARBAGE)
def test_garbage_is_one_row_that_covers_the_rest_of_the_field(what: str) -> None:
    garbage, fault, size = GARBAGE[what]
    rest = garbage + record_batch()
    found = walk_spans(record_batch() + rest, record_batch())
    assert columns(found, "parent", "fault", "is_cut") == [[0, 0, 1], [0, fault, 0], [0, 0, 0]]
    assert (found.available[1], found.size[1]) == (len(rest), size)


def test_a_batch_that_is_cut_right_behind_its_magic_is_judged_by_it() -> None:
    known, unknown = (be("qiib", 0, 49, 0, magic) for magic in (2, 3))
    assert walk_spans(known, unknown, unknown[:-1]).fault.tolist() == [0, DecodeFault.BAD_MAGIC, 0]


def test_a_null_field_has_no_rows() -> None:
    assert walk_batches(np.zeros(4, np.uint8), np.array([0]), np.array([-1])).parent.size == 0


@pytest.mark.parametrize(("start", "length"), [(-1, 4), (0, 5), (2**62, 61), (0, 2**62)])
def test_a_span_that_is_not_in_the_arena_is_a_fault(start: int, length: int) -> None:
    found = walk_batches(np.zeros(4, np.uint8), np.array([start]), np.array([length]))
    assert found.fault.tolist() == [DecodeFault.BAD_FRAME]


@given(
    whole=st.lists(st.sampled_from([record_batch(), message(0), message(1)]), max_size=3),
    tail=st.binary(max_size=90),
    flips=st.lists(st.tuples(st.integers(0, 400), st.integers(1, 255)), max_size=2),
)
def test_rows_account_for_every_byte_of_the_field(
    whole: list[bytes], tail: bytes, flips: list[tuple[int, int]]
) -> None:
    field = bytearray(b"".join(whole) + tail)
    for at, mask in flips:
        if field:
            field[at % len(field)] ^= mask
    found = walk_spans(bytes(field))
    assert found.available.sum() == len(field)
    assert (found.available > 0).all()


@given(content=st.binary(max_size=100), skip=st.integers(0, 3))
def test_checksums_are_those_of_the_standards(content: bytes, skip: int) -> None:
    arena = np.frombuffer(b"\xee" * skip + content, np.uint8)
    assert checksum(CRC32, arena, skip, arena.size) == zlib.crc32(content)
    assert checksum(CRC32C, arena, skip, arena.size) == crc32c(content)
