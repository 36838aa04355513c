"""CRC-32C is what the JDK computes for Kafka."""

from __future__ import annotations

import random

import numpy as np

from tests.oracle.conftest import RunJava
from udfs.columns.arrays import read_only
from udfs.wire.checksums import CRC32C, checksum


def test_crc32c_of_every_length_up_to_a_few_slices_and_of_longer_ones(run_java: RunJava) -> None:
    source = random.Random(3)  # noqa: S311  (no secret depends on it)
    contents = [source.randbytes(size) for size in [*range(1, 70), 1000, 65_537]]
    found = []
    for content in contents:
        arena = read_only(np.frombuffer(content, np.uint8))
        found.append(int(checksum(CRC32C, arena, 0, arena.size)))
    printed = run_java("Crc32cOfLines.java", stdin="\n".join(content.hex() for content in contents))
    assert found == [int(value) for value in printed.split()]
