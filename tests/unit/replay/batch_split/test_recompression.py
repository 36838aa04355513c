"""The sizes of batches that are cut differently from the captured ones."""

from __future__ import annotations

import pyarrow as pa
import pytest

from schemas.tables.steps import SENT
from udfs.columns.records import new_records
from udfs.facts.arrow_tables import TYPES
from udfs.replay.batch_split.events import SENDING
from udfs.replay.batch_split.recompression import BY_PARTS, FITTED, size_model
from udfs.replay.batch_split.state import BATCH, RECORD
from udfs.wire.compressed_sizes import COMPRESSING, PARTS
from udfs.wire.record_batches import RECORD_BATCH_OVERHEAD

GZIP, ZSTD = 1, 4
RECORDS = 16
CONTENT = 95  # 100 bytes with each record's overhead


def sizes_of(compressed: list[list[int]] | None, content: list[int] | int = CONTENT) -> tuple[float, ...]:
    """(first half, second half, all as captured, all in zstd) of a gzip batch of 16 records in 820 bytes without the
    header: first by its parts, then by the fitted lines. compressed: as in `parts`, by codec. content: bytes of the
    records.
    """
    of_parts = [size for codec in compressed or [] for size in codec]
    rows = pa.record_batch({str(SENT.recompressed_bytes): pa.array([of_parts], TYPES["array<int>"])})
    sizes = size_model(
        rows,
        new_records(BATCH, 1, end=RECORDS),
        new_records(SENDING, 1, size=RECORD_BATCH_OVERHEAD + 820, codec=GZIP),
        new_records(RECORD, RECORDS, content=content),
    )
    return tuple(
        float(sizes.fixed[codec, first] + sizes.cost[model, codec, end] - sizes.cost[model, codec, first])
        for model in (BY_PARTS, FITTED)
        for codec, first, end in ((GZIP, 0, 8), (GZIP, 8, 16), (GZIP, 0, 16), (ZSTD, 0, 16))
    )


def parts(fixed: int, *bytes_of: int) -> list[int]:
    """The compressed bytes of a batch up to the end of each of its parts."""
    return [int(fixed + sum(bytes_of[: at + 1])) for at in range(PARTS)]


def test_a_batch_as_captured_keeps_its_size_and_a_part_has_the_size_of_its_records() -> None:
    uneven = parts(20, *[20] * 4, *[180] * 4)
    half, rest, whole, other = sizes_of([uneven, uneven, uneven, parts(10, *[50] * 8)])[:4]
    assert whole == pytest.approx(820)
    assert (half, rest) == (pytest.approx(100, abs=25), pytest.approx(740, abs=25))
    assert other == pytest.approx(410, rel=0.05)


def test_the_fitted_lines_depend_only_on_uncompressed_sizes() -> None:
    even = parts(20, *[100] * 8)
    half, rest, whole, _ = sizes_of([even] * len(COMPRESSING))[4:]
    assert (half, rest, whole) == (pytest.approx(420), pytest.approx(420), pytest.approx(820))


def test_without_parts_a_batch_is_cut_in_proportion_to_its_bytes() -> None:
    assert sizes_of(None)[:3] == (pytest.approx(410), pytest.approx(410), pytest.approx(820))


def test_a_record_takes_bytes_besides_its_content() -> None:
    """Length, attributes and deltas: a record of 5 bytes takes half as much as one of 15, not a third."""
    half, rest = sizes_of(None, [5] * 8 + [15] * 8)[:2]
    assert rest == pytest.approx(2 * half)
