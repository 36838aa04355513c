"""Which bytes have different digests."""

from __future__ import annotations

import numpy as np
import pytest

from udfs.capture.digests import SEED, continue_digest

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


def test_bytes_that_change_places_give_another_digest() -> None:
    assert len({digest(content) for content in (b"client::broker::", b"broker::client::", b"clientbr::::oker")}) == 3


def test_what_stands_around_a_range_does_not_count() -> None:
    around = np.frombuffer(bytearray(b"..client 1.."), np.uint8)
    assert int(continue_digest(SEED, around, 2, 10)) == digest(b"client 1")
