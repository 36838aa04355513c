"""Encodes records as a batch of magic 2 has them."""

from __future__ import annotations


def varint(value: int) -> bytes:
    """A zig-zag varint."""
    raw, out = (value << 1) ^ (value >> 63), bytearray()
    raw &= (1 << 64) - 1
    while raw >= 0x80:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    return bytes([*out, raw])


def record(offset: int, delta: int, key: bytes | None, value: bytes) -> bytes:
    """A record of a batch of magic 2, without headers."""
    keyed = varint(-1) if key is None else varint(len(key)) + key
    body = b"\0" + varint(delta) + varint(offset) + keyed + varint(len(value)) + value + varint(0)
    return varint(len(body)) + body
