"""Batches, message sets and records are read as their formats say, one field after the other."""

from __future__ import annotations

import gzip
import zlib
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.wire.encoding import record, varint
from tests.unit.wire.reference import be, lay_in_arena
from tests.unit.wire.test_message_sets import GZIP, LOG_APPEND_TIME, entry, read
from tests.unit.wire.test_record_batches import crc32c, message, record_batch, walk_spans
from udfs.wire.faults import DecodeFault
from udfs.wire.message_sets import FAULTS
from udfs.wire.records import RecordsError, RecordsFault, record_sizes

HEADER_BYTES = {0: 26, 1: 34, 2: 61}
RECORD_BATCH = {
    "base_offset": (0, 8), "partition_leader_epoch": (12, 4), "last_offset_delta": (23, 4), "base_timestamp": (27, 8),
    "max_timestamp": (35, 8), "producer_id": (43, 8), "producer_epoch": (51, 2), "base_sequence": (53, 4),
    "record_count": (57, 4),
}  # fmt: skip
"""Where the fields of a record batch are: offset and bytes, as in Kafka's documentation of the message format."""


def field(content: bytes, at: int, width: int) -> int:
    """A number of a header; -1 if it is cut off."""
    return int.from_bytes(content[at : at + width], "big", signed=True) if at + width <= len(content) else -1


def plain_batch(rest: bytes) -> tuple[dict[str, int], int]:
    """(what the first batch of these bytes shows, how many bytes it covers)."""
    size = 12 + field(rest, 8, 4) if len(rest) >= 12 else -1
    magic, fault, covered = field(rest, 16, 1), DecodeFault.OK, len(rest)
    if len(rest) >= 12 and size < 12 + 14:
        fault = DecodeFault.BAD_BATCH_SIZE
    elif len(rest) >= 17 and magic not in HEADER_BYTES:
        fault = DecodeFault.BAD_MAGIC
    elif len(rest) >= 17 and size < HEADER_BYTES[magic]:
        fault = DecodeFault.BAD_BATCH_SIZE
    elif len(rest) >= 17:
        covered = min(size, len(rest))
    here = rest[:covered]
    shown = {"fault": fault, "size": size, "available": covered, "magic": magic, "base_offset": field(rest, 0, 8)}
    shown["is_cut"] = int(fault == DecodeFault.OK and covered != size)
    if fault == DecodeFault.OK and magic >= 0:
        shown |= plain_record_batch(here, size) if magic == 2 else plain_entry(here, size, magic)
    return shown, covered


def plain_flags(attributes: int) -> dict[str, int]:
    return {
        "codec": attributes % 8,
        "timestamp_type": attributes // 8 % 2,
        "is_transactional": attributes // 16 % 2,
        "is_control": attributes // 32 % 2,
    }


def plain_record_batch(here: bytes, size: int) -> dict[str, int]:
    shown = {name: field(here, *place) for name, place in RECORD_BATCH.items()}
    shown |= plain_flags(here[22]) if len(here) >= 23 else {}
    if len(here) == size:
        shown["crc_valid"] = int(int.from_bytes(here[17:21], "big") == crc32c(here[21:]))
    return shown


def plain_entry(here: bytes, size: int, magic: int) -> dict[str, int]:
    shown: dict[str, int] = {}
    if len(here) > 17:
        shown = plain_flags(here[17] % 16)
        if shown["codec"] == 0:
            shown |= {"last_offset_delta": 0, "record_count": 1}
        if magic == 0:
            shown["timestamp_type"] = -1
    if magic == 1:
        shown["base_timestamp"] = shown["max_timestamp"] = field(here, 18, 8)
    if len(here) == size:
        shown["crc_valid"] = int(int.from_bytes(here[12:16], "big") == zlib.crc32(here[16:]))
    return shown


