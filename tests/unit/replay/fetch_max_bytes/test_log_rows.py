"""Each reader of a partition gets the log from its lowest fetch offset on, in rows that do not grow with the log."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from schemas.tables.steps import LOG_EVENTS, READS
from udfs.columns.arrays import Records
from udfs.columns.records import new_records
from udfs.columns.sentinels import NONE
from udfs.facts.arrow_tables import arrow_schema
from udfs.replay.fetch_max_bytes.events import logs_from_rows
from udfs.replay.fetch_max_bytes.partition_log.events import LOG_EVENT
from udfs.replay.fetch_max_bytes.partition_log.log import PartitionLog, build_log
from udfs.replay.fetch_max_bytes.partition_log.rows import CONNECTION_COLUMNS, ReadingConnections, log_parts, log_rows
from udfs.replay.shared.key_numbers import partition_of

BATCHES, PARTITION = 10, 3


NONE_ABORTED = np.zeros(0, LOG_EVENT)


def log_of(batches: int, aborted: Records = NONE_ABORTED, **shown: Any) -> PartitionLog:
    """Batches of ten offsets each. shown: what else is known of them."""
    number = np.arange(batches)
    offsets = {"position": number * 10, "last_offset": number * 10 + 9}
    known = {"records": NONE, "producer_id": NONE} | shown
    rows = new_records(LOG_EVENT, batches, size_bytes=100, append_before=number + 1, **offsets, **known)
    return build_log(rows, aborted)


LOG = log_of(BATCHES)


def readers(*parts: list[tuple[int, int]], committed: tuple[int, ...] = ()) -> ReadingConnections:
    """Readers by reads that come in several parts: connections with the offsets they read from.

    committed: the connections of those that read committed records only.
    """
    found = ReadingConnections()
    for part in parts:
        rows = [
            {str(c): "x" for c in CONNECTION_COLUMNS if c.type == "string"}
            | {LOG_EVENTS.connection_id: id_, LOG_EVENTS.client_id: f"client-{id_}"}
            for id_, _ in part
        ]
        ids, offsets = np.array(part, np.int64).T
        is_committed = np.isin(ids, committed)
        reads = new_records(LOG_EVENT, len(ids), connection_id=ids, fetch_offset=offsets, reads_committed=is_committed)
        found.note(reads, pa.RecordBatch.from_pylist(rows, schema=arrow_schema(LOG_EVENTS)), keeps_times=False)
    return found


@pytest.mark.parametrize("cap", [1, 3, 10, 100])
def test_each_connection_gets_the_log_from_its_lowest_offset_on(cap: int) -> None:
    read_by = readers([(7, 50), (5, 20), (7, 40)], [(5, 35), (9, 99), (7, 30)], [(5, 0), (4, 100)])
    bases: dict[int, list[int]] = defaultdict(list)
    for part in log_parts(LOG, PARTITION, read_by, cap):
        rows, known = log_rows([part]), dict[str, int]()
        logs = logs_from_rows(rows, known)
        assert len(logs.batches) <= 2 * cap
        assert {partition_of(key) for key in known} == {("x", "x", str(PARTITION))}
        for row, (first, end) in enumerate(pairwise(logs.first.tolist())):
            batches = logs.batches[first:end]
            base, id_ = batches["base_offset"].tolist(), int(logs.connection_id[row])
            assert 0 < len(batches) <= cap
            # The place of its first batch distinguishes a piece of the log from others.
            assert -1 - rows[READS.exchange_no][row].as_py() == base[0] // 10
            assert rows[READS.client_id][row].as_py() == f"client-{id_}"
            assert batches["last_offset"].tolist() == [offset + 9 for offset in base]
            bases[id_] += base
    assert bases == {7: [*range(30, 100, 10)], 5: [*range(0, 100, 10)], 9: [90]}  # 4 reads from the log's end


def test_a_partition_that_nobody_read_and_one_without_batches_have_no_rows() -> None:
    assert list(log_parts(LOG, PARTITION, ReadingConnections())) == []
    assert list(log_parts(log_of(0), PARTITION, readers([(1, 0)]))) == []


def test_only_a_reader_of_committed_records_does_not_get_those_of_an_aborted_transaction() -> None:
    """Producer 7 aborts the transaction from 10 to its marker at 40. Other batches are by producer 8 or by none."""
    shown = {
        "producer_id": [7, 7, 8, 7, 7, NONE], "is_control": [0, 0, 0, 0, 1, 0], "records": [9, 10, 10, 4, 0, 10]
    }  # fmt: skip
    log = log_of(6, new_records(LOG_EVENT, 2, position=10, producer_id=7), **shown)
    (part,) = log_parts(log, PARTITION, readers([(1, 0), (2, 0)], committed=(2,)))
    logs = logs_from_rows(log_rows([part]), {})
    given = {
        int(connection): logs.batches["records"][first:end].tolist()
        for connection, (first, end) in zip(logs.connection_id.tolist(), pairwise(logs.first.tolist()), strict=True)
    }
    assert given == {1: [9, 10, 10, 4, 0, 10], 2: [9, 0, 10, 0, 0, 10]}


def test_a_reader_gets_a_transaction_that_a_producer_begins_after_an_aborted_one() -> None:
    shown = {"producer_id": 7, "is_control": [0, 1, 0]}
    log = log_of(3, new_records(LOG_EVENT, 1, position=0, producer_id=7), **shown)
    assert log.committed_records.tolist() == [0, 10, 10]
