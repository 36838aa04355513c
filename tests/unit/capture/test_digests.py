"""Which bytes have different digests."""

from __future__ import annotations

import numpy as np
import pytest

from udfs.capture.digests import SEED, continue_digest, mix_bits

LONGEST = 40


def digest(content: bytes) -> int:
    return int(continue_digest(SEED, np.frombuffer(bytearray(content), np.uint8), 0, len(content)))


@pytest.mark.parametrize("size", range(1, LONGEST + 1))
def test_every_bit_counts(size: int) -> None:
    content = bytes(range(1, size + 1))
    others = [
        content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :] for at in range(size) for bit in range(8)
    ]
    assert len({digest(content), *map(digest, others)}) == 1 + 8 * size


@pytest.mark.parametrize(("value", "mixed"), [(0, 0), (1, 0xB456_BCFC_34C2_CB2C), (2, 0x3ABF_2A20_6506_83E7)])
def test_bits_are_mixed_as_murmur_hash_3_does(value: int, mixed: int) -> None:
    """The finalizer of Austin Appleby's MurmurHash3_x64_128, as other libraries calculate it."""
    assert int(mix_bits(np.uint64(value))) == mixed


def test_bytes_that_change_places_give_another_digest() -> None:
    assert len({digest(content) for content in (b"client::broker::", b"broker::client::", b"clientbr::::oker")}) == 3


def test_bytes_around_a_range_do_not_count() -> None:
    around = np.frombuffer(bytearray(b"..client 1.."), np.uint8)
    assert int(continue_digest(SEED, around, 2, 10)) == digest(b"client 1")
