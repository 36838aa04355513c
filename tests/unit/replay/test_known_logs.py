"""Each reader of a partition gets its log, from where it read on, in rows that do not grow with the log."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pyarrow as pa
import pytest

from schemas.tables.steps import LOG_EVENTS, READS
from udfs.facts.arrow_tables import arrow_schema
from udfs.replay.fetch_max_bytes.known_logs import READER_COLUMNS, ReadBy, log_rows, note_readers
from udfs.replay.fetch_max_bytes.partition_log import build_log

BATCHES = 10
TIMES = np.arange(BATCHES)
LOG = build_log(TIMES * 10, TIMES * 10 + 9, np.full(BATCHES, 100), TIMES, TIMES + 1)
"""Ten batches of ten offsets each."""


def readers(*parts: list[tuple[int, int]]) -> ReadBy:
    """Readers by reads that come in several parts: connections with the offsets they read from."""
    read_by = ReadBy()
    for part in parts:
        rows = [
            {str(c): "x" for c in READER_COLUMNS if c.type == "string"}
            | {LOG_EVENTS.partition: 3, LOG_EVENTS.connection_id: id_, LOG_EVENTS.fetch_offset: offset}
            | {LOG_EVENTS.client_id: f"client-{id_}"}
            for id_, offset in part
        ]
        note_readers(read_by, pa.RecordBatch.from_pylist(rows, schema=arrow_schema(LOG_EVENTS)))
    return read_by


@pytest.mark.parametrize("most", [1, 3, 10, 100])
def test_each_connection_gets_the_log_from_its_lowest_offset_on(most: int) -> None:
    read_by = readers([(7, 50), (5, 20), (7, 40)], [(5, 35), (9, 99), (7, 30)], [(5, 0), (4, 100)])
    bases: dict[int, list[int]] = defaultdict(list)
    for rows in log_rows(LOG, read_by, most):
        assert sum(len(of or []) for of in rows[READS.log_base].to_pylist()) <= 2 * most
        for row in rows.to_pylist():
            piece = row[READS.log_base]
            assert 0 < len(piece) <= most
            assert -1 - row[READS.exchange_no] == piece[0] // 10  # the place of its first batch tells pieces apart
            assert row[READS.client_id] == f"client-{row[READS.connection_id]}"
            assert row[READS.partition] == 3
            assert row[READS.log_last] == [base + 9 for base in piece]
            bases[row[READS.connection_id]] += piece
    assert bases == {7: [*range(30, 100, 10)], 5: [*range(0, 100, 10)], 9: [90]}  # 4 reads from behind its end


def test_a_partition_that_nobody_read_and_one_without_batches_have_no_rows() -> None:
    none = np.zeros(0, np.int64)
    assert list(log_rows(LOG, ReadBy())) == []
    assert list(log_rows(build_log(none, none, none, none, none), readers([(1, 0)]))) == []
