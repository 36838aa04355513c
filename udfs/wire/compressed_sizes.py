"""How many bytes records take if they are compressed as by Kafka's producer: with the same codecs, levels and framing.

These follow `GzipCompression`, `SnappyCompression`, `Lz4Compression` and `ZstdCompression` of kafka-clients 4.3. The
codecs are zlib's, pyarrow's and zstandard's; only the sizes of the results are kept.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import zstandard

from udfs.columns.arrays import Bytes, Ints
from udfs.kernels.kernel import kernel

CODEC_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")
"""The codecs of batches, in the order of their numbers."""
CODEC_NUMBERS = {name: number for number, name in enumerate(CODEC_NAMES)}
COMPRESSING = CODEC_NAMES[1:]
PARTS = 8
"""A batch is compressed again this many times with each codec: its first eighth, its first two eighths, and so on up to
all of it."""

XERIAL_HEADER = 16
"""SnappyOutputStream of xerial: magic and two versions, then blocks of 32 KiB, each after its size."""
_SNAPPY_BLOCK = 32 << 10
_LZ4_BLOCK = 64 << 10  # Lz4BlockOutputStream: independent blocks, stored uncompressed if they would grow
_LZ4_FRAME = 7 + 4  # magic, two descriptors and their checksum; the end mark
DEFAULT_LEVELS = {"gzip": -1, "lz4": 9, "zstd": 3}
"""Kafka's default compression levels (KIP-390), by codec. At lz4's default level, and at no other, Kafka uses the fast
compressor (Lz4BlockOutputStream). -1 is zlib's own default, 6.
"""
_GZIP_FORMAT = 31  # zlib's window of 32 KiB, in a gzip header and trailer
_BLOCK_SIZE = 4
_LEAST_HIGH = 2  # the lowest level at which Arrow uses lz4's high compressor, as Kafka does at all levels except one

_codec: Any = pa.Codec
"""pa.Codec without its stub, which accepts only literals as names of codecs."""


def compressed_size(codec: int, records: bytes, level: int | None = None) -> int:
    """How many bytes encoded records take after the header of a batch with this codec.

    level: for a codec with levels; None for Kafka's default.
    """
    name = CODEC_NAMES[codec]
    return _SIZES[name](records) if level is None else _SIZES_AT_LEVELS[name](records, level)


def _gzip_size(records: bytes, level: int = DEFAULT_LEVELS["gzip"]) -> int:
    stream = zlib.compressobj(level, wbits=_GZIP_FORMAT)
    return len(stream.compress(records)) + len(stream.flush())


def _snappy_size(records: bytes) -> int:
    blocks = _cut_blocks(records, _SNAPPY_BLOCK)
    return XERIAL_HEADER + sum(_BLOCK_SIZE + len(_codec("snappy").compress(block, asbytes=True)) for block in blocks)


def _lz4_size(records: bytes, level: int = DEFAULT_LEVELS["lz4"]) -> int:
    blocks, is_fast = _cut_blocks(records, _LZ4_BLOCK), level == DEFAULT_LEVELS["lz4"]
    codec = _codec("lz4_raw", compression_level=None if is_fast else max(level, _LEAST_HIGH))
    packed = [len(codec.compress(block, asbytes=True)) for block in blocks]
    return _LZ4_FRAME + sum(_BLOCK_SIZE + min(len(block), size) for block, size in zip(blocks, packed, strict=True))


def _zstd_size(records: bytes, level: int = DEFAULT_LEVELS["zstd"]) -> int:
    stream = zstandard.ZstdCompressor(level=level).compressobj()
    return len(stream.compress(records)) + len(stream.flush())


def _cut_blocks(records: bytes, size: int) -> list[bytes]:
    return [records[at : at + size] for at in range(0, len(records), size)]


_SIZES: Mapping[str, Callable[[bytes], int]] = {
    "none": len,
    "gzip": _gzip_size,
    "snappy": _snappy_size,
    "lz4": _lz4_size,
    "zstd": _zstd_size,
}
_SIZES_AT_LEVELS: Mapping[str, Callable[[bytes, int], int]] = {"gzip": _gzip_size, "lz4": _lz4_size, "zstd": _zstd_size}


def part_ends(records: int) -> Ints:
    """How many records the first eighth of a batch has, the first two eighths, and so on up to all: int64[PARTS]."""
    return -(-records * np.arange(1, PARTS + 1) // PARTS)


def compressed_parts(records: bytes, ends: Ints) -> Ints:
    """Compressed bytes of the first eighth of the records, the first two eighths, up to all: int64[codecs * PARTS].

    The codecs are in the order of COMPRESSING. ends: int64[records], where each record ends.
    """
    stops = ends[part_ends(len(ends)) - 1] if len(ends) else np.zeros(PARTS, np.int64)
    return np.array([_SIZES[name](records[:stop]) for name in COMPRESSING for stop in stops.tolist()], np.int64)


@kernel
def put_varlong(out: Bytes, at: int, value: int) -> int:
    """Write a zig-zag varint at out[at], uint8 (ByteUtils.writeVarlong); returns the offset after it.

    It takes at most ten bytes; the caller has made room for them.
    """
    raw = np.uint64((value << 1) ^ (value >> 63))
    while raw >= np.uint64(0x80):
        out[at] = np.uint8(raw & np.uint64(0x7F)) | np.uint8(0x80)
        raw >>= np.uint64(7)
        at += 1
    out[at] = np.uint8(raw)
    return at + 1


class MovedRecords(NamedTuple):
    """Records of one batch that are put into another batch.

    data: uint8[bytes], the records as in their own batch. ends, content: int64[n], where each record ends in the data,
    and how many bytes its key, value and headers take. timestamp_deltas: int64[n], ms since the first record of the
    other batch. offset_delta: that of the first of these records in the other batch.
    """

    data: Bytes
    ends: Ints
    content: Ints
    timestamp_deltas: Ints
    offset_delta: int


@kernel
def encode_records(moved: MovedRecords, out: Bytes, at: int) -> int:
    """Write records as they are in another batch (DefaultRecord.writeTo); returns the offset after them.

    out: uint8[bytes], with at least len(moved.data) + 20 bytes for each record from `at` on.
    """
    for record in range(len(moved.ends)):
        start = at + 5  # leaves room for the length, up to five bytes, which is known only after the body is written
        body = start + 1
        out[start] = 0  # attributes
        body = put_varlong(out, body, moved.timestamp_deltas[record])
        body = put_varlong(out, body, moved.offset_delta + record)
        content = moved.content[record]
        first = moved.ends[record] - content
        for index in range(content):
            out[body + index] = moved.data[first + index]
        body += content
        behind = put_varlong(out, at, body - start)
        for index in range(body - start):
            out[behind + index] = out[start + index]
        at = behind + body - start
    return at
