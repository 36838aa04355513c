"""Compressed records take as many bytes as in the batches that Kafka's own classes make of them."""

from __future__ import annotations

import random

import pytest

from tests.oracle.conftest import Jars, RunJava
from tests.oracle.test_batch_split import CODECS
from tests.unit.wire.encoding import record
from udfs.wire.compressed_sizes import CODEC_NAMES, compressed_size
from udfs.wire.record_batches import RECORD_BATCH_OVERHEAD

OFF_BY = {"none": 0.0, "gzip": 0.002, "snappy": 0.015, "lz4": 0.002, "zstd": 0.002}
"""The allowed difference, as a share of a batch's size. The codecs of the JVM and of Python have other versions, and
snappy has another hash table.
"""


def values(seed: int) -> list[bytes]:
    """Values of records that compress well, badly, or partly."""
    source = random.Random(seed)  # noqa: S311  (no secret depends on it)
    words = [source.randbytes(source.randint(2, 9)) for _ in range(50)]
    texts = [b"".join(source.choices(words, k=source.randint(0, 200))) for _ in range(source.randint(1, 150))]
    return [source.randbytes(len(text)) if source.random() < 0.2 * (seed % 4) else text for text in texts]


LEVELS = [("gzip", level) for level in (-1, 1, 2, 5, 6, 9)] + [("lz4", level) for level in (1, 2, 3, 6, 9, 10, 12, 17)]
LEVELS += [("zstd", level) for level in (-131072, -100, -5, 1, 3, 9, 19, 22)]
OFF_AT_LEVELS = {"gzip": 0.002, "lz4": 0.002, "zstd": 0.002}
SEEDS = range(12)


@pytest.fixture(scope="module")
def at_levels(jars: Jars, run_java: RunJava) -> dict[tuple[str, int], list[int]]:
    """By codec and level: the sizes of Kafka's batches of the values of each seed. Java is started once for all."""
    asked = [(codec, level, values(seed)) for codec, level in LEVELS for seed in SEEDS]
    lines = "\n".join(" ".join([f"{codec}:{level}", *(value.hex() for value in of)]) for codec, level, of in asked)
    classpath = jars("org.apache.kafka:kafka-clients:4.1.1", *CODECS)
    sizes: dict[tuple[str, int], list[int]] = {}
    told = run_java("CompressedBatches.java", *classpath, stdin=lines + "\n").split()
    for (codec, level, _), size in zip(asked, told, strict=True):
        sizes.setdefault((codec, level), []).append(int(size))
    return sizes


@pytest.mark.parametrize(("codec", "level"), LEVELS)
def test_a_batch_takes_what_kafkas_producer_makes_of_it_at_a_level(
    at_levels: dict[tuple[str, int], list[int]], codec: str, level: int
) -> None:
    for seed, size in zip(SEEDS, at_levels[codec, level], strict=True):
        of = values(seed)
        records = b"".join(record(at, at, None, value) for at, value in enumerate(of))
        found = RECORD_BATCH_OVERHEAD + compressed_size(CODEC_NAMES.index(codec), records, level)
        assert abs(found - size) <= OFF_AT_LEVELS[codec] * size, (found, size, len(of))


@pytest.fixture(scope="module")
def batches(jars: Jars, run_java: RunJava) -> list[tuple[str, list[bytes], int]]:
    """(codec, values, size of Kafka's batch of them)."""
    asked = [(codec, values(seed)) for seed in SEEDS for codec in CODEC_NAMES]
    classpath = jars("org.apache.kafka:kafka-clients:4.1.1", *CODECS)
    lines = "\n".join(" ".join([codec, *(value.hex() for value in of)]) for codec, of in asked)
    sizes = run_java("CompressedBatches.java", *classpath, stdin=lines + "\n").split()
    return [(codec, of, int(size)) for (codec, of), size in zip(asked, sizes, strict=True)]


def test_a_batch_takes_what_kafkas_producer_makes_of_its_records(batches: list[tuple[str, list[bytes], int]]) -> None:
    for codec, of, size in batches:
        records = b"".join(record(at, at, None, value) for at, value in enumerate(of))
        found = RECORD_BATCH_OVERHEAD + compressed_size(CODEC_NAMES.index(codec), records)
        assert abs(found - size) <= OFF_BY[codec] * size, (codec, len(of))
