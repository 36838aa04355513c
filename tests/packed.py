"""Rows that were packed for their way through Spark, as rows again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from udfs.facts.arrow_tables import unpack_rows


def unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What `pack_rows` packed, of one table; takes batches with a column `rows`."""
    for batch in batches:
        for packed in batch["rows"]:
            yield from unpack_rows(packed)
