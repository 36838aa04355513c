"""Sizes of records are read from a batch, and a decompression bomb is stopped."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import partial
from typing import Literal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.wire.encoding import record, varint
from udfs.wire import records
from udfs.wire.records import (
    LEAST_LIMIT,
    STEP,
    Budget,
    RecordsError,
    RecordsFault,
    decompress_records,
    record_sizes,
)


def fault_of(reading: Callable[[], object]) -> RecordsFault | None:
    """Why the records cannot be read, None where they can."""
    try:
        reading()
    except RecordsError as refused:
        return refused.fault
    return None


def xerial(content: bytes, block: int) -> bytes:
    """Snappy in xerial's framing."""
    blocks = (content[at : at + block] for at in range(0, len(content), block))
    stored = (pa.compress(part, codec="snappy", asbytes=True) for part in blocks)
    return b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + b"".join(struct.pack(">i", len(part)) + part for part in stored)


RECORDS = st.lists(
    st.tuples(st.integers(-(1 << 40), 1 << 40), st.none() | st.binary(max_size=300), st.binary(max_size=300))
)


@given(RECORDS)
def test_the_sizes_read_are_those_of_the_records_written(records: list[tuple[int, bytes | None, bytes]]) -> None:
    written = [record(number, *parts) for number, parts in enumerate(records)]
    found = record_sizes(b"".join(written), len(records))
    assert found.timestamp_deltas.tolist() == [delta for delta, _, _ in records]
    assert found.keyless == sum(key is None for _, key, _ in records)
    content = [
        len(varint(-1 if key is None else len(key))) + len(key or b"") + len(varint(len(value))) + len(value) + 1
        for _, key, value in records
    ]
    assert found.content.tolist() == content
    assert found.ends.tolist() == [sum(map(len, written[: at + 1])) for at in range(len(written))]


@given(st.binary(max_size=200), st.integers(-1, 40))
def test_any_bytes_are_records_or_refused(content: bytes, count: int) -> None:
    told = fault_of(lambda: record_sizes(content, count))
    assert told in (None, RecordsFault.BAD_RECORDS)


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd", "xerial", "none"])
def test_every_codec_is_read(codec: Literal["gzip", "snappy", "lz4", "zstd", "xerial", "none"]) -> None:
    content = bytes(range(256)) * 300
    number = {"none": 0, "gzip": 1, "snappy": 2, "xerial": 2, "lz4": 3, "zstd": 4}[codec]
    stored = content
    if codec == "xerial":
        stored = xerial(content, 32 << 10)
    elif codec != "none":
        stored = pa.compress(content, codec=codec, asbytes=True)
    assert decompress_records(number, stored, Budget()) == content


def test_a_block_in_xerials_framing_has_to_be_there_in_full() -> None:
    *_, block = parts = [xerial(b"", 1), b"", pa.compress(b"abc", codec="snappy", asbytes=True)]
    for size, read in ((len(block), True), (len(block) + 1, False)):
        parts[1] = struct.pack(">i", size)
        fault = fault_of(partial(decompress_records, 2, b"".join(parts), Budget()))
        assert fault == (None if read else RecordsFault.UNREADABLE)


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_a_bomb_is_refused(codec: Literal["gzip", "snappy", "lz4", "zstd"]) -> None:
    stored = pa.compress(bytes(80 << 20), codec=codec, asbytes=True)
    with pytest.raises(RecordsError, match=RecordsFault.EXCESSIVE):
        decompress_records({"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}[codec], stored, Budget())


def test_no_more_bytes_are_decompressed_than_the_budget_has_left() -> None:
    stored = pa.compress(bytes(LEAST_LIMIT), codec="zstd", asbytes=True)
    budget = Budget(2 * LEAST_LIMIT - 1)
    assert len(decompress_records(4, stored, budget)) == LEAST_LIMIT
    assert budget.left == LEAST_LIMIT - 1
    with pytest.raises(RecordsError, match=RecordsFault.EXCESSIVE):
        decompress_records(4, stored, budget)


def test_bombs_that_are_refused_use_up_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    def counted(codec: str, stored: bytes) -> Iterator[bytes]:
        for part in steps(codec, stored):
            made.append(len(part))
            yield part

    steps = records._decompress_stream
    monkeypatch.setattr(records, "_decompress_stream", counted)
    bomb, budget = pa.compress(bytes(80 << 20), codec="gzip", asbytes=True), Budget(100 << 20)
    for _ in range(50):
        with pytest.raises(RecordsError, match=RecordsFault.EXCESSIVE):
            decompress_records(1, bomb, budget)
    assert sum(made) <= (100 << 20) + STEP


@pytest.mark.parametrize("number", range(1, 8))
@given(content=st.binary(max_size=100))
def test_bytes_that_no_codec_reads_have_a_reason(number: int, content: bytes) -> None:
    for stored in (content, b"\x82SNAPPY\0" + content, b"\x28\xb5\x2f\xfd" + content, b"\x1f\x8b\x08" + content):
        told = fault_of(partial(decompress_records, number, stored, Budget()))
        assert told in (None, RecordsFault.UNREADABLE, RecordsFault.UNKNOWN_CODEC, RecordsFault.EXCESSIVE)
