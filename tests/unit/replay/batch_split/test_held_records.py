"""Batches of captured records that are compressed anew: their sizes are exact, and their contents are never shown."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.wire.encoding import record
from udfs.columns.records import new_records
from udfs.replay.batch_split.held_records import Held, HeldRecords, Recompressed
from udfs.replay.batch_split.state import BATCH, MODELLED, RECORD
from udfs.wire.compressed_sizes import CODEC_NAMES, compressed_size
from udfs.wire.record_batches import RECORD_BATCH_OVERHEAD
from udfs.wire.records import record_sizes

SECRET = b"a-card-number-4111"
VALUES = [SECRET * (at % 7) + bytes([at]) * 30 for at in range(12)]
BEGIN = np.array([0, 5, 9, 12])
MS = np.cumsum([0, 3, 0, 200, 1, 7, 0, 0, 90, 1, 1, 1])


def batch(first: int, end: int) -> bytes:
    """These records as one batch."""
    return b"".join(record(at - first, int(MS[at] - MS[first]), None, VALUES[at]) for at in range(first, end))


@pytest.fixture
def held() -> HeldRecords:
    found = HeldRecords()
    for number, (first, end) in enumerate(zip(BEGIN[:-1].tolist(), BEGIN[1:].tolist(), strict=True)):
        records = batch(first, end)
        found.add((1, number, 0), records, record_sizes(records, end - first).ends)
    return found


@pytest.fixture
def measured(held: HeldRecords) -> Recompressed:
    records = [record_sizes(batch(first, end), end - first) for first, end in ((0, 5), (5, 9), (9, 12))]
    content = np.concatenate([of.content for of in records])
    batches = new_records(BATCH, 3, first=BEGIN[:-1], end=BEGIN[1:])
    of_batch = np.repeat(np.arange(3), np.diff(BEGIN))
    captured = new_records(RECORD, 12, timestamp=MS, content=content, batch=of_batch)
    return Recompressed(list(held.batches.values()), batches, captured)


@pytest.mark.parametrize("codec", range(len(CODEC_NAMES)), ids=CODEC_NAMES)
@pytest.mark.parametrize(("first", "end"), [(0, 5), (5, 9), (1, 4), (3, 7), (4, 12), (0, 12), (8, 9)])
def test_a_batch_has_the_size_of_its_compressed_records(
    measured: Recompressed, first: int, end: int, codec: int
) -> None:
    assert measured.size(first, end, codec) == RECORD_BATCH_OVERHEAD + compressed_size(codec, batch(first, end))


def test_a_batch_is_compressed_at_the_level_that_is_stated_for_its_codec(measured: Recompressed) -> None:
    gzip, zstd = CODEC_NAMES.index("gzip"), CODEC_NAMES.index("zstd")
    at_level = Recompressed(measured.held, measured.batches, measured.records, {gzip: 1})
    assert at_level.size(0, 12, gzip) == RECORD_BATCH_OVERHEAD + compressed_size(gzip, batch(0, 12), 1)
    assert at_level.size(0, 12, gzip) > measured.size(0, 12, gzip)
    assert at_level.size(0, 12, zstd) == measured.size(0, 12, zstd)


def test_a_batch_with_a_record_that_is_not_held_is_left_to_the_model(measured: Recompressed) -> None:
    some: list[Held | None] = [*measured.held[:1], None, *measured.held[2:]]
    without = Recompressed(some, measured.batches, measured.records)
    assert without.size(4, 6, 1) == without.size(6, 8, 1) == without.size(0, 12, 1) == MODELLED
    assert without.size(0, 5, 1) == measured.size(0, 5, 1)


def test_held_records_are_never_printed(held: HeldRecords, measured: Recompressed) -> None:
    assert sum(len(of.records) for of in held.batches.values()) > len(SECRET)
    for shown in (held, measured, *held.batches.values()):
        assert SECRET[:6].decode() not in f"{shown!r}{shown}"
