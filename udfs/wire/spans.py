"""Spans of the arena made into Arrow arrays: text, bytes, topic ids, and codes for repeated names.

A span is a start and a length, int64, as `Level.span` gives them; length -1 is null. Nothing here loops in Python.
"""

from __future__ import annotations

from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from udfs.wire.arrays import Bytes, Ints, read_only
from udfs.wire.kernel import kernel
from udfs.wire.primitives import cell

Hashes = npt.NDArray[np.uint64]

UUID_BYTES = 16
UUID_CHARACTERS = 22
_BASE64_URL = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", np.uint8)
# U+FFFD in UTF-8.
_REPLACEMENT = (0xEF, 0xBF, 0xBD)
# FNV-1a, 64 bits (draft-eastlake-fnv).
_FNV_OFFSET = 0xCBF29CE484222325
_FNV_PRIME = 0x100000001B3


def gather_strings(arena: Bytes, starts: Ints, lengths: Ints) -> pa.StringArray:
    """The spans as text; ill-formed UTF-8 becomes U+FFFD, one a maximal subpart (Unicode 3.9)."""
    arena, starts, lengths = _checked(arena, starts, lengths)
    offsets = _offsets(lengths)
    _text_sizes(arena, starts, lengths, offsets)
    data = np.empty(_accumulate(offsets), np.uint8)
    _copy_text(arena, starts, lengths, offsets, data)
    array = pa.Array.from_buffers(pa.string(), starts.size, _buffers(offsets, data, lengths >= 0))
    return cast(pa.StringArray, array)


def gather_bytes(arena: Bytes, starts: Ints, lengths: Ints) -> pa.BinaryArray:
    """The spans as they are."""
    arena, starts, lengths = _checked(arena, starts, lengths)
    offsets = _offsets(lengths)
    offsets[1:] = np.maximum(lengths, 0)
    data = np.empty(_accumulate(offsets), np.uint8)
    _copy_bytes(arena, starts, offsets, data)
    array = pa.Array.from_buffers(pa.binary(), starts.size, _buffers(offsets, data, lengths >= 0))
    return cast(pa.BinaryArray, array)


def uuid_strings(arena: Bytes, starts: Ints, lengths: Ints) -> pa.StringArray:
    """Spans of 16 bytes as Kafka writes ids: url-safe base64 without padding (`Uuid.toString`); others are null."""
    arena, starts, lengths = _checked(arena, starts, lengths)
    offsets = _offsets(lengths)
    offsets[1:] = np.where(lengths == UUID_BYTES, UUID_CHARACTERS, 0)
    data = np.empty(_accumulate(offsets), np.uint8)
    _write_uuids(arena, starts, offsets, _BASE64_URL, data)
    array = pa.Array.from_buffers(pa.string(), starts.size, _buffers(offsets, data, lengths == UUID_BYTES))
    return cast(pa.StringArray, array)


def intern(arena: Bytes, starts: Ints, lengths: Ints) -> tuple[Ints, Ints]:
    """(codes int64[spans], first_index int64[codes]): equal spans share a code, in order of occurrence; null is -1.

    `first_index` is the first span of each code, so that what is said of a name need be worked out once.
    """
    arena, starts, lengths = _checked(arena, starts, lengths)
    slots = np.full(1 << (2 * max(starts.size, 4)).bit_length(), -1, np.int64)
    codes, first_index = np.empty(starts.size, np.int64), np.empty(starts.size, np.int64)
    hashes = np.empty(starts.size, np.uint64)
    count = _intern(arena, starts, lengths, slots, hashes, codes, first_index)
    return codes, first_index[:count]


def _checked(arena: Bytes, starts: Ints, lengths: Ints) -> tuple[Bytes, Ints, Ints]:
    starts, lengths = np.ascontiguousarray(starts, np.int64), np.ascontiguousarray(lengths, np.int64)
    outside = (lengths > 0) & ((starts < 0) | (starts > arena.size - lengths))
    if outside.any():
        row = int(outside.argmax())
        raise ValueError(f"span {row} is {lengths[row]} bytes at {starts[row]} of an arena of {arena.size}")
    return read_only(arena), starts, lengths


def _offsets(lengths: Ints) -> Ints:
    return np.zeros(lengths.size + 1, np.int64)


def _accumulate(sizes: Ints) -> int:
    """Turn sizes into offsets in place, and give their sum."""
    np.cumsum(sizes, out=sizes)
    if sizes[-1] > np.iinfo(np.int32).max:
        raise ValueError(f"{sizes[-1]} bytes do not fit one Arrow array; gather fewer spans at once")
    return int(sizes[-1])


