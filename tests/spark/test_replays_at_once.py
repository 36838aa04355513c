"""If two commands replay the same run at the same time, one of them fails and leaves the tables to the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import jobs.replay
from jobs.lake.delta_tables import rows_of_driver
from jobs.lake.target import Target
from jobs.replay import Written, write_replays
from jobs.replays.algorithm import Algorithm, Source
from jobs.replays.fetch_max_bytes.job import FETCH_MAX_BYTES
from jobs.run import Run
from jobs.scenarios.scenario_file import resolve_scenario
from jobs.session.one_shuffle import replay_in_order
from schemas.tables.gold import FETCH_FAIRNESS, FIDELITY, TABLES_OF_REPLAY
from schemas.tables.table import Table
from tests.lakes import queried
from udfs.errors import LakeError
from udfs.facts.arrow_tables import PACKED, arrow_schema, pack_rows
from udfs.replay.shared.dealt_rows import SHARD

RUN = "a-run"
PATIENCE_S = 60


def packed(spark: SparkSession, topic: str) -> DataFrame:
    """A row of each table that the run writes, with this topic or reader."""
    rows: list[tuple[Table, dict[str, str]]] = [
        (FETCH_FAIRNESS, {FETCH_FAIRNESS.run_id: RUN, FETCH_FAIRNESS.topic: topic}),
        (FIDELITY, {FIDELITY.run_id: RUN, FIDELITY.reader: topic}),
    ]
    batches = ((table, pa.RecordBatch.from_pylist([row], schema=arrow_schema(table))) for table, row in rows)
    parts = [part for table, batch in batches for part in pack_rows(table, batch)]
    return rows_of_driver(spark, pa.Table.from_batches(parts, PACKED))


def until(there: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not there() and time.monotonic() < end:
        time.sleep(0.05)


def test_who_finds_rows_that_another_wrote_meanwhile_is_told_to_run_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, begun, done = tmp_path / "lake", tmp_path / "begun", tmp_path / "done"
    run = Run(resolve_scenario(None), (), str(lake), datetime(2026, 1, 31, tzinfo=UTC))

    def slow(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begun.touch()
        # This does not call `until`, because the worker would have to import this module and pytest, and keep both.
        end = time.monotonic() + PATIENCE_S
        while not done.exists() and time.monotonic() < end:
            time.sleep(0.05)
        yield from batches

    def replays(topic: str, rows: DataFrame) -> Algorithm:
        monkeypatch.setitem(TABLES_OF_REPLAY, topic, (FETCH_FAIRNESS,))
        made = replay_in_order(rows.withColumn(SHARD, F.lit(0)), 1, (), lambda batches: iter(batches))
        return replace(FETCH_MAX_BYTES, name=topic, packed=lambda _: made)

    def write() -> Written:
        return write_replays(Source(spark, run, "a-capture", RUN, {}), Target(str(lake), RUN))

    first, second = packed(spark, "first"), packed(spark, "second")
    held = first.coalesce(1).mapInArrow(slow, first.schema)
    asked = iter([[replays("first", held)], [replays("second", second)]])
    monkeypatch.setattr(jobs.replay, "algorithms_to_replay", lambda _: next(asked))
    with ThreadPoolExecutor(1) as beside:
        writing = beside.submit(write)
        until(begun.exists)
        write()
        done.touch()
        with pytest.raises(LakeError, match=r"has written the same rows at the same time: run the command again"):
            writing.result()
    assert [row[FETCH_FAIRNESS.topic] for row in queried(str(lake), FETCH_FAIRNESS)] == ["second"]
    assert [row[FIDELITY.reader] for row in queried(str(lake), FIDELITY)] == ["second"]
