"""Each reader of a partition gets its log, from where it read on, in rows that do not grow with the log."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from schemas.tables.steps import LOG_EVENTS, READS
from udfs.columns.records import records_of
from udfs.facts.arrow_tables import arrow_schema
from udfs.replay.fetch_max_bytes.events import logs_of
from udfs.replay.fetch_max_bytes.partition_log.events import LOG_EVENT
from udfs.replay.fetch_max_bytes.partition_log.log import PartitionLog, built_log
from udfs.replay.fetch_max_bytes.partition_log.rows import CONNECTION_COLUMNS, Readers, log_parts, log_rows
from udfs.replay.shared.key_numbers import partition_of

BATCHES, PARTITION = 10, 3


def log_of(batches: int) -> PartitionLog:
    """Batches of ten offsets each."""
    number = np.arange(batches)
    rows = records_of(
        LOG_EVENT, batches, position=number * 10, last_offset=number * 10 + 9, size_bytes=100, append_before=number + 1
    )
    return built_log(rows)


LOG = log_of(BATCHES)


def readers(*parts: list[tuple[int, int]]) -> Readers:
    """Readers by reads that come in several parts: connections with the offsets they read from."""
    found = Readers()
    for part in parts:
        rows = [
            {str(c): "x" for c in CONNECTION_COLUMNS if c.type == "string"}
            | {LOG_EVENTS.connection_id: id_, LOG_EVENTS.client_id: f"client-{id_}"}
            for id_, _ in part
        ]
        ids, offsets = np.array(part, np.int64).T
        found.note(ids, offsets, pa.RecordBatch.from_pylist(rows, schema=arrow_schema(LOG_EVENTS)))
    return found


@pytest.mark.parametrize("cap", [1, 3, 10, 100])
def test_each_connection_gets_the_log_from_its_lowest_offset_on(cap: int) -> None:
    read_by = readers([(7, 50), (5, 20), (7, 40)], [(5, 35), (9, 99), (7, 30)], [(5, 0), (4, 100)])
    bases: dict[int, list[int]] = defaultdict(list)
    for part in log_parts(LOG, PARTITION, read_by, cap):
        rows, known = log_rows([part]), dict[str, int]()
        logs = logs_of(rows, known)
        assert len(logs.batches) <= 2 * cap
        assert {partition_of(key) for key in known} == {("x", "x", str(PARTITION))}
        for row, (first, end) in enumerate(pairwise(logs.first.tolist())):
            batches = logs.batches[first:end]
            base, id_ = batches["base_offset"].tolist(), int(logs.connection_id[row])
            assert 0 < len(batches) <= cap
            # The place of its first batch tells pieces apart.
            assert -1 - rows[READS.exchange_no][row].as_py() == base[0] // 10
            assert rows[READS.client_id][row].as_py() == f"client-{id_}"
            assert batches["last_offset"].tolist() == [offset + 9 for offset in base]
            bases[id_] += base
    assert bases == {7: [*range(30, 100, 10)], 5: [*range(0, 100, 10)], 9: [90]}  # 4 reads from behind its end


def test_a_partition_that_nobody_read_and_one_without_batches_have_no_rows() -> None:
    assert list(log_parts(LOG, PARTITION, Readers())) == []
    assert list(log_parts(log_of(0), PARTITION, readers([(1, 0)]))) == []
