"""The compressed sizes of records, and their encoding in another batch."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.wire.encoding import record
from udfs.columns.arrays import read_only
from udfs.wire.compressed_sizes import (
    CODEC_NAMES,
    COMPRESSING,
    PARTS,
    MovedRecords,
    compressed_parts,
    compressed_size,
    encode_records,
    part_ends,
)
from udfs.wire.records import record_sizes

RECORDS = st.lists(
    st.tuples(st.integers(0, 1 << 40), st.none() | st.binary(max_size=300), st.binary(max_size=300)),
    min_size=1, max_size=200,
)  # fmt: skip
FRAMES = {"gzip": 18, "snappy": 16, "lz4": 11, "zstd": 6}
"""The least bytes that a codec's framing takes."""


@given(RECORDS, st.data())
def test_records_are_encoded_in_another_batch_as_if_they_had_been_written_there(
    records: list[tuple[int, bytes | None, bytes]], data: st.DataObject
) -> None:
    first = data.draw(st.integers(0, len(records) - 1))
    end, offset = data.draw(st.integers(first + 1, len(records))), data.draw(st.integers(0, 1 << 20))
    written = b"".join(record(at, *of) for at, of in enumerate(records))
    found = record_sizes(written, len(records))
    out = np.zeros(len(written) + 21 * (len(records) + 1), np.uint8)
    deltas = found.timestamp_deltas[first:end] - found.timestamp_deltas[first]
    moved = MovedRecords(
        data=read_only(np.frombuffer(written, np.uint8)),
        ends=read_only(found.ends[first:end]),
        content=read_only(found.content[first:end]),
        timestamp_deltas=read_only(deltas),
        offset_delta=offset,
    )
    behind = encode_records(moved, out, 0)
    expected = b"".join(
        record(offset + at, delta - records[first][0], key, value)
        for at, (delta, key, value) in enumerate(records[first:end])
    )
    assert out[:behind].tobytes() == expected


@pytest.mark.parametrize("codec", COMPRESSING)
def test_repeated_bytes_take_little_and_random_ones_take_their_size_and_a_frame(codec: str) -> None:
    number, noise = CODEC_NAMES.index(codec), np.random.default_rng(3).bytes(100_000)
    assert compressed_size(number, bytes(100_000)) < 6_000
    assert 100_000 + FRAMES[codec] <= compressed_size(number, noise) < 100_200


@pytest.mark.parametrize("size", [0, 1, 32 << 10, (32 << 10) + 1, (64 << 10) + 1])
def test_snappy_and_lz4_compress_blocks_each_after_its_size(size: int) -> None:
    """Snappy has xerial's header and blocks of 32 KiB; lz4 has a frame, and blocks of 64 KiB that do not grow."""
    content = np.random.default_rng(size).integers(0, 4, size, np.uint8).tobytes()
    parts = [[content[at : at + step] for at in range(0, size, step)] for step in (32 << 10, 64 << 10)]
    snappy = sum(4 + len(pa.compress(part, codec="snappy", asbytes=True)) for part in parts[0])
    assert compressed_size(CODEC_NAMES.index("snappy"), content) == 16 + snappy
    lz4 = sum(4 + min(len(pa.compress(part, codec="lz4_raw", asbytes=True)), len(part)) for part in parts[1])
    assert compressed_size(CODEC_NAMES.index("lz4"), content) == 7 + 4 + lz4


def test_the_default_levels_are_kafkas_own() -> None:
    """6 for gzip, which zlib calls -1, and 3 for zstd; at 9, lz4 uses the fast compressor, and else the high one."""
    text = b" ".join(b"%d" % (at * at) for at in range(9_000))
    gzip, lz4, zstd = (CODEC_NAMES.index(name) for name in ("gzip", "lz4", "zstd"))
    assert compressed_size(gzip, text) == compressed_size(gzip, text, 6)
    assert compressed_size(zstd, text) == compressed_size(zstd, text, 3) != compressed_size(zstd, text, 1)
    assert compressed_size(lz4, text) == compressed_size(lz4, text, 9) > compressed_size(lz4, text, 8)
    assert compressed_size(lz4, text, 1) == compressed_size(lz4, text, 2) != compressed_size(lz4, text, 9)


@given(st.integers(1, 40))
def test_the_eighths_of_a_batch_are_rounded_up_to_whole_records(records: int) -> None:
    ends = [next(n for n in range(records + 1) if n * PARTS >= part * records) for part in range(1, PARTS + 1)]
    assert part_ends(records).tolist() == ends


def test_a_part_of_a_batch_is_compressed_up_to_the_end_of_its_last_record() -> None:
    noise = np.random.default_rng(4).bytes(900)
    ends = np.array([100, 250, 260, 700, 900])
    found = compressed_parts(noise, ends).reshape(len(COMPRESSING), PARTS)
    for codec, sizes in zip(COMPRESSING, found.tolist(), strict=True):
        number = CODEC_NAMES.index(codec)
        assert sizes == [compressed_size(number, noise[: ends[n - 1]]) for n in (1, 2, 2, 3, 4, 4, 5, 5)]
    empty = compressed_parts(b"", np.zeros(0, np.int64)).reshape(len(COMPRESSING), PARTS)
    assert empty.tolist() == [[compressed_size(CODEC_NAMES.index(codec), b"")] * PARTS for codec in COMPRESSING]


def test_every_codec_gives_about_the_size_that_another_implementation_gives() -> None:
    text = b" ".join(b"%d" % (at * at) for at in range(20_000))
    codecs: tuple[Literal["gzip", "snappy", "lz4", "zstd"], ...] = ("gzip", "snappy", "lz4", "zstd")
    assert {*codecs} == {*COMPRESSING}
    for codec in codecs:
        theirs = len(pa.compress(text, codec=codec, asbytes=True))
        assert compressed_size(CODEC_NAMES.index(codec), text) == pytest.approx(theirs, rel=0.25)


def test_a_batch_is_compressed_anew_in_eighths() -> None:
    ends = record_sizes(b"".join(record(number, 0, None, b"a" * 50) for number in range(10)), 10).ends
    assert part_ends(10).tolist() == [2, 3, 4, 5, 7, 8, 9, 10]
    found = compressed_parts(bytes(int(ends[-1])), ends).reshape(len(COMPRESSING), PARTS)
    assert (found > 0).all()
    assert (found[:, -1] >= found[:, 0]).all()
