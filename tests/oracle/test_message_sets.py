"""Message sets of formats 0 and 1, written by Kafka's own MemoryRecordsBuilder, are read as Kafka reads them."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tests.oracle.conftest import Jars, RunJava
from tests.unit.wire.test_message_sets import read
from udfs.wire.message_sets import Unwrapped
from udfs.wire.record_batches import RecordBatches

CODECS = {0: "none", 1: "gzip", 2: "snappy", 3: "lz4"}
JARS = ("org.xerial.snappy:snappy-java:1.1.10.7", "at.yawk.lz4:lz4-java:1.10.1")
NOW_MS = 1_700_000_000_000


@dataclass(frozen=True)
class Set:
    """What a message set was asked to be, its bytes as Kafka wrote them, and Kafka's numbers of each entry, in the
    order of `numbers_of`.
    """

    magic: int
    codec: int
    appended_ms: int  # -1 for CreateTime
    written: bytes
    told: list[tuple[int, ...]]


def asked(magic: int, codec: int, appended_ms: int, chance: random.Random) -> str:
    """A line for MessageSets.java. The offsets have gaps, as after compaction."""
    offset, words = chance.randint(1, 1 << 40), [str(magic), str(codec), str(appended_ms)]
    for _ in range(chance.choice([1, 2, 10, 300])):
        time = -1 if magic == 0 else NOW_MS + chance.randint(-1000, 1000)
        words.append(f"{offset}:{time}:{chance.choice([-1, 0, 5])}:{chance.choice([-1, 0, 20, 400])}")
        offset += chance.choice([1, 1, 1, 7])
    return " ".join(words)


@pytest.fixture(scope="module")
def sets(kafka_clients: Path, jars: Jars, run_java: RunJava) -> list[Set]:
    chance = random.Random(1)  # noqa: S311  (no secret depends on it)
    kinds = [(magic, codec, appended) for magic in (0, 1) for codec in CODECS for appended in (-1, NOW_MS + 5000)]
    lines = [asked(*kind, chance) for kind in kinds if kind[0] == 1 or kind[2] < 0 for _ in range(8)]
    printed = run_java("MessageSets.java", kafka_clients, *jars(*JARS), stdin="\n".join(lines)).splitlines()
    found = []
    for line, answer in zip(lines, printed, strict=True):
        magic, codec, appended = map(int, line.split()[:3])
        written, *batches = answer.split("|")
        told = [tuple(map(int, batch.split())) for batch in batches]
        found.append(Set(magic, codec, appended, bytes.fromhex(written), told))
    return found


def numbers_of(found: Unwrapped) -> list[tuple[int, ...]]:
    """The numbers of each entry that Kafka prints too."""
    batches: RecordBatches = found.batches
    last = batches.base_offset + batches.last_offset_delta
    uncompressed = np.where(batches.codec == 0, batches.size, found.uncompressed)
    columns = (batches.size, batches.base_offset, last, batches.record_count, batches.base_timestamp,
               batches.max_timestamp, uncompressed)  # fmt: skip
    return list(zip(*(column.tolist() for column in columns), strict=True))


@pytest.mark.parametrize("codec", CODECS, ids=CODECS.values())
@pytest.mark.parametrize("magic", [0, 1])
def test_entries_of_every_codec_are_told_as_kafka_reads_them(sets: list[Set], magic: int, codec: int) -> None:
    mine = [written for written in sets if (written.magic, written.codec) == (magic, codec)]
    assert sum(len(written.told) for written in mine) >= len(mine) > 0
    for written in mine:
        found = read(written.written)
        assert numbers_of(found) == written.told
        assert set(found.batches.crc_valid.tolist()) == {1}
        kinds = {-1} if magic == 0 else {int(written.appended_ms >= 0)}
        assert set(found.batches.timestamp_type.tolist()) == kinds
