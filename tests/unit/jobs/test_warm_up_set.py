"""Which connections two sets have in common, and which rows of the earlier set come before the later set."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from jobs.replays.warm_up_set import Cut, names_of_connections, rows_before
from schemas.tables.silver import CONNECTIONS, FETCH_PARTITIONS
from schemas.tables.values import CONTINUED, DOES_NOT_FIT, NO_REQUEST
from udfs.facts.arrow_tables import arrow_schema
from udfs.replay.shared.silver_columns import ByConnection

C, F = CONNECTIONS, FETCH_PARTITIONS


def connections(*rows: tuple[int, str, int, str | None]) -> pa.Table:
    """Rows of (id, client, first time in us, continuation)."""
    columns = (C.connection_id, C.server, C.client, C.protocol, C.first_time, C.continuation)
    schema = pa.schema([arrow_schema(C).field(column) for column in columns])
    plain = [(number, "s", client, "kafka", first, how) for number, client, first, how in rows]
    return pa.Table.from_pylist([dict(zip(columns, row, strict=True)) for row in plain], schema)


def test_a_continued_connection_has_the_same_id_in_both_sets_and_others_have_different_ones() -> None:
    earlier = connections((10, "a", 1, None), (11, "a", 5, None), (20, "b", 1, None), (30, "c", 1, None),
                          (40, "d", 1, None), (50, "e", 1, None))  # fmt: skip
    own = connections((10, "a", 9, CONTINUED), (20, "b", 9, None), (30, "c", 9, DOES_NOT_FIT), (40, "d", 9, NO_REQUEST))
    names = names_of_connections(earlier, own)
    renamed = dict(zip(names.connection_id.tolist(), names.number.tolist(), strict=True))
    assert renamed[11] == 10  # the later set calls the last one as the earlier set called the first
    assert renamed.keys() == {10, 11, 20, 30}
    others = [renamed[number] for number in (10, 20, 30)]
    assert len(set(others)) == 3
    assert not {10, 20, 30, 40, 50}.intersection(others)


def test_rows_from_before_the_cut_are_kept_and_a_fetch_waits_no_longer_than_it_did() -> None:
    columns = (F.connection_id, F.request_time, F.max_wait_ms)
    schema = pa.schema([arrow_schema(F).field(column) for column in columns])
    rows = [(11, 1_000, 500), (11, 900_000, 500), (12, 900_000, 500), (11, 1_000_000, 500), (11, None, 500)]
    batch = pa.RecordBatch.from_pylist([dict(zip(columns, row, strict=True)) for row in rows], schema)
    names, answered = (ByConnection(np.array([a]), np.array([b])) for a, b in ((11, 10), (10, 1_100_000)))
    kept = list(rows_before(iter, Cut(1_000_000, names, answered), [batch]))
    told: list[Any] = pa.Table.from_batches(kept).to_pylist()
    assert [(row[F.connection_id], row[F.max_wait_ms]) for row in told] == [(10, 500), (10, 200), (12, 500)]
