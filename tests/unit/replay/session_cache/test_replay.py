"""The tables of a replay do not depend on how its rows come."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tests.unit.replay.session_cache.captures import Fetch, captured, ids
from tests.unit.replay.session_cache.event_rows import gold_rows
from udfs.columns.arrow_columns import concatenate_batches
from udfs.replay.session_cache import events, replay
from udfs.replay.session_cache.settings import CURRENT, KIP_TEXT, OLDEST_CREATED, SessionLanes, cache_settings


def random_capture(count: int, broker: str = "1") -> pa.RecordBatch:
    rng = np.random.default_rng(227)
    ms = np.cumsum(rng.choice([1, 40, 900, 20_000], count))
    clients, sizes = rng.integers(20, size=count), rng.integers(1, 9, size=count)
    names = rng.integers(3, size=count)  # as if a proxy fetched for several
    return captured(
        *(
            Fetch(int(t), f"c{c}", int(c) // 2 + int(s), c % 4 == 0, broker=broker, called=f"c{c}-{n}")
            for t, c, s, n in zip(ms, clients, sizes, names, strict=True)
        )
    )


ONE_TIME = [
    Fetch(5, "c8", 2, wait_us=2000),
    Fetch(7, "c4", 2, is_epoch_cut=True),
    Fetch(337, "c8", 1, granted=ids(2)[0]),
]
"""The first is answered when the second, which is cut, is sent."""
BROKERS = concatenate_batches([random_capture(40, broker) for broker in "123"])
FOUR = SessionLanes(
    ("a", "b", "c", "d"),
    cache_settings([8, 16, 5, 9], [8, 8, 1, 1], 30_000, [CURRENT, CURRENT, OLDEST_CREATED, KIP_TEXT]),
)


@pytest.mark.parametrize(
    "batch", [random_capture(400), captured(*ONE_TIME), BROKERS], ids=["many", "at one time", "brokers"]
)
@pytest.mark.parametrize("rows", [1, 7])
def test_the_tables_do_not_depend_on_how_batches_are_cut(
    monkeypatch: pytest.MonkeyPatch, rows: int, batch: pa.RecordBatch
) -> None:
    whole = gold_rows([batch], FOUR)
    monkeypatch.setattr(events, "ROWS_AT_A_TIME", rows)
    for held in ("BROKERS_AT_ONCE", "BUCKETS_AT_ONCE"):
        monkeypatch.setattr(replay, held, 1)
    assert gold_rows(pa.Table.from_batches([batch]).to_batches(rows), FOUR) == whole


def test_texts_may_come_as_dictionary_columns() -> None:
    """Such columns hold each text once in a batch, as when rows are dealt to tasks."""
    columns = [column.dictionary_encode() if column.type == pa.string() else column for column in BROKERS.columns]
    assert gold_rows([pa.RecordBatch.from_arrays(columns, names=BROKERS.schema.names)], FOUR) == gold_rows(
        [BROKERS], FOUR
    )


def test_without_fetches_there_are_no_rows() -> None:
    assert gold_rows([], FOUR) == gold_rows([BROKERS.slice(0, 0)], FOUR) == {}
