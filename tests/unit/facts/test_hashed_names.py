"""Names by the hashes of their bytes."""

from __future__ import annotations

import numpy as np
import pytest

from udfs.facts.hashed_names import ABSENT, ZERO_ID, hash_of, hash_spans


# Vectors of the authors of FNV-1a, 64 bits (http://www.isthe.com/chongo/src/fnv/test_fnv.c).
@pytest.mark.parametrize(
    ("text", "expected"), [(b"", 0xCBF29CE484222325), (b"a", 0xAF63DC4C8601EC8C), (b"foobar", 0x85944171F73967E8)]
)
def test_the_hash_is_fnv_1a(text: bytes, expected: int) -> None:
    arena = np.frombuffer(b"x" + text, np.uint8)
    (found,) = hash_spans(arena, np.ones(1, np.int64), np.full(1, len(text)))
    assert int(found) % 2**64 == expected
    assert hash_of(text) == found


def test_null_and_the_zero_id_have_hashes_of_their_own() -> None:
    found = hash_spans(np.zeros(16, np.uint8), np.zeros(2, np.int64), np.array([-1, 16]))
    assert found.tolist() == [ABSENT, ZERO_ID]