def _buffers(offsets: Ints, data: Bytes, valid: npt.NDArray[np.bool_]) -> list[pa.Buffer | None]:
    """Validity, offsets and data of an Arrow array of strings or binary."""
    bits = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little").data)
    return [bits, pa.py_buffer(offsets.astype(np.int32).data), pa.py_buffer(data.data)]


@kernel
def _well_formed(arena: Bytes, at: int, end: int) -> int:
    """Bytes of the UTF-8 sequence at an offset, or the negative of the bytes of an ill-formed maximal subpart.

    The second byte's range is narrower behind E0, ED, F0 and F4 (Unicode 3.9, table 3-7).
    """
    first = cell(arena, at)
    if first < 0x80:
        return 1
    if first < 0xC2 or first > 0xF4:
        return -1
    more = 1 if first < 0xE0 else (2 if first < 0xF0 else 3)
    low = 0xA0 if first == 0xE0 else (0x90 if first == 0xF0 else 0x80)
    high = 0x9F if first == 0xED else (0x8F if first == 0xF4 else 0xBF)
    for index in range(1, more + 1):
        if at + index >= end or not low <= cell(arena, at + index) <= high:
            return -index
        low, high = 0x80, 0xBF
    return more + 1


@kernel
def _text_sizes(arena: Bytes, starts: Ints, lengths: Ints, sizes: Ints) -> None:
    """Put the size of each span as well-formed UTF-8 in sizes[span + 1]."""
    for span in range(starts.size):
        at, end, size = starts[span], starts[span] + lengths[span], 0
        while at < end:
            step = _well_formed(arena, at, end)
            size += step if step > 0 else 3
            at += abs(step)
        sizes[span + 1] = size


@kernel
def _copy_text(arena: Bytes, starts: Ints, lengths: Ints, offsets: Ints, data: Bytes) -> None:
    for span in range(starts.size):
        at, end, to = starts[span], starts[span] + lengths[span], offsets[span]
        while at < end:
            step = _well_formed(arena, at, end)
            for index in range(step if step > 0 else 3):
                data[to + index] = arena[at + index] if step > 0 else _REPLACEMENT[index]
            to += step if step > 0 else 3
            at += abs(step)


@kernel
def _copy_bytes(arena: Bytes, starts: Ints, offsets: Ints, data: Bytes) -> None:
    for span in range(starts.size):
        shift = starts[span] - offsets[span]
        for to in range(offsets[span], offsets[span + 1]):
            data[to] = arena[to + shift]


@kernel
def _write_uuids(arena: Bytes, starts: Ints, offsets: Ints, alphabet: Bytes, data: Bytes) -> None:
    for span in range(starts.size):
        for to in range(offsets[span], offsets[span + 1]):
            bit = 6 * (to - offsets[span])
            at = starts[span] + bit // 8
            behind = arena[at + 1] if bit // 8 + 1 < UUID_BYTES else 0
            pair = np.int64(arena[at]) << 8 | np.int64(behind)
            data[to] = alphabet[pair >> (10 - bit % 8) & 63]


@kernel
def _hash(arena: Bytes, start: int, length: int) -> np.uint64:
    value = np.uint64(_FNV_OFFSET)
    for at in range(start, start + length):
        value = (value ^ np.uint64(cell(arena, at))) * np.uint64(_FNV_PRIME)
    return value ^ (value >> np.uint64(32))


@kernel
def _equal(arena: Bytes, start: int, other: int, length: int) -> bool:
    for index in range(length):  # noqa: SIM110  (numba knows no generators in all())
        if cell(arena, start + index) != cell(arena, other + index):
            return False
    return True


@kernel
def _intern(
    arena: Bytes, starts: Ints, lengths: Ints, slots: Ints, hashes: Hashes, codes: Ints, first_index: Ints
) -> int:
    """Number the spans; `slots`, a power of two more than the spans and all -1, is an open-addressed table of codes."""
    count, mask = 0, slots.size - 1
    for span in range(starts.size):
        if lengths[span] < 0:
            codes[span] = -1
            continue
        value = _hash(arena, starts[span], lengths[span])
        slot = np.int64(value) & mask
        while slots[slot] >= 0:
            first = first_index[slots[slot]]
            is_same = hashes[slots[slot]] == value and lengths[first] == lengths[span]
            if is_same and _equal(arena, starts[first], starts[span], lengths[span]):
                break
            slot = (slot + 1) & mask
        if slots[slot] < 0:
            slots[slot], hashes[count], first_index[count] = count, value, span
            count += 1
        codes[span] = slots[slot]
    return count
