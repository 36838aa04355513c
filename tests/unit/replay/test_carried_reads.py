"""Reads on their way through Spark: what comes is what went."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.unit.replay.captured_reader import batch_rows, catch_up, reads_of
from udfs.replay.fetch_max_bytes import carried_reads
from udfs.replay.fetch_max_bytes.carried_reads import carried


@pytest.mark.parametrize("most", [1, 7, 10_000])
def test_rows_come_as_they_went_whatever_the_cuts(most: int) -> None:
    """Logs and reads go in batches of their own, and come together in the order of their readers."""
    whole = reads_of(batch_rows() + catch_up(reconnects=3), 10_000)
    is_log = carried_reads.is_log(whole.combine_chunks().to_batches()[0])
    assert is_log.any()
    logs, reads = (whole.filter(pa.array(rows)) for rows in (is_log, ~is_log))
    moved = [carried(batch) for part in (reads, logs) for batch in part.to_batches(max_chunksize=most)]
    order = pa.Table.from_batches(moved).take(pa.array([*range(len(whole))][::-1]))
    came = [carried_reads.reads_of(batch) for batch in order.combine_chunks().to_batches(max_chunksize=most)]
    went = pa.concat_tables([reads, logs]).take(pa.array([*range(len(whole))][::-1]))
    assert pa.Table.from_batches(came).to_pylist() == went.to_pylist()


def test_nulls_stay_nulls() -> None:
    rows = reads_of(batch_rows() + catch_up(), 10_000).combine_chunks().to_batches()[0]
    of_logs = rows.slice(0, 1)
    nullable = [c for c in carried_reads.NUMBERS if c.nullable]
    assert all(of_logs[column].null_count for column in nullable)
    assert carried_reads.reads_of(carried(of_logs)).to_pylist() == of_logs.to_pylist()
