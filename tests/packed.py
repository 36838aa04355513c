"""Unpacking rows that were packed for their way through Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from udfs.facts.arrow_tables import unpack_rows


def unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of one table that `pack_rows` packed. batches: they have a column `rows`."""
    for batch in batches:
        for packed in batch["rows"]:
            yield from unpack_rows(packed)