ATTRIBUTES = st.integers(0, 127)
BATCHES = (
    st.builds(record_batch, st.integers(0, 2**62), ATTRIBUTES, st.binary(max_size=20), st.integers(0, 9))
    | st.builds(message, st.integers(0, 1), st.integers(0, 2**62), ATTRIBUTES, st.binary(max_size=20))
)  # fmt: skip
SIZES = st.sampled_from([0, 13, 14, 21, 22, 48, 49, 60, 2**31 - 1, -1])
ODD = st.builds(lambda size, magic, rest: be("qiib", 5, size, 1, magic) + rest, SIZES, st.integers(-1, 3), st.binary())


@st.composite
def spans(draw: st.DrawFn) -> bytes:
    """A field `records`: batches, of which the last may be damaged or cut, and the others too, at times."""
    content = bytearray(b"".join(draw(st.lists(BATCHES, max_size=2))) + draw(BATCHES | ODD))
    if draw(st.booleans()):
        content[draw(st.integers(0, len(content) - 1))] ^= draw(st.integers(1, 255))
    return bytes(content[: draw(st.integers(0, len(content)))]) if draw(st.booleans()) else bytes(content)


@given(st.lists(spans(), max_size=3))
def test_every_column_of_every_batch_is_what_its_bytes_say(fields: list[bytes]) -> None:
    found = walk_spans(*fields)
    _, starts, _ = lay_in_arena(fields, b"\xee")
    row = 0
    for parent, content in enumerate(fields):
        at = 0
        while at < len(content):
            shown, covered = plain_batch(content[at:])
            shown |= {"parent": parent, "start": int(starts[parent]) + at}
            assert {name: int(getattr(found, name)[row]) for name in found.__slots__} == {
                name: shown.get(name, -1) for name in found.__slots__
            }
            at, row = at + covered, row + 1
    assert row == len(found.parent)


@dataclass
class Inner:
    """A message in a wrapper. codec: not 0 for a wrapper in a wrapper."""

    magic: int
    offset: int
    at: int
    codec: int = 0


INNER = st.builds(
    Inner,
    st.sampled_from([0, 1, 1, 1]),
    st.integers(0, 9) | st.sampled_from([2**31 - 1, 2**31, 2**31 + 1]),
    st.integers(0, 50),
    st.sampled_from([0] * 20 + [GZIP, 4]),
)
OFFSETS = st.integers(0, 12) | st.just(2**40)


def plain_wrapper(magic: int, offset: int, inner: list[Inner], attributes: int) -> tuple[int, ...] | None:
    """(first offset, last less first, count, first timestamp, latest timestamp) of a wrapper; None if it is refused."""
    if not inner or any(of.codec for of in inner):
        return None
    first, last = inner[0].offset, inner[-1].offset
    if not 0 <= last - first < 2**31:
        return None
    moved = offset - last if magic == 1 and offset != 0 else 0
    if moved < 0:
        return None
    wrapper_time = -1 if magic == 0 else 1_700_000_000_000 + 1000
    time = wrapper_time
    if magic == 1 and not attributes & LOG_APPEND_TIME:
        time = 1_700_000_000_000 + inner[0].at if inner[0].magic == 1 else -1
    return first + moved, last - first, len(inner), time, wrapper_time


@settings(max_examples=150)
@given(
    st.integers(0, 1),
    OFFSETS,
    st.lists(INNER, max_size=3),
    st.sampled_from([0, LOG_APPEND_TIME]),
    st.integers(0, 40),
    st.none() | st.binary(max_size=9),
)
def test_a_wrapper_has_the_offsets_and_times_of_its_messages(
    magic: int, offset: int, inner: list[Inner], attributes: int, cut: int, key: bytes | None
) -> None:
    content = b"".join(entry(of.magic, of.offset, b"value", of.codec, at=of.at) for of in inner)
    is_cut = cut > 35 and bool(inner)
    value = gzip.compress(content[: -(cut - 35)] if is_cut else content, 1, mtime=0)
    found = read(entry(magic, offset, value, attributes | GZIP, key, at=1000))
    expected = plain_wrapper(magic, offset, inner[:-1] if is_cut else inner, attributes)
    batches = found.batches
    if expected is None:
        assert FAULTS[int(found.fault[0])] is RecordsFault.BAD_RECORDS
        assert batches.base_offset[0] == batches.record_count[0] == found.uncompressed[0] == -1
        return
    columns = ("base_offset", "last_offset_delta", "record_count", "base_timestamp", "max_timestamp")
    assert tuple(int(getattr(batches, name)[0]) for name in columns) == expected
    assert found.uncompressed[0] == len(content) - (cut - 35 if is_cut else 0)


