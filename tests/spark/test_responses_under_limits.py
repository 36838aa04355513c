"""Where the replay of memory gets the responses that consumers receive under other fetch limits."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

import jobs.replays.consumer_memory.job
from jobs.cli import parse_arguments
from jobs.lake.delta_tables import rows_of_driver
from jobs.replays.algorithm import Source
from jobs.replays.consumer_memory.job import dealt_responses, lanes_and_fetch_limits
from jobs.resolve import resolve_run
from schemas.tables import algorithms
from schemas.tables.gold import FIDELITY
from schemas.tables.steps_memory import MEMORY_EVENTS
from tests.gate_rows import whole
from udfs.facts.arrow_tables import PACKED, pack_rows, unpack_rows
from udfs.replay.shared.dealt_rows import DEALT, ROWS

LIMITED = ["replay", "--lake=no-lake", "--set=consumer.fetch.max.bytes=1MiB"]


@pytest.fixture
def reads(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> list[Source]:
    """The sources whose reads are replayed again. They have no reads, and nothing is known of connections."""
    sources: list[Source] = []

    def dealt_reads(source: Source, shards: int, groups: Mapping[tuple[str, str], str]) -> DataFrame:
        sources.append(source)
        return spark.createDataFrame([], from_arrow_schema(DEALT))

    monkeypatch.setattr(jobs.replays.consumer_memory.job, "dealt_reads", dealt_reads)
    monkeypatch.setattr(jobs.replays.consumer_memory.job, "with_connections", lambda source, lanes: lanes)
    return sources


def units(spark: SparkSession, before: dict[str, DataFrame]) -> list[str]:
    """The units with responses, if these replays ran before."""
    run = resolve_run(parse_arguments(LIMITED))
    source = Source(spark, run, "a-capture", "a-run", before)
    parts = dealt_responses(source, lanes_and_fetch_limits(run.scenario)[1], 2).toArrow()[ROWS]
    return sorted(row[MEMORY_EVENTS.unit] for part in parts for rows in unpack_rows(part) for row in rows.to_pylist())


def test_what_the_replay_of_fetches_hands_on_is_taken_and_nothing_read_again(
    spark: SparkSession, reads: list[Source]
) -> None:
    responses = whole(MEMORY_EVENTS, [{"side": "consumer", "unit": unit, "kind": 3} for unit in "abc"])
    packed = [
        part
        for table, rows in ((MEMORY_EVENTS, responses), (FIDELITY, whole(FIDELITY, [{}])))
        for batch in rows.to_batches()
        for part in pack_rows(table, batch)
    ]
    handed_on = rows_of_driver(spark, pa.Table.from_batches(packed, PACKED))
    assert units(spark, {algorithms.FETCH_MAX_BYTES: handed_on}) == ["a", "b", "c"]
    assert reads == []


def test_without_a_replay_of_fetches_before_it_the_reads_are_replayed_again(
    spark: SparkSession, reads: list[Source]
) -> None:
    assert units(spark, {algorithms.SESSION_CACHE: spark.range(0)}) == []
    assert len(reads) == 1


@pytest.mark.parametrize(("flags", "needs"), [(LIMITED[:2], False), (LIMITED, True)])
def test_only_lanes_with_other_fetch_limits_need_responses_of_their_own(flags: list[str], needs: bool) -> None:
    lanes, _ = lanes_and_fetch_limits(resolve_run(parse_arguments(flags)).scenario)
    assert bool(np.any(lanes.fetch_number)) == needs
