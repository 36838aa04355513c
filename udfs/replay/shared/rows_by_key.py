"""Sorted rows, in batches that may be split anywhere, put together by their values in some columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.tables.steps import READS
from udfs.columns.arrays import Ints
from udfs.columns.arrow_columns import concatenate_batches
from udfs.replay.shared.columns import values_differ

FETCH_KEY = (READS.connection_id, READS.exchange_no)
"""The columns that tell fetches apart in READS, and in other tables with a row for each partition of a fetch."""

Key = tuple[Any, ...]
"""The common values of rows that are put together, in the columns by which that is done."""


def key_boundaries(batch: pa.RecordBatch, columns: Iterable[str]) -> Ints:
    """The rows of a batch that differ from the row before in any of the columns: int64[n], beginning with 0 and ending
    with the number of rows.
    """
    changed = np.zeros(max(batch.num_rows - 1, 0), np.bool_)
    for name in columns:
        changed |= values_differ(batch[name])
    inner: Ints = np.flatnonzero(changed) + 1
    return np.concatenate([np.zeros(1, np.int64), inner, np.full(1, batch.num_rows)])


def by_key(batches: Iterable[pa.RecordBatch], columns: Sequence[str]) -> Iterator[tuple[Key, Iterator[pa.RecordBatch]]]:
    """For each run of rows with equal values in these columns: (the values, the rows in parts)."""

    def parts() -> Iterator[tuple[Key, pa.RecordBatch]]:
        for batch in batches:
            if batch.num_rows:
                for first, end in pairwise(key_boundaries(batch, columns).tolist()):
                    yield tuple(batch[name][first].as_py() for name in columns), batch.slice(first, end - first)

    for key, alike in groupby(parts(), key=itemgetter(0)):
        yield key, (part for _, part in alike)


def whole_fetches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows, split so that no fetch is in two batches. Batches that are already so stay as they are."""
    held: pa.RecordBatch | None = None
    for batch in batches:
        if not batch.num_rows:
            continue
        if held is not None and all(held[name][held.num_rows - 1].equals(batch[name][0]) for name in FETCH_KEY):
            last = int(key_boundaries(held, FETCH_KEY)[-2])
            if last:
                yield held.slice(0, last)
            held = concatenate_batches([held.slice(last), batch])
            continue
        if held is not None:
            yield held
        held = batch
    if held is not None:
        yield held