def take_varint(content: bytes, at: int, end: int) -> tuple[int, int]:
    """(place behind, value) of a zig-zag number of at most ten bytes. Raises IndexError if it does not end."""
    raw = 0
    for index in range(10):
        if at + index >= end:
            raise IndexError
        raw |= content[at + index] % 128 << 7 * index
        if content[at + index] < 128:
            raw %= 2**64
            return at + index + 1, -(raw + 1) // 2 if raw % 2 else raw // 2
    raise IndexError


def plain_records(content: bytes, count: int) -> list[tuple[int, int, int, int]] | None:
    """(content bytes, timestamp delta, end, whether the key is null) of each record; None if these are not `count`."""
    at, rows = 0, []
    try:
        for number in range(count):
            at, length = take_varint(content, at, len(content))
            if length < 6 or length > len(content) - at:
                return None
            end = at + length
            place, delta = take_varint(content, at + 1, end)
            place, offset = take_varint(content, place, end)
            behind, key = take_varint(content, place, end)
            if offset != number or key > end - behind:
                return None
            rows.append((end - place, delta, end, int(key < 0)))
            at = end
    except IndexError:
        return None
    return rows if at == len(content) and count >= 0 else None


RECORD = st.tuples(
    st.sampled_from([0, 1, -1, 63, 64, -64, -65, 2**62, -(2**63), 2**63 - 1]),
    st.none() | st.binary(max_size=3),
    st.binary(max_size=3),
)
CHANGES = st.lists(
    st.tuples(st.integers(0, 40), st.sampled_from([0, 1, 2, 11, 12, 13, 14, 0x7F, 0x80, 0xFF])), max_size=1
)


@given(st.lists(RECORD, max_size=3), CHANGES, st.integers(-1, 1), st.integers(0, 2))
def test_records_are_read_number_by_number_or_refused(
    records: list[tuple[int, bytes | None, bytes]], changes: list[tuple[int, int]], more: int, cut: int
) -> None:
    content = bytearray(b"".join(record(number, *of) for number, of in enumerate(records)))
    for at, byte in changes:
        if at < len(content):
            content[at] = byte
    kept, count = bytes(content[: len(content) - cut]), len(records) + more
    expected = plain_records(kept, count)
    try:
        found = record_sizes(kept, count)
    except RecordsError as refused:
        found = None
        reason = refused.fault
    if found is None:
        assert (expected, reason) == (None, RecordsFault.BAD_RECORDS)
        return
    columns = found.content, found.timestamp_deltas, found.ends
    assert expected is not None
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == [row[:3] for row in expected]
    assert found.keyless == sum(row[3] for row in expected)
    assert found.uncompressed == len(kept)


def test_a_number_of_ten_bytes_is_read_and_one_of_eleven_refused() -> None:
    ten = record(0, -(2**63), None, b"")
    assert len(varint(-(2**63))) == 10
    assert record_sizes(ten, 1).timestamp_deltas.tolist() == [-(2**63)]
    long = b"\x80" * 10 + b"\0"
    body = b"\0" + long + varint(0) + varint(-1) + varint(0) + varint(0)
    assert plain_records(varint(len(body)) + body, 1) is None
    with pytest.raises(RecordsError, match=RecordsFault.BAD_RECORDS):
        record_sizes(varint(len(body)) + body, 1)
